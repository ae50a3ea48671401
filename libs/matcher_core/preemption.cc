// Whose room would let a candidate start, of those that may be stopped for it.
//
// The naive way is to try every subset. Instead: what is free where, with whom, is written down as
// plain amounts (stop_model.h), and the fewest whose leaving makes room are found there
// (stop_search.h), those that lose least among equals. Then these are taken out of the graph, and a
// match says whether that is so: it knows about parts of gpus that others use, engines that give
// whole cores, levels that are preferred. If not, all are taken out, and the shortest beginning of
// the list that is enough is found by halving (those that lose least stand first). Of what was
// found everyone goes back in, those that lose most first, whose room turns out not to be needed.
// What is left is minimal: without any one of them it does not fit.
//
// No job is to be stopped in vain:
// - What is being stopped already is out from the start. Where that is enough no other is named.
// - Those that are stopped take their time (Candidate.stop_s), so what is chosen must be of use
// then:
//   there must be room for as much longer, before windows and what is reserved.
// - Those ahead who wait have their turn first in the next cycle, too. So they are tried once more,
//   as they will be then, with the room that would come free. When the candidate has none beside
//   what they take, it waits as anybody.
// - What queues can spare of what they hold beyond their guarantee is kept book of for the whole
//   cycle (lenders.h), so that the queue does not refuse what was chosen.
//
// What was found is kept for the rest of the cycle: the candidate holds it under its own key,
// besides the victims, which hold it too; whoever comes behind is matched around both. So room that
// is free now and that it counts on is not given away either. An engine that cannot hold more than
// there is (fluxion) ends the cycle instead.
//
// Cycles of rules 2 name a few victims with the candidate; of these a beginning is found by
// halving.
#include <algorithm>
#include <numeric>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/holding.h"
#include "libs/graph/levels.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/lenders.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/removal.h"
#include "libs/matcher_core/stop_model.h"
#include "libs/matcher_core/stop_search.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::Outcome;

