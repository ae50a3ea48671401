#include "libs/matcher_core/preemption.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/holding.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/elastic.h"
#include "libs/matcher_core/pool_config.h"
#include "libs/matcher_core/stop_search.h"
#include "libs/matcher_core/windows.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;

namespace {

// Of all elastic jobs together, in one search.
constexpr size_t kMostSlots = 4096;
// Of more slots none is looked at again by itself: each look places all that its job holds.
constexpr size_t kMostLookedAt = 64;

// The last one first.
std::vector<size_t> Backwards(size_t size) {
  std::vector<size_t> order(size);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

// Those that are out without which the request fits, of the holders of the problem, which are parts
// of the removal from `first` on. False: it does not fit without all that can be spared together,
// and these are out.
bool Search(const StopProblem& problem,
            const graph::MatchRequest& request,
            size_t first,
            Removal* removal) {
  if (std::optional<std::vector<size_t>> chosen = FewestToStop(problem)) {
    for (size_t& i : *chosen) i += first;
    removal->SetAll(*chosen, true);
    if (removal->Fits(request)) return true;
    removal->SetAll(*chosen, false);
  }
  std::vector<size_t> order = SparedTogether(problem);
  for (size_t& i : order) i += first;
  return removal->FindBeginning(request, order);
}

}  // namespace

// In a removal: what comes free anyway, then slots that elastic jobs may give back, then jobs that
// may be stopped; of both those that lose least first.
struct VictimSearch::Stoppables {
  struct Part {
    int place = 0;      // in the request
    uint32_t live = 0;  // of slots: how many their job holds
  };
  Removal removal;
  std::vector<Part> parts = {};
  size_t slots = 0;  // the first part that is slots
  size_t jobs = 0;   // and the first job

