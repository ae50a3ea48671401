#include "libs/matcher_core/preemption.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/holding.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/pool_config.h"
#include "libs/matcher_core/stop_search.h"
#include "libs/matcher_core/windows.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;

namespace {

// The last one first.
std::vector<size_t> Backwards(size_t size) {
  std::vector<size_t> order(size);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace

// Those that may be stopped for a candidate, in a removal: those that are being stopped, then those
// that lose least first.
struct VictimSearch::Stoppables {
  Removal removal;
  std::vector<int> places = {};  // in the request, of each
  size_t stopping = 0;
};

VictimSearch::VictimSearch(const Line& line)
    : line_(line), keeps_room_(KindOf(line.view.state.config()).name == "native") {}

VictimSearch::~VictimSearch() {
  for (const AllocationKey& key : waiting_.room_kept) line_.engine.Release(key);
}

std::optional<std::vector<AllocationKey>> VictimSearch::Find(const Candidate& candidate,
                                                             const graph::Jobspec& jobspec) {
  const graph::MatchRequest now = StartNow(line_.request, candidate, jobspec);
  if (candidate.stoppable().empty()) {
    Removal named(&line_.engine);
    if (!FindNamed(candidate, now, &named)) return std::nullopt;
    return Keep(now, &named);
  }
  // What was of no use to one is of none to another like it.
  std::string like_it = fmt::format("{}\n{}\n{}\n{}",
                                    RefusedAs(jobspec, candidate),
                                    candidate.duration_s(),
                                    candidate.stoppable(),
                                    candidate.lenders());
  if (helpless_.contains(like_it)) return std::nullopt;
  if (!lenders_) lenders_.emplace(line_.request);
  Stoppables stoppables{.removal = Removal(&line_.engine)};
  Removal& removal = stoppables.removal;
  Collect(candidate, &stoppables);
  for (size_t i = 0; i < stoppables.stopping; ++i) removal.Set(i, true);
  if (stoppables.stopping > 0 && removal.Fits(now)) {
    removal.Spare(now, Backwards(removal.size()));
    return Keep(now, &removal);
  }
  const graph::MatchRequest late = StartNow(line_.request, candidate, jobspec, candidate.stop_s());
  if (!Choose(candidate, late, &stoppables) || !StartsBehindThoseAhead(candidate, late, &removal)) {
    helpless_.insert(std::move(like_it));
    return std::nullopt;
  }
  for (size_t i = stoppables.stopping; i < removal.size(); ++i) {
    if (removal.is_out(i)) lenders_->Stop(stoppables.places[i]);
  }
  return Keep(late, &removal);
}

bool VictimSearch::FindNamed(const Candidate& candidate,
                             const graph::MatchRequest& request,
                             Removal* removal) const {
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

void VictimSearch::Collect(const Candidate& candidate, Stoppables* stoppables) const {
  const auto& all = line_.request.stoppable();
  for (const bool stopping : {true, false}) {
    for (int i = 0; i < all.size(); ++i) {
      if (all[i].stopping() != stopping) continue;
      if (!HasBit(candidate.stoppable(), static_cast<size_t>(i))) continue;
      if (stoppables->removal.Add(FromProto(all[i].key()))) stoppables->places.push_back(i);
    }
    if (stopping) stoppables->stopping = stoppables->removal.size();
  }
}

bool VictimSearch::Choose(const Candidate& candidate,
                          const graph::MatchRequest& request,
                          Stoppables* stoppables) const {
  Removal& removal = stoppables->removal;
  const size_t first = stoppables->stopping;
  std::vector<const graph::Placement*> held;
  for (size_t i = first; i < removal.size(); ++i) held.push_back(&removal.placement(i));
  if (held.empty()) return false;
  StopProblem problem = DescribeRoom(line_.engine, FitOf(candidate, request), held);
  for (size_t i = 0; i < held.size(); ++i) {
    lenders_->Describe(stoppables->places[first + i], &problem.holders[i]);
  }
  problem.lenders = lenders_->For(candidate);
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

JobToFit VictimSearch::FitOf(const Candidate& candidate, const graph::MatchRequest& request) const {
  const matcher::v1::PoolState& state = line_.view.state;
  JobToFit job{
      .jobspec = request.jobspec,
      .now_s = request.now_s,
      .until_s = request.now_s + (request.duration_s == 0 ? graph::kForever : request.duration_s),
      .closures =
          Closures(state, {candidate.windows().begin(), candidate.windows().end()}, request.now_s),
      .levels = LevelsOf(state.config()),
      .reserved = {}};
  // What is reserved for itself and for those behind is not on the graph.
  const std::vector<AllocationKey>& behind = line_.reservations.behind();
  const std::set<AllocationKey> are_behind(behind.begin(), behind.end());
  for (const auto& [key, placement] : line_.view.promises.map()) {
    if (key != request.key && !are_behind.contains(key)) job.reserved.push_back(&placement);
  }
  return job;
}

bool VictimSearch::StartsBehindThoseAhead(const Candidate& candidate,
                                          const graph::MatchRequest& request,
                                          Removal* removal) {
  const auto fits = [&]() {
    line_.closed.CloseTo(candidate);
    return removal->Fits(request);
  };
  {
    NextCycle next(line_, request.key, waiting_);
    next.TryThoseAhead(candidate);
    if (!fits()) return false;
  }
  if (waiting_.room_kept.empty()) return true;
  // Its own victims may be gone first, and those for whom others are stopped take their room.
  NextCycle next(line_, request.key, waiting_);
  next.LetGoOfKeptRoom();
  next.TryThoseAhead(candidate);
  next.StopThoseAwaited();
  next.TryThoseAhead(candidate);
  return fits();
}

std::vector<AllocationKey> VictimSearch::Keep(const graph::MatchRequest& request,
                                              Removal* removal) {
  std::vector<AllocationKey> victims;
  for (size_t i = 0; i < removal->size(); ++i) {
    if (removal->is_out(i)) victims.push_back(removal->key(i));
  }
  waiting_.awaited.insert(waiting_.awaited.end(), victims.begin(), victims.end());
  if (keeps_room_) {
    const graph::Outcome kept = line_.engine.Match(request);
    CHECK(kept.kind == graph::OutcomeKind::kAllocated, "job {}", request.key.job_id);
    waiting_.room_kept.push_back(request.key);
  }
  removal->PutBack();
  return victims;
}

}  // namespace fluxqueue::matcher_core
