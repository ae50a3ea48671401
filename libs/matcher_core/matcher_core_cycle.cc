// How the matcher's core answers a cycle.
#include <algorithm>
#include <numeric>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/holding.h"
#include "libs/graph/levels.h"
#include "libs/matcher_core/batch.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/keeping.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::CycleAnswered;
using events::v1::CycleRequested;
using events::v1::Outcome;

namespace {

// Of the shapes that one cycle refuses.
constexpr size_t kMostExplained = 16;

}  // namespace

absl::StatusOr<std::optional<CycleAnswered>> MatcherCore::HandleCycle(const CycleRequested& request,
                                                                      Millis now) {
  if (request.cycle_id() == 0) return InvalidArgument("a cycle with the id 0; ids begin at 1");
  if (request.cycle_id() < state_.last_cycle_id()) return std::nullopt;
  CycleAnswered answer;
  if (request.cycle_id() == state_.last_cycle_id()) {
    CHECK(answer.ParseFromString(last_answer_), "the answer to cycle {}", request.cycle_id());
    return answer;
  }
  answer.set_cycle_id(request.cycle_id());
  Cycle cycle{.request = request,
              .refusals = {},
              .reserved = {},
              .first_reserved = "",
              .explained = 0,
              .stops = false};
  cycle.reserved.resize(static_cast<size_t>(request.rules_size()));
  cycle.last_reserved.resize(static_cast<size_t>(request.rules_size()));
  cycle.stopped.resize(static_cast<size_t>(request.rules_size()));
  LearnBeginning(now, request.now_s());
  DropPastWindows(now);
  TakeUpReservations(&cycle);
  TryAll(&cycle, &answer);
  ReleaseRoomKept(&cycle);
  SayPromises(cycle, &answer);
  state_.set_room_came(cycle.room_came_late);
  const std::vector<AllocationKey> overran = engine_->Overran(request.now_s());
  answer.set_overran(static_cast<uint32_t>(overran.size()));
  if (!overran.empty()) answer.set_overran_job(overran.front().job_id);
  state_.set_last_cycle_id(request.cycle_id());
  last_answer_ = answer.SerializeAsString();
  plan_ = PlanOf(answer);
  batch_->answers[request.cycle_id()] = last_answer_;
  return answer;
}