  bool AreSlots(size_t part) const { return part >= slots && part < jobs; }
};

VictimSearch::VictimSearch(const Line& line)
    : line_(line), keeps_room_(KindOf(line.view.state.config()).name == "native") {}

VictimSearch::~VictimSearch() {
  for (const AllocationKey& key : waiting_.room_kept) line_.engine.Release(key);
}

std::optional<Victims> VictimSearch::Find(const Candidate& candidate,
                                          const graph::Jobspec& jobspec) {
  const graph::MatchRequest now = StartNow(line_.request, candidate, jobspec);
  if (candidate.stoppable().empty()) {
    Removal named(&line_.engine);
    if (!FindNamed(candidate, now, &named)) return std::nullopt;
    return Keep(now, &named);
  }
  // What was of no use to one is of none to another like it.
  std::string like_it = fmt::format("{}\n{}\n{}\n{}",
                                    line_.closed.RefusedAs(jobspec, candidate),
                                    candidate.duration_s(),
                                    candidate.stoppable(),
                                    candidate.lenders());
  if (helpless_.contains(like_it)) return std::nullopt;
  if (!lenders_) lenders_.emplace(line_.request);
  Stoppables stoppables{.removal = Removal(&line_.engine)};
  Removal& removal = stoppables.removal;
  Collect(candidate, &stoppables);
  std::vector<size_t> free(stoppables.slots);
  std::iota(free.begin(), free.end(), 0);
  removal.SetAll(free, true);
  if (stoppables.slots > 0 && removal.Fits(now)) {
    removal.Spare(now, Backwards(removal.size()));
    return Keep(now, &removal);
  }
  const graph::MatchRequest late = StartNow(line_.request, candidate, jobspec, candidate.stop_s());
  if (!Choose(candidate, late, &stoppables) || !StartsBehindThoseAhead(candidate, late, &removal)) {
    helpless_.insert(std::move(like_it));
    return std::nullopt;
  }
  Note(stoppables);
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
  Removal& removal = stoppables->removal;
  const auto add_jobs = [&](bool stopping) {
    for (int i = 0; i < all.size(); ++i) {
      if (all[i].stopping() != stopping) continue;
      if (!HasBit(candidate.stoppable(), static_cast<size_t>(i))) continue;
      if (removal.Add(FromProto(all[i].key()))) stoppables->parts.push_back({.place = i});
    }
  };
  add_jobs(/*stopping=*/true);
  for (int i = 0; i < all.size(); ++i) {
    // Also for a candidate before it, whose room is kept, though the slots are there yet.
    std::set<uint32_t> leaving = lenders_->Vacated(i);
    leaving.insert(all[i].vacating().begin(), all[i].vacating().end());
    const std::vector<uint32_t> slots(leaving.begin(), leaving.end());
    if (removal.AddSlots(FromProto(all[i].key()), slots)) stoppables->parts.push_back({.place = i});
  }
  stoppables->slots = removal.size();
  if (keeps_room_) CollectSlots(candidate, stoppables);
  stoppables->jobs = removal.size();
  add_jobs(/*stopping=*/false);
}

void VictimSearch::CollectSlots(const Candidate& candidate, Stoppables* stoppables) const {
  struct Spare {
    int64_t lost = 0;
    int place = 0;
    uint32_t slot = 0;
    uint32_t live = 0;
  };
  std::vector<Spare> spare;
  for (int i = 0; i < line_.request.stoppable_size(); ++i) {
    const auto& one = line_.request.stoppable(i);
    const bool may = one.spare_slots() > 0 && HasBit(candidate.stoppable(), static_cast<size_t>(i));
    const graph::Placement* placement = may ? line_.engine.Find(FromProto(one.key())) : nullptr;
    if (placement == nullptr) continue;
    std::set<uint32_t> leaving = lenders_->Vacated(i);
    if (leaving.size() >= one.spare_slots()) continue;
    leaving.insert(one.vacating().begin(), one.vacating().end());
    const auto is_live = [placement](uint32_t slot) {
      return slot < placement->slots.size() && !placement->slots[slot].released;
    };
    const auto going = std::count_if(one.vacating().begin(), one.vacating().end(), is_live);
    const uint32_t live = LiveSlots(*placement) - static_cast<uint32_t>(going);
    if (live == 0) continue;
    for (uint32_t slot = 0; slot < placement->slots.size(); ++slot) {
      if (placement->slots[slot].released || leaving.contains(slot)) continue;
      spare.push_back({.lost = one.lost() / live, .place = i, .slot = slot, .live = live});
    }
  }
  // Of one job those that came last.
  std::sort(spare.begin(), spare.end(), [](const Spare& a, const Spare& b) {
    return std::tuple(a.lost, a.place, b.slot) < std::tuple(b.lost, b.place, a.slot);
  });
  if (spare.size() > kMostSlots) spare.resize(kMostSlots);
  for (const Spare& one : spare) {
    const AllocationKey key = FromProto(line_.request.stoppable(one.place).key());
    CHECK(stoppables->removal.AddSlots(key, {one.slot}), "job {}", key.job_id);
    stoppables->parts.push_back({.place = one.place, .live = one.live});
  }
}

bool VictimSearch::Choose(const Candidate& candidate,
                          const graph::MatchRequest& request,
                          Stoppables* stoppables) const {
  if (ChooseSlots(candidate, request, stoppables)) return true;
  return ChooseJobs(candidate, request, stoppables);
}

StopProblem VictimSearch::RoomOf(const Candidate& candidate,
                                 const graph::MatchRequest& request,
                                 size_t first,
                                 size_t last,
                                 const Removal& removal) const {
  std::vector<graph::Placement> placed;
  for (size_t i = first; i < last; ++i) placed.push_back(removal.Placed(i));
  std::vector<const graph::Placement*> held;
  for (const graph::Placement& placement : placed) held.push_back(&placement);
  return DescribeRoom(line_.engine, FitOf(candidate, request), held);
}

bool VictimSearch::ChooseSlots(const Candidate& candidate,
                               const graph::MatchRequest& request,
                               Stoppables* stoppables) const {
  const size_t first = stoppables->slots;
  const size_t last = stoppables->jobs;
  if (first == last) return false;
  StopProblem problem = RoomOf(candidate, request, first, last, stoppables->removal);
  problem.lenders = lenders_->For(candidate);
  std::map<int, uint32_t> spare;  // by place
  for (size_t i = first; i < last; ++i) {
    const auto& [place, live] = stoppables->parts[i];
    lenders_->DescribeSlot(place, live, &problem.holders[i - first]);
    spare[place] = line_.request.stoppable(place).spare_slots() -
                   static_cast<uint32_t>(lenders_->Vacated(place).size());
  }
  std::map<int, size_t> jobs;  // as lenders
  for (const auto& [place, slots] : spare) {
    jobs[place] = AddLenderOfSlots(slots, &problem);
  }
  for (size_t i = first; i < last; ++i) {
    LendSlot(jobs.at(stoppables->parts[i].place), &problem, &problem.holders[i - first]);
  }
  if (!Search(problem, request, first, &stoppables->removal)) return false;
  SpareSlots(request, stoppables);
  return true;
}

void VictimSearch::SpareSlots(const graph::MatchRequest& request, Stoppables* stoppables) {
  Removal& removal = stoppables->removal;
  size_t out = 0;
  for (size_t i = stoppables->slots; i < stoppables->jobs; ++i) out += removal.is_out(i) ? 1 : 0;
  const size_t last = out <= kMostLookedAt ? stoppables->jobs : stoppables->slots;
  removal.Spare(request, Backwards(last));
}

bool VictimSearch::ChooseJobs(const Candidate& candidate,
                              const graph::MatchRequest& request,
                              Stoppables* stoppables) const {
  Removal& removal = stoppables->removal;
  const size_t first = stoppables->jobs;
  if (first == removal.size()) return false;
  StopProblem problem = RoomOf(candidate, request, first, removal.size(), removal);
  Lenders lenders = *lenders_;
  std::map<int, StopProblem::Holder> out;  // what slots hold together, by place
  std::vector<size_t> slots;
  for (size_t i = stoppables->slots; i < first; ++i) {
    if (!removal.is_out(i)) continue;
    const auto& [place, live] = stoppables->parts[i];
    lenders.Vacate(place, removal.slots(i), live);
    StopProblem::Holder slot;
    lenders.DescribeSlot(place, live, &slot);
    StopProblem::Holder& together = out[place];
    together.holds.resize(slot.holds.size(), 0);
    for (size_t r = 0; r < slot.holds.size(); ++r) together.holds[r] += slot.holds[r];
    slots.push_back(i);
  }
  for (size_t i = first; i < removal.size(); ++i) {
    const int place = stoppables->parts[i].place;
    StopProblem::Holder& holder = problem.holders[i - first];
    lenders.Describe(place, &holder);
    const auto without = out.find(place);
    if (without == out.end()) continue;
    for (size_t r = 0; r < holder.holds.size(); ++r) {
      holder.holds[r] = std::max<int64_t>(0, holder.holds[r] - without->second.holds[r]);
    }
  }
  problem.lenders = lenders.For(candidate);
  if (!Search(problem, request, first, &removal)) return false;
  std::vector<size_t> jobs = Backwards(removal.size());
  jobs.resize(removal.size() - first);
  removal.Spare(request, jobs);
  const auto goes_with_all = [&removal](size_t i) { return removal.holder_is_out(i); };
  std::vector<size_t> of_stopped;
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(of_stopped), goes_with_all);
  removal.SetAll(of_stopped, false);
  std::erase_if(slots, goes_with_all);
  const bool fits = removal.FindBeginning(request, slots);
  CHECK(fits, "job {}", request.key.job_id);
  SpareSlots(request, stoppables);
  return true;
}

