// Elastic jobs: they start with what there is, from so many slots on, and take more while they run.
//
// How many have room is not known before they are matched. The naive way is to match one slot after
// the other. Instead: all at once first; when that fails the least that it may start with, as a job
// that asks for no more (so it is refused, reserved and explained as such a one); then more by
// halving: a number that has no room has none in this cycle, so half of it is tried. 2 · log2(n)
// matches at most. Where one more slot was refused, others like it are not tried either.
//
// Growth is in place: what the key holds becomes more, and keeps its end.
#include <algorithm>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/holding.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/matcher_core.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::Outcome;

namespace {

uint32_t MostSlots(const Candidate& candidate, const graph::Jobspec& jobspec) {
  if (candidate.most_slots() == 0) return jobspec.slots;
  return std::clamp(candidate.most_slots(), jobspec.min_slots, jobspec.slots);
}

uint32_t LiveSlots(const graph::Placement& placement) {
  return static_cast<uint32_t>(std::count_if(
      placement.slots.begin(), placement.slots.end(), [](const graph::PlacedSlot& slot) {
        return !slot.released;
      }));
}

// From `now_s` on.
int64_t TimeLeft(const graph::Placement& placement, int64_t now_s) {
  return placement.duration_s == 0 ? graph::kForever
                                   : placement.start_s + placement.duration_s - now_s;
}

}  // namespace

bool MatcherCore::Cycle::Refuses(const std::string& as, int64_t duration_s) const {
  const auto refusal = refusals.find(as);
  if (refusal != refusals.end() && duration_s >= refusal->second.shortest_s) return true;
  const auto full = no_more.find(as);
  return full != no_more.end() && duration_s >= full->second;
}

void MatcherCore::MatchElastic(const Candidate& candidate,
                               const graph::Jobspec& jobspec,
                               bool promised,
                               Cycle* cycle,
                               Outcome* outcome) {
  const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
  const graph::Jobspec least = graph::WithSlots(jobspec, jobspec.min_slots);
  const uint32_t most = MostSlots(candidate, jobspec);
  // Where nothing came free, what is promised is as early as it can be.
  const bool stays =
      promised && !cycle->room_came && reservations_.map().at(key).start_s > cycle->request.now_s();
  if (most > least.slots && !stays &&
      !cycle->Refuses(RefusedAs(least, candidate), DurationOf(candidate))) {
    const graph::Jobspec all = graph::WithSlots(jobspec, most);
    engine_->Match(StartNow(*cycle, candidate, all));
    if (promised && engine_->Find(key) != nullptr) {
      Forget(key, cycle);
    } else if (promised) {
      CHECK(engine_->Reserve(key, reservations_.map().at(key)), "job {}", key.job_id);
    }
  }
  if (engine_->Find(key) == nullptr) {
    Match(candidate, least, promised, cycle, outcome);
    if (outcome->kind() != Outcome::KIND_ALLOCATED) return;
    TakeMore(candidate, jobspec, most - least.slots, (most - least.slots + 1) / 2, cycle);
  }
  SayHeld(key, outcome);
}

void MatcherCore::Grow(const Candidate& candidate,
                       const graph::Jobspec* jobspec,
                       Cycle* cycle,
                       Outcome* outcome) {
  const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
  const graph::Placement* held = engine_->Find(key);
  outcome->set_kind(Outcome::KIND_BUSY);
  if (held == nullptr || jobspec == nullptr || jobspec->min_slots == 0) {
    outcome->set_reason("it holds nothing that could grow");
    return;
  }
  const uint32_t live = LiveSlots(*held);
  const uint32_t most = MostSlots(candidate, *jobspec);
  const uint32_t more = most > live ? most - live : 0;
  if (TakeMore(candidate, *jobspec, more, more, cycle)) {
    SayHeld(key, outcome);
  } else {
    outcome->set_reason("there is no room for another slot");
  }
}

bool MatcherCore::TakeMore(const Candidate& candidate,
                           const graph::Jobspec& jobspec,
                           uint32_t more,
                           uint32_t first,
                           Cycle* cycle) {
  const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
  const std::string one = RefusedAs(graph::WithSlots(jobspec, 1), candidate);
  const int64_t left_s = TimeLeft(*engine_->Find(key), cycle->request.now_s());
  if (cycle->Refuses(one, left_s)) return false;
  bool any = false;
  for (uint32_t chunk = first; more > 0 && chunk > 0;) {
    chunk = std::min(chunk, more);
    const graph::Jobspec some = graph::WithSlots(jobspec, chunk);
    const graph::Outcome grown =
        engine_->Grow({.key = key, .jobspec = some, .now_s = cycle->request.now_s()});
    if (grown.kind == graph::OutcomeKind::kAllocated) {
      any = true;
      more -= chunk;
      continue;
    }
    // What has no time left, or holds other slots by now, tells nothing of those that have.
    const bool full = chunk == 1 && left_s > 0 &&
                      engine_->Find(key)->groups[0].request == jobspec.groups[0].request;
    if (full) cycle->no_more[one] = left_s;
    chunk /= 2;
  }
  return any;
}

void MatcherCore::SayHeld(const AllocationKey& key, Outcome* outcome) {
  const graph::Placement& held = *engine_->Find(key);
  outcome->set_kind(Outcome::KIND_ALLOCATED);
  outcome->set_at_s(held.start_s);
  outcome->set_slots(static_cast<uint32_t>(held.slots.size()));
  outcome->set_placement_hash(WriteAllocation(key));
}

}  // namespace fluxqueue::matcher_core
