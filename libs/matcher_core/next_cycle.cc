#include "libs/matcher_core/next_cycle.h"

#include <algorithm>
#include <limits>

#include "libs/base/check.h"
#include "libs/matcher_core/replacement.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using graph::OutcomeKind;

NextCycle::NextCycle(const Line& line, const AllocationKey& own, const Waiting& waiting)
    : line_(line), kept_(&line.engine), awaited_(&line.engine), quota_(line.request) {
  for (const AllocationKey& key : waiting.room_kept) kept_.Add(key);
  for (const Victims& victims : waiting.awaited) {
    for (const AllocationKey& key : victims.stopped) awaited_.Add(key);
    for (const SlotsOf& some : victims.vacated) awaited_.AddSlots(some.key, some.slots);
  }
  const std::vector<AllocationKey>& behind = line.reservations.behind();
  const std::set<AllocationKey> are_behind(behind.begin(), behind.end());
  for (const auto& [key, promise] : line.view.promises.map()) {
    if (key == own || are_behind.contains(key)) continue;
    line.engine.DropReservation(key);
    put_away_.push_back(key);
  }
}

NextCycle::~NextCycle() {
  for (auto key = taken_.rbegin(); key != taken_.rend(); ++key) {
    line_.engine.Release(*key);
    line_.engine.DropReservation(*key);
  }
  awaited_.PutBack();
  kept_.PutBack();
  for (const AllocationKey& key : put_away_) {
    CHECK(line_.engine.Reserve(key, *line_.view.promises.Find(key)), "job {}", key.job_id);
  }
}

void NextCycle::TryThoseAhead(const Candidate& candidate) {
  refused_.clear();
  passed_over_.clear();
  for (const Candidate& other : line_.request.candidates()) {
    if (&other == &candidate) return;
    Try(other);
  }
}

void NextCycle::Try(const Candidate& other) {
  if (other.grow() && !other.replace()) return;
  // It holds its slots by now, or the room that is kept for it.
  const bool holds = line_.engine.Find(KeyOf(other)) != nullptr;
  if (holds != other.replace()) return;
  const Spec* spec = line_.view.specs.Find(SpecKey(other.job_id(), other.part()));
  if (spec == nullptr || spec->jobspec == nullptr) return;
  if (other.replace()) return TakeInPlace(other, *spec->jobspec);
  const auto* rule = RuleOf(line_.request, other);
  if (rule == nullptr || passed_over_.contains(other.rule())) return;
  const OutcomeKind kind = Match(other, *spec->jobspec);
  const bool waits = kind == OutcomeKind::kBusy || kind == OutcomeKind::kReserved;
  if (waits && rule->stop_at_first_blocked()) passed_over_.insert(other.rule());
}

void NextCycle::TakeInPlace(const Candidate& other, const graph::Jobspec& jobspec) {
  if (jobspec.groups.size() != 1 || jobspec.min_slots != 0) return;
  const AllocationKey key = KeyOf(other);
  const graph::Placement& held = *line_.engine.Find(key);
  const int64_t now_s = line_.request.now_s();
  const int64_t left_s =
      held.duration_s == 0 ? 0 : std::max<int64_t>(1, held.start_s + held.duration_s - now_s);
  Lack lack = LackOf(line_.view, other, jobspec);
  uint32_t& taken = in_place_[key];
  lack.slots -= std::min(lack.slots, taken);
  taken += TakeInParts(lack.slots, lack.is_whole, [&](uint32_t slots) {
    const auto part = static_cast<uint32_t>(std::numeric_limits<uint32_t>::max() - taken_.size());
    return std::any_of(lack.places.begin(), lack.places.end(), [&](const Lack::Place& place) {
      line_.closed.CloseTo(other, place.closed);
      const graph::Jobspec some = graph::WithSlots(place.jobspec, slots);
      graph::MatchRequest request = StartNow(line_.request, other, some);
      request.key.part = part;
      request.duration_s = left_s;
      const bool fits = line_.engine.Match(request).kind == OutcomeKind::kAllocated;
      if (fits) taken_.push_back(request.key);
      return fits;
    });
  });
}

OutcomeKind NextCycle::Match(const Candidate& other, const graph::Jobspec& jobspec) {
  line_.closed.CloseTo(other);
  std::string as = line_.closed.RefusedAs(jobspec, other);
  const bool reserves = quota_.Allows(other);
  const auto refused = refused_.find(as);
  if (!reserves && refused != refused_.end() && DurationOf(other) >= refused->second.shortest_s) {
    return refused->second.kind;
  }
  const OutcomeKind kind = Take(other, jobspec, reserves);
  if (kind != OutcomeKind::kAllocated) refused_[std::move(as)] = {DurationOf(other), kind};
  if (kind == OutcomeKind::kReserved) quota_.Count(other);
  return kind;
}

OutcomeKind NextCycle::Take(const Candidate& other, const graph::Jobspec& jobspec, bool reserves) {
  const AllocationKey key = KeyOf(other);
  const bool is_elastic = jobspec.min_slots != 0;
  if (is_elastic) {
    const graph::MatchRequest all = StartNow(line_.request, other, jobspec);
    if (line_.engine.Match(all).kind == OutcomeKind::kAllocated) {
      taken_.push_back(key);
      return OutcomeKind::kAllocated;
    }
  }
  const graph::Jobspec least = is_elastic ? graph::WithSlots(jobspec, jobspec.min_slots) : jobspec;
  const OutcomeKind kind =
      line_.engine.Match(StartOrReserve(line_.request, other, least, reserves)).kind;
  const bool takes = kind == OutcomeKind::kAllocated || kind == OutcomeKind::kReserved;
  if (takes) taken_.push_back(key);
  return kind;
}

}  // namespace fluxqueue::matcher_core