void VictimSearch::Note(const Stoppables& stoppables) {
  const Removal& removal = stoppables.removal;
  for (size_t i = stoppables.slots; i < removal.size(); ++i) {
    const auto& [place, live] = stoppables.parts[i];
    if (!removal.is_out(i)) continue;
    if (stoppables.AreSlots(i)) {
      lenders_->Vacate(place, removal.slots(i), live);
    } else {
      lenders_->Stop(place);
    }
  }
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
  const std::span<const graph::Closure> by_rules = line_.closed.by_rules();
  job.closures.insert(job.closures.end(), by_rules.begin(), by_rules.end());
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

Victims VictimSearch::Keep(const graph::MatchRequest& request, Removal* removal) {
  Victims victims;
  std::map<AllocationKey, std::vector<uint32_t>> vacated;
  for (size_t i = 0; i < removal->size(); ++i) {
    if (!removal->is_out(i)) continue;
    const std::vector<uint32_t>& slots = removal->slots(i);
    if (slots.empty()) {
      victims.stopped.push_back(removal->key(i));
    } else if (!removal->holder_is_out(i)) {
      std::vector<uint32_t>& all = vacated[removal->key(i)];
      all.insert(all.end(), slots.begin(), slots.end());
    }
  }
  for (auto& [key, slots] : vacated) {
    std::sort(slots.begin(), slots.end());
    victims.vacated.push_back({key, std::move(slots)});
  }
  waiting_.awaited.push_back(victims);
  if (keeps_room_) {
    const graph::Outcome kept = line_.engine.Match(request);
    CHECK(kept.kind == graph::OutcomeKind::kAllocated, "job {}", request.key.job_id);
    waiting_.room_kept.push_back(request.key);
  }
  removal->PutBack();
  return victims;
}

}  // namespace fluxqueue::matcher_core