// In the order of the line, until a rule's reservations are given; what is left of the rule then in
// the order of its backfilling, where it has one. The answer keeps the order of the line.
void MatcherCore::TryAll(Cycle* cycle, CycleAnswered* answer) {
  const auto& candidates = cycle->request.candidates();
  std::vector<int> order(static_cast<size_t>(candidates.size()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::optional<Outcome>> outcomes(order.size());
  size_t tried = 0;
  while (tried < order.size()) {
    const int place = order[tried++];
    const Candidate& candidate = candidates[place];
    if (IsStopped(*cycle, candidate)) {
      // What it was promised it keeps; that it has lost it is said all the same.
      TakePromise(candidate, cycle);
      if (HasLost(*cycle, candidate)) {
        Outcome& outcome = outcomes[static_cast<size_t>(place)].emplace();
        SayWho(candidate, &outcome);
        outcome.set_kind(Outcome::KIND_BUSY);
        outcome.set_reason("a job ahead of it in its queue waits, and nobody passes it there");
      }
      continue;
    }
    Outcome& outcome = outcomes[static_cast<size_t>(place)].emplace();
    Try(candidate, cycle, &outcome);
    tried_(outcome);
    if (Stops(*cycle, candidate, outcome)) {
      if (cycle->IsIndependent()) {
        cycle->stopped[candidate.rule()] = true;
      } else {
        cycle->stops = true;
      }
    }
    if (cycle->stops) break;
    if (outcome.kind() == Outcome::KIND_RESERVED && candidate.backfill_turn() != 0 &&
        !MayReserve(*cycle, candidate)) {
      TakeTurns(*cycle, candidate.rule(), tried, &order);
    }
  }
  for (std::optional<Outcome>& outcome : outcomes) {
    if (outcome) answer->mutable_outcomes()->Add(*std::move(outcome));
  }
}

void MatcherCore::TakeTurns(const Cycle& cycle,
                            uint32_t rule,
                            size_t tried,
                            std::vector<int>* order) const {
  std::vector<size_t> places;
  std::vector<std::pair<uint32_t, int>> turns;
  for (size_t i = tried; i < order->size(); ++i) {
    const Candidate& candidate = cycle.request.candidates((*order)[i]);
    if (candidate.backfill_turn() == 0 || candidate.rule() != rule) continue;
    // What is promised is taken up, or given up, in the order of the line.
    const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
    if (reservations_.Has(key)) continue;
    places.push_back(i);
    turns.emplace_back(candidate.backfill_turn(), (*order)[i]);
  }
  std::sort(turns.begin(), turns.end());
  for (size_t i = 0; i < places.size(); ++i) (*order)[places[i]] = turns[i].second;
}

// A request stands a little later in the log than the time that it names: the least is the nearest.
void MatcherCore::LearnBeginning(Millis now, int64_t now_s) {
  const int64_t beginning_ms = (now - std::chrono::seconds(now_s)).count();
  if (state_.beginning_ms() != 0 && state_.beginning_ms() <= beginning_ms) return;
  state_.set_beginning_ms(beginning_ms);
}

bool MatcherCore::Cycle::IsIndependent() const {
  return request.version() >= model::kIndependentQueues;
}

bool MatcherCore::Cycle::CorrectsPlans() const {
  return request.version() >= model::kCorrectedPlans;
}

bool MatcherCore::TakePromise(const Candidate& candidate, Cycle* cycle) {
  const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
  if (cycle->promised.empty() || cycle->promised.back() != key) return false;
  cycle->promised.pop_back();
  return true;
}

bool MatcherCore::IsStopped(const Cycle& cycle, const Candidate& candidate) const {
  return candidate.rule() < cycle.stopped.size() && cycle.stopped[candidate.rule()];
}

bool MatcherCore::Stops(const Cycle& cycle,
                        const Candidate& candidate,
                        const Outcome& outcome) const {
  const bool waits =
      outcome.kind() == Outcome::KIND_BUSY || outcome.kind() == Outcome::KIND_RESERVED;
  if (!waits || candidate.grow()) return false;
  return candidate.rule() < static_cast<uint32_t>(cycle.request.rules_size()) &&
         cycle.request.rules(static_cast<int>(candidate.rule())).stop_at_first_blocked();
}

bool MatcherCore::MayReserve(const Cycle& cycle, const Candidate& candidate) {
  return MayReserve(cycle.request, cycle.reserved, candidate);
}

bool MatcherCore::MayReserve(const CycleRequested& request,
                             const std::vector<uint32_t>& reserved,
                             const Candidate& candidate) {
  if (!candidate.may_reserve() || candidate.rule() >= reserved.size()) return false;
  if (candidate.overdue()) return true;
  return reserved[candidate.rule()] <
         request.rules(static_cast<int>(candidate.rule())).most_reservations();
}

void MatcherCore::SayWho(const Candidate& candidate, Outcome* outcome) {
  outcome->set_job_id(candidate.job_id());
  outcome->set_attempt(candidate.attempt());
  outcome->set_part(candidate.part());
}

void MatcherCore::Try(const Candidate& candidate, Cycle* cycle, Outcome* outcome) {
  SayWho(candidate, outcome);
  const Spec* spec = specs_.Find(SpecKey(candidate.job_id(), candidate.part()));
  const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
  const bool promised = TakePromise(candidate, cycle);
  CloseNodes(candidate, cycle);
  if (candidate.grow()) {
    Grow(candidate, spec == nullptr ? nullptr : spec->jobspec.get(), cycle, outcome);
  } else if (const graph::Placement* held = engine_->Find(key); held != nullptr) {
    outcome->set_kind(Outcome::KIND_ALLOCATED);
    outcome->set_at_s(held->start_s);
    outcome->set_placement_hash(PlacementHash(ToProto(*held)));
    const bool elastic =
        spec != nullptr && spec->jobspec != nullptr && spec->jobspec->min_slots != 0;
    if (elastic) outcome->set_slots(static_cast<uint32_t>(held->slots.size()));
  } else if (spec == nullptr) {
    outcome->set_kind(Outcome::KIND_INVALID);
    outcome->set_reason(fmt::format("the matcher has no jobspec of part {}", candidate.part()));
  } else if (spec->jobspec == nullptr) {
    outcome->set_kind(Outcome::KIND_INVALID);
    outcome->set_reason(spec->error);
  } else if (engine_->nodes() == 0) {
    outcome->set_kind(Outcome::KIND_BUSY);
    outcome->set_reason(
        fmt::format("pool {} has no nodes{}", pool_, state_.synced() ? "" : " yet"));
  } else if (spec->jobspec->min_slots != 0) {
    MatchElastic(candidate, *spec->jobspec, promised, cycle, outcome);
    return;
  } else {
    Match(candidate, *spec->jobspec, promised, cycle, outcome);
    return;
  }
  if (promised) Forget(key, cycle);
}

void MatcherCore::Match(const Candidate& candidate,
                        const graph::Jobspec& jobspec,
                        bool promised,
                        Cycle* cycle,
                        Outcome* outcome) {
  if (promised && MatchReserved(candidate, jobspec, cycle, outcome)) return;
  // A candidate that is named twice.
  const AllocationKey key{candidate.job_id(), candidate.attempt(), candidate.part()};
  if (reservations_.Has(key)) Forget(key, cycle);
  const bool refused = !MayPreempt(candidate) && IsRefused(*cycle, candidate, jobspec);
  if (cycle->promised.empty() || refused) {
    MatchNew(candidate, jobspec, cycle, outcome);
    return;
  }
  const graph::MatchRequest now = StartNow(*cycle, candidate, jobspec);
  if (engine_->Match(now).kind == graph::OutcomeKind::kAllocated) {
    Allocated(now.key, *cycle, outcome);
    return;
  }
  PassThoseBehind(SlipBy(events::v1::Slip::CAUSE_AHEAD, key.job_id), cycle, [&]() {
    MatchNew(candidate, jobspec, cycle, outcome);
    return outcome->kind() == Outcome::KIND_ALLOCATED ||
           outcome->kind() == Outcome::KIND_RESERVED || outcome->victims_size() > 0;
  });
}

void MatcherCore::MatchNew(const Candidate& candidate,
                           const graph::Jobspec& jobspec,
                           Cycle* cycle,
                           Outcome* outcome) {
  if (MayPreempt(candidate) && Preempt(candidate, jobspec, cycle, outcome)) return;
  if (IsRefused(*cycle, candidate, jobspec)) {
    const Cycle::Refusal& refused = cycle->refusals.at(RefusedAs(jobspec, candidate));
    outcome->set_kind(refused.kind);
    outcome->set_reason(refused.reason);
    outcome->set_slots_now(refused.slots_now);
    SayLength(candidate, outcome);
    return;
  }
  const graph::MatchRequest request = RequestOf(*cycle, candidate, jobspec);
  const graph::Outcome matched = engine_->Match(request);
  if (matched.kind == graph::OutcomeKind::kAllocated) {
    Allocated(request.key, *cycle, outcome);
    return;
  }
  if (matched.kind == graph::OutcomeKind::kReserved) {
    reservations_.Put(request.key, *matched.placement);
  }
  NotAllocated(candidate, jobspec, matched, cycle, outcome);
}

int64_t MatcherCore::DurationOf(const Candidate& candidate) {
  return candidate.duration_s() == 0 ? graph::kForever : candidate.duration_s();
}

std::string MatcherCore::RefusedAs(const graph::Jobspec& jobspec, const Candidate& candidate) {
  std::string as = jobspec.shape;
  for (const std::string& window : candidate.windows()) as += "\n" + window;
  return as;
}

bool MatcherCore::IsRefused(const Cycle& cycle,
                            const Candidate& candidate,
                            const graph::Jobspec& jobspec) const {
  const auto refused = cycle.refusals.find(RefusedAs(jobspec, candidate));
  return refused != cycle.refusals.end() && DurationOf(candidate) >= refused->second.shortest_s &&
         (!MayReserve(cycle, candidate) || refused->second.kind == Outcome::KIND_UNSATISFIABLE);
}

graph::MatchRequest MatcherCore::RequestOf(const Cycle& cycle,
                                           const Candidate& candidate,
                                           const graph::Jobspec& jobspec) const {
  graph::MatchRequest request = StartNow(cycle, candidate, jobspec);
  request.operation = MayReserve(cycle, candidate) ? graph::Operation::kAllocateOrReserve
                                                   : graph::Operation::kAllocateWithSatisfiability;
  return request;
}

graph::MatchRequest MatcherCore::StartNow(const Cycle& cycle,
                                          const Candidate& candidate,
                                          const graph::Jobspec& jobspec,
                                          int64_t longer_s) {
  return {.operation = graph::Operation::kAllocate,
          .key = {candidate.job_id(), candidate.attempt(), candidate.part()},
          .jobspec = jobspec,
          .now_s = cycle.request.now_s(),
          .duration_s = candidate.duration_s() == 0 ? 0 : candidate.duration_s() + longer_s,
          .corrected = cycle.CorrectsPlans(),
          .bound_s = candidate.bound_s(),
          .enforced = candidate.enforced()};
}

void MatcherCore::Allocated(const AllocationKey& key, const Cycle& cycle, Outcome* outcome) {
  outcome->set_kind(Outcome::KIND_ALLOCATED);
  outcome->set_at_s(cycle.request.now_s());
  outcome->set_placement_hash(WriteAllocation(key));
}

void MatcherCore::NotAllocated(const Candidate& candidate,
                               const graph::Jobspec& jobspec,
                               const graph::Outcome& matched,
                               Cycle* cycle,
                               Outcome* outcome) {
  // Rules 1: a job that can be promised nothing is protected by letting no other pass.
  cycle->stops = matched.waits_for_unending && !cycle->IsIndependent();
  const bool never = matched.kind == graph::OutcomeKind::kUnsatisfiable;
  std::string refused_as = RefusedAs(jobspec, candidate);
  const auto refused = cycle->refusals.find(refused_as);
  if (refused != cycle->refusals.end()) {
    outcome->set_reason(refused->second.reason);
    outcome->set_slots_now(refused->second.slots_now);
  } else {
    Explain(candidate, jobspec, never, cycle, outcome);
  }
  if (matched.kind == graph::OutcomeKind::kReserved) {
    outcome->set_kind(Outcome::KIND_RESERVED);
    outcome->set_at_s(matched.at_s);
    ++cycle->reserved[candidate.rule()];
    cycle->last_reserved[candidate.rule()] = candidate.job_id();
    if (cycle->first_reserved.empty()) cycle->first_reserved = candidate.job_id();
  } else {
    outcome->set_kind(never && state_.synced() ? Outcome::KIND_UNSATISFIABLE : Outcome::KIND_BUSY);
  }
  const Outcome::Kind kind =
      outcome->kind() == Outcome::KIND_UNSATISFIABLE ? outcome->kind() : Outcome::KIND_BUSY;
  if (refused != cycle->refusals.end()) {
    refused->second.kind = kind;
    refused->second.shortest_s = DurationOf(candidate);
  } else {
    cycle->refusals[std::move(refused_as)] = {
        kind, outcome->reason(), outcome->slots_now(), DurationOf(candidate)};
  }
  SayLength(candidate, outcome);
  if (matched.waits_for_unending && candidate.overdue() && cycle->kept.for_job.empty()) {
    KeepNodesFor(candidate, jobspec, cycle, outcome);
  }
}

void MatcherCore::KeepNodesFor(const Candidate& candidate,
                               const graph::Jobspec& jobspec,
                               Cycle* cycle,
                               Outcome* outcome) const {
  const auto& names = state_.config().levels();
  const auto levels = graph::ParseLevels({names.begin(), names.end()});
  CHECK(levels.ok(), "{}", Message(levels.status()));
  cycle->kept = {.for_job = candidate.job_id(), .nodes = NodesToKeep(*engine_, *levels, jobspec)};
  cycle->closed = false;
  const size_t count = cycle->kept.nodes.size();
  outcome->mutable_reason()->append(fmt::format(
      "; {} node{} kept for it from jobs without an end", count, count == 1 ? " is" : "s are"));
}

void MatcherCore::Explain(const Candidate& candidate,
                          const graph::Jobspec& jobspec,
                          bool never,
                          Cycle* cycle,
                          Outcome* outcome) const {
  // To explain is to look at all nodes, which is for those that are next.
  if (!never && cycle->explained++ >= kMostExplained) {
    outcome->set_reason("what it asks for is in use");
    return;
  }
  const graph::Explanation why = engine_->Explain(jobspec);
  outcome->set_slots_now(static_cast<uint32_t>(std::min<uint64_t>(why.slots_now, jobspec.slots)));
  if (!never) {
    if (std::optional<std::string> kept = WhyKept(candidate, jobspec, why, *cycle)) {
      outcome->set_reason(*std::move(kept));
      return;
    }
  }
  const bool has_room = !never && why.slots_now >= jobspec.slots;
  if (has_room && candidate.duration_s() == 0 && !cycle->kept.nodes.empty()) {
    outcome->set_reason(
        fmt::format("there is room, but {} of the nodes are kept from jobs without an end for job "
                    "{}, which has waited long as the first of its queue",
                    cycle->kept.nodes.size(),
                    cycle->kept.for_job));
    return;
  }
  if (has_room && !cycle->first_reserved.empty()) {
    outcome->set_reason(
        fmt::format("there is room, but it would delay job {}, which has a "
                    "reservation",
                    cycle->first_reserved));
    return;
  }
  const bool unknown = never && !state_.synced();
  outcome->set_reason(unknown ? why.sentence +
                                    fmt::format(" (not all nodes of pool {} are known yet)", pool_)
                              : why.sentence);
}

}  // namespace fluxqueue::matcher_core
