#include "libs/scheduling/stop_list.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "libs/base/int128.h"
#include "libs/scheduling/virtual_machine.h"

namespace fluxqueue::scheduling {
namespace {

// Stands for a pool whose capacity is not known, as in fair_share.h.
Resources OneNode() {
  Resources node;
  node.Add("cpu", 64'000);
  node.Add("memory", int64_t{256} << 30);
  node.Add("gpu", 8);
  return node;
}

int64_t LostBy(const HoldingJob& job, const Resources& capacity, int64_t now_ms) {
  if (job.start_ms == 0) return 0;
  const int64_t ran_s = std::max<int64_t>(0, now_ms - job.start_ms) / 1000;
  const Int128 lost = static_cast<Int128>(ran_s) * SizeOf(*job.amounts, capacity);
  return static_cast<int64_t>(std::min<Int128>(lost, std::numeric_limits<int64_t>::max()));
}

bool HasBound(const VictimRules::Lender& lender) {
  const auto spare = VictimRules::SpareOf(lender);
  return !lender.others.empty() || std::any_of(spare.begin(), spare.end(), [](int64_t amount) {
    return amount != VictimRules::kNoGuarantee;
  });
}

std::vector<int64_t> SpareOf(const VictimRules::Lender& lender,
                             const std::vector<std::string>& others) {
  const auto shared = VictimRules::SpareOf(lender);
  std::vector<int64_t> spare(shared.begin(), shared.end());
  for (const std::string& other : others) {
    const bool counts = std::binary_search(lender.others.begin(), lender.others.end(), other);
    spare.push_back(counts ? VictimRules::SpareOf(lender, other) : VictimRules::kNoGuarantee);
  }
  return spare;
}

// What is being stopped, of the lender and of those above it.
void TakeFromSpare(const Resources& amounts, std::optional<size_t> lender, StopList* list) {
  if (!lender) return;
  const std::vector<int64_t> holds = list->HoldsOf(amounts);
  for (; lender; lender = list->lenders[*lender].above) {
    std::vector<int64_t>& spare = list->lenders[*lender].spare;
    for (size_t i = 0; i < holds.size(); ++i) {
      if (spare[i] != VictimRules::kNoGuarantee) spare[i] -= holds[i];
    }
  }
}

// Who has less than its guarantee of a resource may lose jobs that hold none of it.
void KeepNotBelowZero(StopList* list) {
  for (StopList::Lender& lender : list->lenders) {
    for (int64_t& amount : lender.spare) amount = std::max<int64_t>(amount, 0);
  }
}

}  // namespace

std::vector<int64_t> StopList::HoldsOf(const Resources& amounts) const {
  std::vector<int64_t> holds(amounts.shared().begin(), amounts.shared().end());
  for (const std::string& other : others) holds.push_back(amounts.Of(other));
  return holds;
}

StopListMaker::StopListMaker(const std::vector<HoldingJob>& holding,
                             const Resources& capacity,
                             int64_t now_ms)
    : holding_(holding) {
  const Resources whole = capacity[kCpu] > 0 ? capacity : OneNode();
  std::vector<std::tuple<int64_t, int64_t, std::string_view, size_t>> order;
  for (size_t i = 0; i < holding.size(); ++i) {
    const HoldingJob& job = holding[i];
    if (job.stopping) {
      ranked_.push_back({i, 0});
    } else if (job.recreatable) {
      const int64_t start_ms = job.start_ms == 0 ? now_ms : job.start_ms;
      order.emplace_back(LostBy(job, whole, now_ms), -start_ms, job.id, i);
    }
  }
  stopping_ = ranked_.size();
  std::sort(order.begin(), order.end());
  for (const auto& [lost, start, id, job] : order) ranked_.push_back({job, lost});
}

bool StopListMaker::Add(const Preemptor& preemptor, const Ahead& ahead) {
  VictimRules rules(preemptor, ahead);
  for (size_t rank = 0; rank < stopping_; ++rank) rules.TakeStopping(holding_[ranked_[rank].job]);
  for (const HoldingJob& job : holding_) {
    if (job.leaving != nullptr) rules.Take(job.With(job.leaving));
  }
  Eligible eligible{.preemptor = preemptor, .ranks = {}, .reclaimed = {}};
  for (size_t rank = stopping_; rank < ranked_.size(); ++rank) {
    const HoldingJob& job = holding_[ranked_[rank].job];
    std::optional<Victim::Why> why = rules.MayStop(job);
    if (!why && job.slot != nullptr) why = rules.MayStop(job.With(job.slot));
    if (!why) continue;
    eligible.ranks.push_back(rank);
    if (*why == Victim::Why::kReclaim) eligible.reclaimed.push_back(rank);
  }
  if (eligible.ranks.empty() && stopping_ == 0) return false;
  eligible_.push_back(std::move(eligible));
  return true;
}

std::vector<bool> StopListMaker::Share(uint64_t turn, size_t most) const {
  std::vector<bool> listed(ranked_.size(), false);
  std::fill_n(listed.begin(), std::min(stopping_, most), true);
  size_t left = most - std::min(stopping_, most);
  std::vector<const Eligible*> fewest_first;
  for (const Eligible& eligible : eligible_) fewest_first.push_back(&eligible);
  std::stable_sort(fewest_first.begin(), fewest_first.end(), [](const auto* a, const auto* b) {
    return a->ranks.size() < b->ranks.size();
  });
  size_t preemptors = fewest_first.size();
  for (const Eligible* eligible : fewest_first) {
    const size_t share = left / preemptors--;
    std::vector<size_t> others;  // that no one before it has listed
    std::copy_if(eligible->ranks.begin(),
                 eligible->ranks.end(),
                 std::back_inserter(others),
                 [&listed](size_t rank) { return !listed[rank]; });
    left -= std::min(share, others.size());
    const size_t cheapest = others.size() <= share ? others.size() : share - share / 2;
    for (size_t i = 0; i < cheapest; ++i) listed[others[i]] = true;
    others.erase(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(cheapest));
    if (others.empty()) continue;
    const size_t first = static_cast<size_t>(turn % others.size()) * (share / 2);
    for (size_t i = 0; i < share / 2; ++i) listed[others[(first + i) % others.size()]] = true;
  }
  return listed;
}

StopList StopListMaker::Make(uint64_t turn, size_t most) const {
  StopList list;
  std::vector<size_t> place(ranked_.size(), 0);
  const std::vector<bool> listed = Share(turn, most);
  size_t stopping = 0;
  for (size_t rank = 0; rank < ranked_.size(); ++rank) {
    if (!listed[rank]) continue;
    stopping += rank < stopping_ ? 1 : 0;
    place[rank] = list.stoppable.size();
    list.stoppable.push_back({.job = ranked_[rank].job, .lost = ranked_[rank].lost, .lender = {}});
  }
  for (const Eligible& eligible : eligible_) {
    StopList::Choice& choice = list.choices.emplace_back();
    for (size_t i = 0; i < stopping; ++i) choice.stoppable.push_back(i);
    for (const size_t rank : eligible.ranks) {
      if (listed[rank]) choice.stoppable.push_back(place[rank]);
    }
  }
  AddLenders(&list);
  return list;
}

void StopListMaker::AddLenders(StopList* list) const {
  // Those that any preemptor reclaims from; a queue without a guarantee lends anything.
  LenderMap lenders;
  std::vector<std::vector<LenderKey>> counting(eligible_.size());
  for (size_t i = 0; i < eligible_.size(); ++i) {
    for (const size_t rank : eligible_[i].reclaimed) {
      const Owner& owner = *holding_[ranked_[rank].job].owner;
      for (const auto& lender : VictimRules::LendersOf(eligible_[i].preemptor, owner)) {
        if (!HasBound(lender)) continue;
        const LenderKey key(lender.queue->name, lender.counted, lender.others);
        lenders.emplace(key, lender);
        counting[i].push_back(key);
      }
    }
  }
  NameOthers(lenders, list);
  std::map<LenderKey, size_t> numbers;
  std::map<const QueueNode*, size_t> firsts;
  for (const auto& [key, lender] : lenders) {
    numbers.emplace(key, list->lenders.size());
    firsts.emplace(lender.queue, list->lenders.size());
    list->lenders.push_back({lender.queue, SpareOf(lender, list->others), std::nullopt});
  }
  const auto first_lender = [&firsts](const QueueNode* queue) -> std::optional<size_t> {
    for (; queue != nullptr; queue = queue->parent) {
      if (const auto found = firsts.find(queue); found != firsts.end()) return found->second;
    }
    return std::nullopt;
  };
  // What is taken of a queue is taken of all that it counts as.
  for (size_t i = 0; i < list->lenders.size(); ++i) {
    StopList::Lender& lender = list->lenders[i];
    const bool same = i + 1 < list->lenders.size() && list->lenders[i + 1].queue == lender.queue;
    lender.above = same ? std::optional(i + 1) : first_lender(lender.queue->parent);
  }
  for (StopList::Stoppable& one : list->stoppable) {
    one.lender = first_lender(holding_[one.job].owner->queue);
  }
  for (size_t rank = 0; rank < stopping_; ++rank) {
    const HoldingJob& job = holding_[ranked_[rank].job];
    TakeFromSpare(*job.amounts, first_lender(job.owner->queue), list);
  }
  for (const HoldingJob& job : holding_) {
    if (job.leaving != nullptr) TakeFromSpare(*job.leaving, first_lender(job.owner->queue), list);
  }
  if (!eligible_.empty() && eligible_.front().preemptor.every_resource) KeepNotBelowZero(list);
  for (size_t i = 0; i < eligible_.size(); ++i) {
    std::vector<size_t>& places = list->choices[i].lenders;
    for (const LenderKey& key : counting[i]) places.push_back(numbers.at(key));
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
  }
}

// What no listed job holds is not named: what queues are guaranteed is whatever was written.
void StopListMaker::NameOthers(const LenderMap& lenders, StopList* list) const {
  std::set<std::string_view> counted;
  for (const auto& [key, lender] : lenders) {
    counted.insert(lender.others.begin(), lender.others.end());
  }
  std::set<std::string_view> named;
  for (const StopList::Stoppable& one : list->stoppable) {
    for (const auto& [name, amount] : holding_[one.job].amounts->others()) {
      if (counted.contains(name)) named.insert(name);
    }
  }
  list->others.assign(named.begin(), named.end());
}

}  // namespace fluxqueue::scheduling