namespace {

// The last one first.
std::vector<size_t> Backwards(size_t size) {
  std::vector<size_t> order(size);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

bool FindNamed(const Candidate& candidate, const graph::MatchRequest& request, Removal* removal) {
  // One that is named twice, or has given everything back since, is none.
  for (const events::v1::AllocationKey& named : candidate.victims()) {
    removal->Add(FromProto(named));
  }
  std::vector<size_t> order(removal->size());
  std::iota(order.begin(), order.end(), 0);
  if (!removal->FindBeginning(request, order)) return false;
  removal->Spare(request, Backwards(removal->size()));
  return true;
}

}  // namespace

// Those that may be stopped for a candidate, in a removal: those that are being stopped, then those
// that lose least first.
struct MatcherCore::Stoppables {
  Removal removal;
  std::vector<int> places;  // in the request, of each
  size_t stopping = 0;
};

bool MatcherCore::MayPreempt(const Candidate& candidate) {
  return !candidate.victims().empty() || !candidate.stoppable().empty();
}

bool MatcherCore::Preempt(const Candidate& candidate,
                          const graph::Jobspec& jobspec,
                          Cycle* cycle,
                          Outcome* outcome) {
  const graph::MatchRequest request = StartNow(*cycle, candidate, jobspec);
  if (engine_->Match(request).kind == graph::OutcomeKind::kAllocated) {
    outcome->set_kind(Outcome::KIND_ALLOCATED);
    outcome->set_at_s(cycle->request.now_s());
    outcome->set_placement_hash(WriteAllocation(request.key));
    return true;
  }
  if (!candidate.stoppable().empty()) return PreemptAnybody(candidate, jobspec, cycle, outcome);
  Removal removal(engine_.get());
  if (!FindNamed(candidate, request, &removal)) return false;
  AwaitVictims(request, &removal, cycle, outcome);
  return true;
}

void MatcherCore::AwaitVictims(const graph::MatchRequest& request,
                               Removal* removal,
                               Cycle* cycle,
                               Outcome* outcome) {
  for (size_t i = 0; i < removal->size(); ++i) {
    if (!removal->is_out(i)) continue;
    *outcome->add_victims() = ToProto(removal->key(i));
    cycle->awaited.push_back(removal->key(i));
  }
  const bool keeps = engine_kind().name == "native";
  if (keeps) {
    const graph::Outcome kept = engine_->Match(request);
    CHECK(kept.kind == graph::OutcomeKind::kAllocated, "job {}", request.key.job_id);
    cycle->room_kept.push_back(request.key);
  } else {
    cycle->stops = true;
  }
  removal->PutBack();
  outcome->set_kind(Outcome::KIND_BUSY);
  const int count = outcome->victims_size();
  outcome->set_reason(fmt::format("starts when {} {} given back what {} by being stopped",
                                  count,
                                  count == 1 ? "job has" : "jobs have",
                                  count == 1 ? "it holds" : "they hold"));
}

bool MatcherCore::PreemptAnybody(const Candidate& candidate,
                                 const graph::Jobspec& jobspec,
                                 Cycle* cycle,
                                 Outcome* outcome) {
  // What was of no use to one is of none to another like it.
  std::string helpless = fmt::format("{}\n{}\n{}\n{}",
                                     RefusedAs(jobspec, candidate),
                                     candidate.duration_s(),
                                     candidate.stoppable(),
                                     candidate.lenders());
  if (cycle->helpless.contains(helpless)) return false;
  const events::v1::CycleRequested& request = cycle->request;
  if (!cycle->lenders) cycle->lenders.emplace(request);
  Stoppables stoppables{.removal = Removal(engine_.get()), .places = {}, .stopping = 0};
  Removal& removal = stoppables.removal;
  for (const bool stopping : {true, false}) {
    for (int i = 0; i < request.stoppable_size(); ++i) {
      if (request.stoppable(i).stopping() != stopping) continue;
      if (!HasBit(candidate.stoppable(), static_cast<size_t>(i))) continue;
      if (removal.Add(FromProto(request.stoppable(i).key()))) stoppables.places.push_back(i);
    }
    if (stopping) stoppables.stopping = removal.size();
  }
  for (size_t i = 0; i < stoppables.stopping; ++i) removal.Set(i, true);
  const graph::MatchRequest now = StartNow(*cycle, candidate, jobspec);
  if (stoppables.stopping > 0 && removal.Fits(now)) {
    removal.Spare(now, Backwards(removal.size()));
    AwaitVictims(now, &removal, cycle, outcome);
    return true;
  }
  const graph::MatchRequest late = StartNow(*cycle, candidate, jobspec, candidate.stop_s());
  if (!ChooseVictims(candidate, late, *cycle, &stoppables) ||
      !StartsBehindThoseAhead(candidate, late, &removal, cycle)) {
    cycle->helpless.insert(std::move(helpless));
    return false;
  }
  for (size_t i = stoppables.stopping; i < removal.size(); ++i) {
    if (removal.is_out(i)) cycle->lenders->Stop(stoppables.places[i]);
  }
  AwaitVictims(late, &removal, cycle, outcome);
  return true;
}

bool MatcherCore::ChooseVictims(const Candidate& candidate,
                                const graph::MatchRequest& request,
                                const Cycle& cycle,
                                Stoppables* stoppables) const {
  Removal& removal = stoppables->removal;
  const size_t first = stoppables->stopping;
  std::vector<graph::Placement> placed;
  for (size_t i = first; i < removal.size(); ++i) placed.push_back(removal.Placed(i));
  std::vector<const graph::Placement*> held;
  for (const graph::Placement& placement : placed) held.push_back(&placement);
  if (held.empty()) return false;
  StopProblem problem = DescribeRoom(*engine_, FitOf(candidate, request, cycle), held);
  for (size_t i = 0; i < held.size(); ++i) {
    cycle.lenders->Describe(stoppables->places[first + i], &problem.holders[i]);
  }
  problem.lenders = cycle.lenders->For(candidate);
  bool found = false;
  if (const std::optional<std::vector<size_t>> chosen = FewestToStop(problem)) {
    for (const size_t i : *chosen) removal.Set(first + i, true);
    found = removal.Fits(request);
  }
  if (!found) {
    std::vector<size_t> order = SparedTogether(problem);
    for (size_t& i : order) i += first;
    for (size_t i = first; i < removal.size(); ++i) removal.Set(i, false);
    found = removal.FindBeginning(request, order);
  }
  if (found) removal.Spare(request, Backwards(removal.size()));
  return found;
}

JobToFit MatcherCore::FitOf(const Candidate& candidate,
                            const graph::MatchRequest& request,
                            const Cycle& cycle) const {
  JobToFit job{
      .jobspec = request.jobspec,
      .now_s = request.now_s,
      .until_s = request.now_s + (request.duration_s == 0 ? graph::kForever : request.duration_s),
      .closures = Closures({candidate.windows().begin(), candidate.windows().end()}, request.now_s),
      .levels = {},
      .reserved = {}};
  absl::StatusOr<std::vector<graph::Level>> levels =
      graph::ParseLevels({state_.config().levels().begin(), state_.config().levels().end()});
  CHECK(levels.ok(), "{}", Message(levels.status()));
  job.levels = *std::move(levels);
  // What is reserved for itself and for those behind is not on the graph.
  const std::set<AllocationKey> behind(cycle.promised.begin(), cycle.promised.end());
  for (const auto& [key, placement] : reservations_.map()) {
    if (key != request.key && !behind.contains(key)) job.reserved.push_back(&placement);
  }
  return job;
}

// As in the next cycle, when those who were chosen are gone: those ahead, each by the rule of its
// queue, and then the candidate. What is promised to those ahead is planned again, as who stands
// before them may take it.
class MatcherCore::NextCycle {
 public:
  // `own`: the candidate's.
  NextCycle(MatcherCore* core, Cycle* cycle, const AllocationKey& own)
      : core_(*core), cycle_(*cycle), kept_(core->engine_.get()), awaited_(core->engine_.get()) {
    reserved_.resize(static_cast<size_t>(cycle->request.rules_size()));
    for (const AllocationKey& key : cycle->room_kept) kept_.Add(key);
    for (const AllocationKey& key : cycle->awaited) awaited_.Add(key);
    const std::set<AllocationKey> behind(cycle->promised.begin(), cycle->promised.end());
    for (const auto& [key, promise] : core_.reservations_.map()) {
      if (key == own || behind.contains(key)) continue;
      core_.engine_->DropReservation(key);
      put_away_.emplace_back(key, &promise);
    }
  }
  ~NextCycle() {
    for (auto key = taken_.rbegin(); key != taken_.rend(); ++key) {
      core_.engine_->Release(*key);
      core_.engine_->DropReservation(*key);
    }
    awaited_.PutBack();
    kept_.PutBack();
    for (const auto& [key, promise] : put_away_) {
      CHECK(core_.engine_->Reserve(key, *promise), "job {}", key.job_id);
    }
  }
  NextCycle(const NextCycle&) = delete;
  NextCycle& operator=(const NextCycle&) = delete;

