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

constexpr uint32_t kAll = (1U << kShared) - 1;

// What is guaranteed to the queue, of what is asked; null: of everything.
uint32_t GuaranteedOf(const QueueNode& queue, const Resources* asked) {
  uint32_t bits = 0;
  for (size_t i = 0; i < kShared; ++i) {
    const bool counts = asked == nullptr || (*asked)[i] > 0;
    if (counts && queue.spec.guarantee[i] > 0) bits |= 1U << i;
  }
  return bits;
}

bool HoldsGuaranteed(const QueueNode& queue, const Resources& amounts) {
  const auto& others = queue.spec.guarantee.others();
  return GuaranteedOf(queue, &amounts) != 0 ||
         std::any_of(others.begin(), others.end(), [&amounts](const auto& guaranteed) {
           return amounts.Of(guaranteed.first) > 0;
         });
}

// What is guaranteed to both, of what is asked; null: of everything.
void AddOthers(const QueueNode& branch, const Resources* asked, VictimRules::Lender* lender) {
  for (const auto& [name, guaranteed] : lender->queue->spec.guarantee.others()) {
    const bool counts = asked == nullptr || asked->Of(name) > 0;
    if (counts && branch.spec.guarantee.Of(name) > 0) lender->others.push_back(name);
  }
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
  for (const Owner::Rung& rung : owner.rungs) (*ahead)[rung.queue].Add(amounts);
}

std::optional<Victim::Why> VictimRules::MayStop(const HoldingJob& job) const {
  if (job.stopping || !job.recreatable || awaits_) return std::nullopt;
  if (ByPriority(job)) return Victim::Why::kPriority;
  if (Reclaims(job)) return Victim::Why::kReclaim;
  return std::nullopt;
}

void VictimRules::TakeStopping(const HoldingJob& job) {
  Take(job);
  awaits_ = awaits_ || MayStandAhead(job);
}

bool VictimRules::MayStandAhead(const HoldingJob& job) const {
  if (!job.recreatable) return false;
  const Owner& mine = *preemptor_.owner;
  if (mine.queue != job.owner->queue) return !PrecedesByPriority(mine, *job.owner);
  const bool one_line =
      mine.queue->spec.order == JobOrder::kPriority || mine.user == job.owner->user;
  // Of equals the one that was submitted first.
  return !one_line || job.rank >= preemptor_.rank;
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
  const std::vector<Lender> lenders = LendersOf(preemptor_, *job.owner);
  return std::all_of(lenders.begin(), lenders.end(), [&](const Lender& lender) {
    return preemptor_.every_resource ? CanSpareOfEvery(lender, *job.amounts)
                                     : CanSpare(lender, *job.amounts);
  });
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
  if (!preemptor_.every_resource) return any;
  for (const auto& [name, guaranteed] : branch.spec.guarantee.others()) {
    const int64_t asked = preemptor_.amounts->Of(name);
    if (asked == 0) continue;
    const int64_t before = ahead == ahead_.end() ? 0 : ahead->second.Of(name);
    if (asked > guaranteed - branch.total.held.Of(name) - before) return false;
    any = true;
  }
  return any;
}

// It still has its guarantee then, by rules up to 6. Where not all of it counts the job holds some
// of what does: there is none left of the guarantee for such a job, so its queue does not go before
// the preemptor's, and does not take the room again (fair_share.h).
bool VictimRules::CanSpare(const Lender& lender, const Resources& amounts) const {
  const std::array<int64_t, kShared> spare = SpareOf(lender);
  const auto taken = taken_.find(lender.queue);
  bool holds_some = lender.counted == kAll;
  for (size_t i = 0; i < kShared; ++i) {
    if (spare[i] == kNoGuarantee) continue;
    const int64_t gone = taken == taken_.end() ? 0 : taken->second[i];
    if (amounts[i] > spare[i] - gone) return false;
    holds_some = holds_some || amounts[i] > 0;
  }
  return holds_some;
}

// The same by rules 7. A job that holds nothing of what is guaranteed to its queue does not go
// before the preemptor's either.
bool VictimRules::CanSpareOfEvery(const Lender& lender, const Resources& amounts) const {
  const std::array<int64_t, kShared> spare = SpareOf(lender);
  const auto taken = taken_.find(lender.queue);
  bool holds_some = false;
  for (size_t i = 0; i < kShared; ++i) {
    if (spare[i] == kNoGuarantee || amounts[i] == 0) continue;
    const int64_t gone = taken == taken_.end() ? 0 : taken->second[i];
    if (amounts[i] > spare[i] - gone) return false;
    holds_some = true;
  }
  for (const std::string_view other : lender.others) {
    const int64_t amount = amounts.Of(other);
    if (amount == 0) continue;
    const int64_t gone = taken == taken_.end() ? 0 : taken->second.Of(other);
    if (amount > SpareOf(lender, other) - gone) return false;
    holds_some = true;
  }
  return holds_some || !HoldsGuaranteed(*lender.queue, amounts);
}

std::array<int64_t, kShared> VictimRules::SpareOf(const Lender& lender) {
  std::array<int64_t, kShared> spare;
  for (size_t i = 0; i < kShared; ++i) {
    const int64_t guarantee = lender.queue->spec.guarantee[i];
    const bool counts = guarantee != 0 && (lender.counted >> i & 1) != 0;
    spare[i] = counts ? lender.queue->total.held[i] - guarantee : kNoGuarantee;
  }
  return spare;
}

int64_t VictimRules::SpareOf(const Lender& lender, std::string_view other) {
  return lender.queue->total.held.Of(other) - lender.queue->spec.guarantee.Of(other);
}

std::vector<VictimRules::Lender> VictimRules::LendersOf(const Preemptor& preemptor,
                                                        const Owner& victim) {
  std::vector<Lender> lenders;
  const Branches branches = BranchesOf(*preemptor.owner, victim);
  if (branches.mine == nullptr) return lenders;
  const uint32_t asked =
      preemptor.by_resource ? GuaranteedOf(*branches.mine, preemptor.amounts) : kAll;
  for (size_t rung = 0; rung < branches.theirs; ++rung) {
    const QueueNode* queue = victim.rungs[rung].queue;
    const uint32_t both = asked & GuaranteedOf(*queue, nullptr);
    Lender lender{queue, both == 0 || asked == kAll ? kAll : both};
    if (preemptor.every_resource) {
      lender.counted = both;
      AddOthers(*branches.mine, preemptor.amounts, &lender);
      if (both == 0 && lender.others.empty()) {
        lender.counted = kAll;
        AddOthers(*queue, nullptr, &lender);
      }
    }
    lenders.push_back(std::move(lender));
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
