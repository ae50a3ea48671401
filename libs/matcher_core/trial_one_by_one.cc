// Candidates whose pods are placed one after the other: as they have to, or as they prefer.
#include <optional>
#include <string>
#include <vector>

#include "libs/base/check.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/promises.h"
#include "libs/matcher_core/trial.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::Outcome;
using events::v1::Slip;

namespace {

// Slots in a cycle: for each all nodes are looked at.
constexpr uint32_t kMostRearranged = 1024;

}  // namespace

std::optional<graph::Jobspec> Trial::Preferring(const Candidate& candidate,
                                                const graph::Jobspec* jobspec) {
  if (jobspec == nullptr || jobspec->preferences.pods.AreNone()) return std::nullopt;
  const bool is_refused = !candidate.grow() && !candidate.replace() && !MayPreempt(candidate) &&
                          RefusalOf(candidate, *jobspec) != nullptr;
  if (is_refused) return std::nullopt;
  return closed_.Preferring(candidate, *jobspec);
}

void Trial::Rearrange(const Candidate& candidate,
                      const graph::Jobspec& jobspec,
                      bool promised,
                      Outcome* outcome) {
  const bool prefers = PrefersAmongOwn(jobspec) &&
                       model::HasRules(view_.state.config().rules(), model::kPrefersByPods);
  if (!prefers || rearranged_ + jobspec.slots > kMostRearranged) return;
  rearranged_ += jobspec.slots;
  const AllocationKey key = KeyOf(candidate);
  const graph::Placement before = *engine_.Find(key);
  engine_.Release(key);
  closed_.Changed(key.job_id);
  std::string first;
  if (!PlaceAll(candidate, jobspec, {}, /*anywhere=*/false, &first)) {
    CHECK(engine_.Restore(key, before).ok(), "what {} had", key.job_id);
  }
  closed_.CloseTo(candidate);
  if (promised && engine_.Find(key)->slots != before.slots) reservations_.RoomCame();
  SayStarts(key, outcome);
}

void Trial::PlaceOneByOne(const Candidate& candidate,
                          const graph::Jobspec& jobspec,
                          Outcome* outcome) {
  const AllocationKey key = KeyOf(candidate);
  if (const Refusals::Refusal* refused = RefusalOf(candidate, jobspec); refused != nullptr) {
    return Answer(*refused, candidate, outcome);
  }
  // Where they are to be beside each other, and have no room together, they may have it elsewhere.
  const auto place_where = [&](bool anywhere) {
    constexpr int kMostDomains = 16;
    std::vector<std::string> avoided;
    for (int tries = 0; tries < kMostDomains; ++tries) {
      std::string first;
      if (PlaceAll(candidate, jobspec, avoided, anywhere, &first)) return true;
      const std::vector<std::string> domain = closed_.DomainBeside(jobspec, first);
      if (domain.empty()) break;
      avoided.insert(avoided.end(), domain.begin(), domain.end());
    }
    return false;
  };
  // What it prefers keeps it from no place.
  const bool tries_again = !jobspec.preferences.signature.empty() &&
                           model::HasRules(view_.state.config().rules(), model::kPrefersByPods);
  const auto place = [&]() { return place_where(false) || (tries_again && place_where(true)); };
  const bool starts =
      place() || (!reservations_.behind().empty() &&
                  reservations_.PassThoseBehind(SlipBy(Slip::CAUSE_AHEAD, key.job_id), place));
  closed_.CloseTo(candidate);
  if (starts) return SayStarts(key, outcome);
  graph::MatchRequest ever = StartNow(request_, candidate, jobspec);
  ever.operation = graph::Operation::kSatisfiability;
  const bool never = engine_.Match(ever).kind == graph::OutcomeKind::kUnsatisfiable;
  Wait(candidate,
       jobspec,
       {.kind = never ? graph::OutcomeKind::kUnsatisfiable : graph::OutcomeKind::kBusy},
       outcome);
}

bool Trial::PlaceAll(const Candidate& candidate,
                     const graph::Jobspec& jobspec,
                     const std::vector<std::string>& avoided,
                     bool anywhere,
                     std::string* first) {
  const AllocationKey key = KeyOf(candidate);
  const graph::Jobspec one = graph::WithSlots(jobspec, 1);
  closed_.CloseTo(candidate, avoided);
  const graph::Jobspec one_now = anywhere ? one : closed_.Preferring(candidate, one);
  graph::MatchRequest request = StartNow(request_, candidate, one_now);
  request.anywhere = anywhere;
  bool fits = engine_.Match(request).kind == graph::OutcomeKind::kAllocated;
  if (fits) *first = engine_.Find(key)->slots[0].node;
  for (uint32_t slots = 1; fits && slots < jobspec.slots; ++slots) {
    closed_.Changed(key.job_id);
    closed_.CloseTo(candidate, avoided);
    const graph::Jobspec next = anywhere ? one : closed_.Preferring(candidate, one);
    const graph::MatchRequest more{
        .key = key, .jobspec = next, .now_s = request_.now_s(), .anywhere = anywhere};
    fits = engine_.Grow(more).kind == graph::OutcomeKind::kAllocated;
  }
  if (fits) return true;
  engine_.Release(key);
  closed_.Changed(key.job_id);
  return false;
}

}  // namespace fluxqueue::matcher_core