  // All that stand ahead of the candidate.
  void TryThoseAhead(const Candidate& candidate) {
    refused_.clear();
    passed_over_.clear();
    for (const Candidate& other : cycle_.request.candidates()) {
      if (&other == &candidate) return;
      Try(other);
    }
  }
  // Who waits for others to be stopped may take any room that comes free before theirs does.
  void LetGoOfKeptRoom() { SetAll(&kept_); }
  void StopThoseAwaited() { SetAll(&awaited_); }

 private:
  static void SetAll(Removal* removal) {
    for (size_t i = 0; i < removal->size(); ++i) removal->Set(i, true);
  }

  void Try(const Candidate& other) {
    const AllocationKey key{other.job_id(), other.attempt(), other.part()};
    // It holds its slots by now, or the room that is kept for it.
    if (other.grow() || core_.engine_->Find(key) != nullptr) return;
    const Spec* spec = core_.specs_.Find(SpecKey(other.job_id(), other.part()));
    if (spec == nullptr || spec->jobspec == nullptr) return;
    if (other.rule() >= reserved_.size() || passed_over_.contains(other.rule())) return;
    const auto& rule = cycle_.request.rules(static_cast<int>(other.rule()));
    const graph::OutcomeKind kind = Match(other, key, *spec->jobspec);
    const bool waits = kind == graph::OutcomeKind::kBusy || kind == graph::OutcomeKind::kReserved;
    if (waits && rule.stop_at_first_blocked()) passed_over_.insert(other.rule());
  }

