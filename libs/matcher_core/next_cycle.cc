#include "libs/matcher_core/next_cycle.h"

#include "libs/base/check.h"

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
  // It holds its slots by now, or the room that is kept for it.
  if (other.grow() || line_.engine.Find(KeyOf(other)) != nullptr) return;
  const Spec* spec = line_.view.specs.Find(SpecKey(other.job_id(), other.part()));
  if (spec == nullptr || spec->jobspec == nullptr) return;
  const auto* rule = RuleOf(line_.request, other);
  if (rule == nullptr || passed_over_.contains(other.rule())) return;
  const OutcomeKind kind = Match(other, *spec->jobspec);
  const bool waits = kind == OutcomeKind::kBusy || kind == OutcomeKind::kReserved;
  if (waits && rule->stop_at_first_blocked()) passed_over_.insert(other.rule());
}

OutcomeKind NextCycle::Match(const Candidate& other, const graph::Jobspec& jobspec) {
  std::string as = RefusedAs(jobspec, other);
  const bool reserves = quota_.Allows(other);
  const auto refused = refused_.find(as);
  if (!reserves && refused != refused_.end() && DurationOf(other) >= refused->second.shortest_s) {
    return refused->second.kind;
  }
  line_.closed.CloseTo(other);
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
