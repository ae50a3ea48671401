#include "libs/scheduling/victims.h"

#include <algorithm>
#include <tuple>

#include "libs/scheduling/fair_share.h"

namespace fluxqueue::scheduling {
namespace {

// Where the ways up of two queues meet: the queues below that point. Both null: one queue is above
// the other, or they are the same.
struct Branches {
  const QueueNode* mine = nullptr;
  size_t theirs = 0;  // how many rungs of the other's way up are below the point
};

Branches BranchesOf(const Owner& mine, const Owner& theirs) {
  size_t common = 0;
  const size_t most = std::min(mine.rungs.size(), theirs.rungs.size());
  while (common < most && mine.rungs[mine.rungs.size() - 1 - common].queue ==
                              theirs.rungs[theirs.rungs.size() - 1 - common].queue) {
    ++common;
  }
  if (common == most) return {};
  return {mine.rungs[mine.rungs.size() - 1 - common].queue, theirs.rungs.size() - common};
}

const QueueNode* TheirBranch(const Owner& theirs, const Branches& branches) {
  return theirs.rungs[branches.theirs - 1].queue;
}

struct Ranked {
  double lost = 0;
  int64_t start_ms = 0;
  std::string_view id;
  size_t job = 0;

  bool operator<(const Ranked& other) const {
    return std::tuple(lost, -start_ms, id) < std::tuple(other.lost, -other.start_ms, other.id);
  }
};

}  // namespace

void AddAhead(const Owner& owner, const Resources& amounts, Ahead* ahead) {
  for (const Owner::Rung& rung : owner.rungs) (*ahead)[rung.queue].AddShared(amounts);
}

std::optional<Victim::Why> VictimRules::MayStop(const HoldingJob& job) const {
  if (job.stopping || !job.recreatable) return std::nullopt;
  if (ByPriority(job)) return Victim::Why::kPriority;
  if (Reclaims(job)) return Victim::Why::kReclaim;
  return std::nullopt;
}

bool VictimRules::ByPriority(const HoldingJob& job) const {
  if (!preemptor_.by_priority) return false;
  const Owner& mine = *preemptor_.owner;
  if (mine.queue == job.owner->queue) {
    const bool one_line =
        mine.queue->spec.order == JobOrder::kPriority || mine.user == job.owner->user;
    return one_line && job.priority < preemptor_.priority && job.rank < preemptor_.rank;
  }
  const Branches branches = BranchesOf(mine, *job.owner);
  return branches.mine != nullptr &&
         TheirBranch(*job.owner, branches)->spec.priority < branches.mine->spec.priority;
}

bool VictimRules::Reclaims(const HoldingJob& job) const {
  if (!preemptor_.reclaim) return false;
  const Branches branches = BranchesOf(*preemptor_.owner, *job.owner);
  if (branches.mine == nullptr || !HasRightTo(*branches.mine)) return false;
  if (TheirBranch(*job.owner, branches)->spec.priority > branches.mine->spec.priority) {
    return false;
  }
  for (size_t rung = 0; rung < branches.theirs; ++rung) {
    if (!CanSpare(*job.owner->rungs[rung].queue, *job.amounts)) return false;
  }
  return true;
}

// Of some guaranteed resource the job asks for there is so much left of the guarantee, and of none
// it asks for more.
bool VictimRules::HasRightTo(const QueueNode& branch) const {
  bool any = false;
  const auto ahead = ahead_.find(&branch);
  for (size_t i = 0; i < kShared; ++i) {
    const int64_t asked = (*preemptor_.amounts)[i];
    const int64_t guaranteed = branch.spec.guarantee[i];
    if (asked == 0 || guaranteed == 0) continue;
    const int64_t before = ahead == ahead_.end() ? 0 : ahead->second[i];
    // Without a sum, which may be too large.
    if (asked > guaranteed - branch.total.held[i] - before) return false;
    any = true;
  }
  return any;
}

// It still has all of its guarantee then, also of what the job does not ask for: a queue below it
// in anything goes before those that are not, and would take the room again.
bool VictimRules::CanSpare(const QueueNode& queue, const Resources& amounts) const {
  const std::array<int64_t, kShared> spare = SpareOf(queue);
  const auto taken = taken_.find(&queue);
  for (size_t i = 0; i < kShared; ++i) {
    if (spare[i] == kNoGuarantee) continue;
    const int64_t gone = taken == taken_.end() ? 0 : taken->second[i];
    if (amounts[i] > spare[i] - gone) return false;
  }
  return true;
}

std::array<int64_t, kShared> VictimRules::SpareOf(const QueueNode& queue) {
  std::array<int64_t, kShared> spare;
  for (size_t i = 0; i < kShared; ++i) {
    const int64_t guarantee = queue.spec.guarantee[i];
    spare[i] = guarantee == 0 ? kNoGuarantee : queue.total.held[i] - guarantee;
  }
  return spare;
}

std::vector<const QueueNode*> VictimRules::LendersOf(const Owner& preemptor, const Owner& victim) {
  std::vector<const QueueNode*> lenders;
  const Branches branches = BranchesOf(preemptor, victim);
  for (size_t rung = 0; rung < branches.theirs; ++rung) {
    lenders.push_back(victim.rungs[rung].queue);
  }
  return lenders;
}

std::vector<Victim> ChooseVictims(const Preemptor& preemptor,
                                  const std::vector<HoldingJob>& holding,
                                  const Ahead& ahead,
                                  const Resources& capacity,
                                  int64_t now_ms,
                                  size_t most) {
  std::vector<Victim> victims;
  VictimRules rules(preemptor, ahead);
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < holding.size(); ++i) {
    const HoldingJob& job = holding[i];
    if (job.stopping) {
      rules.Take(job);
      if (victims.size() < most) victims.push_back({i, Victim::Why::kStopping});
    } else if (rules.MayStop(job)) {
      const int64_t start_ms = job.start_ms == 0 ? now_ms : job.start_ms;
      const auto ran = static_cast<double>(std::max<int64_t>(0, now_ms - start_ms));
      ranked.push_back({ran * DominantShare(*job.amounts, capacity), start_ms, job.id, i});
    }
  }
  std::sort(ranked.begin(), ranked.end());
  for (const Ranked& next : ranked) {
    if (victims.size() >= most) break;
    const HoldingJob& job = holding[next.job];
    // What was named before it may have used up what its queue can spare.
    const std::optional<Victim::Why> why = rules.MayStop(job);
    if (!why) continue;
    rules.Take(job);
    victims.push_back({next.job, *why});
  }
  return victims;
}

}  // namespace fluxqueue::scheduling