  struct Refusal {
    int64_t shortest_s = 0;
    graph::OutcomeKind kind = graph::OutcomeKind::kBusy;
  };

  graph::OutcomeKind Match(const Candidate& other,
                           const AllocationKey& key,
                           const graph::Jobspec& whole) {
    std::string as = RefusedAs(whole, other);
    const bool reserves = MayReserve(cycle_.request, reserved_, other);
    const auto refused = refused_.find(as);
    if (!reserves && refused != refused_.end() && DurationOf(other) >= refused->second.shortest_s) {
      return refused->second.kind;
    }
    core_.CloseNodes(other, &cycle_);
    const graph::OutcomeKind kind = Take(other, key, whole, reserves);
    if (kind != graph::OutcomeKind::kAllocated) {
      refused_[std::move(as)] = {DurationOf(other), kind};
    }
    if (kind == graph::OutcomeKind::kReserved) ++reserved_[other.rule()];
    return kind;
  }

  // An elastic job takes all that there is.
  graph::OutcomeKind Take(const Candidate& other,
                          const AllocationKey& key,
                          const graph::Jobspec& whole,
                          bool reserves) {
    const bool is_elastic = whole.min_slots != 0;
    if (is_elastic && core_.engine_->Match(StartNow(cycle_, other, whole)).kind ==
                          graph::OutcomeKind::kAllocated) {
      taken_.push_back(key);
      return graph::OutcomeKind::kAllocated;
    }
    const graph::Jobspec least = is_elastic ? graph::WithSlots(whole, whole.min_slots) : whole;
    graph::MatchRequest request = StartNow(cycle_, other, least);
    request.operation = reserves ? graph::Operation::kAllocateOrReserve
                                 : graph::Operation::kAllocateWithSatisfiability;
    const graph::OutcomeKind kind = core_.engine_->Match(request).kind;
    const bool takes =
        kind == graph::OutcomeKind::kAllocated || kind == graph::OutcomeKind::kReserved;
    if (takes) taken_.push_back(key);
    return kind;
  }

  MatcherCore& core_;
  Cycle& cycle_;
  Removal kept_;     // the room of those who wait for others to be stopped
  Removal awaited_;  // these others
  std::vector<std::pair<AllocationKey, const graph::Placement*>> put_away_;
  std::vector<AllocationKey> taken_;
  std::vector<uint32_t> reserved_;                    // by rule
  std::set<uint32_t> passed_over_;                    // rules
  std::unordered_map<std::string, Refusal> refused_;  // by shape and windows
};

bool MatcherCore::StartsBehindThoseAhead(const Candidate& candidate,
                                         const graph::MatchRequest& request,
                                         Removal* removal,
                                         Cycle* cycle) {
  const auto fits = [&]() {
    CloseNodes(candidate, cycle);
    return removal->Fits(request);
  };
  {
    NextCycle next(this, cycle, request.key);
    next.TryThoseAhead(candidate);
    if (!fits()) return false;
  }
  if (cycle->room_kept.empty()) return true;
  // Its own victims may be gone first, and those for whom others are stopped take their room.
  NextCycle next(this, cycle, request.key);
  next.LetGoOfKeptRoom();
  next.TryThoseAhead(candidate);
  next.StopThoseAwaited();
  next.TryThoseAhead(candidate);
  return fits();
}

void MatcherCore::ReleaseRoomKept(Cycle* cycle) {
  for (const AllocationKey& key : cycle->room_kept) engine_->Release(key);
  cycle->room_kept.clear();
}

}  // namespace fluxqueue::matcher_core
