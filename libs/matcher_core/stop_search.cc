#include "libs/matcher_core/stop_search.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "libs/base/int128.h"
#include "libs/matcher_core/stop_rooms.h"

namespace fluxqueue::matcher_core {
namespace {

// Of holders, or of nodes.
using Places = std::vector<size_t>;

class Search {
 public:
  Search(const StopProblem& problem, int64_t most_trials)
      : problem_(problem), rooms_(problem), trials_left_(most_trials) {
    nodes_of_.resize(problem.domains);
    holders_on_.resize(problem.nodes.size());
    for (size_t node = 0; node < problem.nodes.size(); ++node) {
      nodes_of_[problem.nodes[node].domain].push_back(node);
    }
    for (size_t holder = 0; holder < problem.holders.size(); ++holder) {
      const auto& shares = problem.holders[holder].shares;
      for (const StopProblem::Share& share : shares) {
        holders_on_[share.node].push_back({holder, &share});
      }
    }
    order_.resize(problem.asks.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&problem](size_t a, size_t b) {
      return problem.asks[a].needs > problem.asks[b].needs;
    });
  }

  std::optional<Places> Run() {
    std::optional<Places> best;
    for (size_t domain = 0; domain < problem_.domains; ++domain) {
      std::optional<Places> here = InDomain(domain);
      if (here && (!best || IsBetter(*here, *best))) best = std::move(here);
    }
    return best;
  }

 private:
  // Whose leaving makes room on a node, and for how many slots in the domain.
  struct Option {
    Places holders;
    int64_t gained = 0;
    Int128 lost = 0;
  };
  struct OnNode {
    size_t holder = 0;
    const StopProblem::Share* share = nullptr;
  };

  Int128 LostBy(const Places& set) const {
    Int128 lost = 0;
    for (const size_t holder : set) lost += problem_.holders[holder].lost;
    return lost;
  }
  // REQUIRES: both are sorted. Of equals those that stand first in the list.
  bool IsBetter(const Places& a, const Places& b) const {
    if (a.size() != b.size()) return a.size() < b.size();
    const Int128 lost_by_a = LostBy(a);
    const Int128 lost_by_b = LostBy(b);
    return lost_by_a != lost_by_b ? lost_by_a < lost_by_b : a < b;
  }
  void SetAll(const Places& holders, bool gone) {
    for (const size_t holder : holders) rooms_.Set(holder, gone);
  }

  std::optional<Places> InDomain(size_t domain) {
    return order_.size() == 1 ? Equal(domain) : Different(domain);
  }

  std::optional<Places> Equal(size_t domain) {
    rooms_.Count(problem_.asks[0], domain, nodes_of_[domain]);
    const Places useful = HoldersIn(domain);
    SetAll(useful, true);
    const bool is_hopeless = !rooms_.HasAll();
    SetAll(useful, false);
    if (is_hopeless) return std::nullopt;
    std::optional<Places> best(std::in_place);
    const bool all = Greedy(domain, &*best);
    if (all) SpareWhere([this] { return rooms_.HasAll(); }, &*best);
    SetAll(*best, false);
    std::sort(best->begin(), best->end());
    if (!all) best.reset();
    TryAll(useful, &best);
    return best;
  }

  std::optional<Places> Different(size_t domain) {
    Places gone;
    bool all = true;
    for (size_t i = 0; all && i < order_.size(); ++i) {
      rooms_.Count(problem_.asks[order_[i]], domain, nodes_of_[domain]);
      all = Greedy(domain, &gone);
      if (all) PlaceAll(domain, problem_.asks[order_[i]].slots);
    }
    SetAll(gone, false);
    for (const size_t node : nodes_of_[domain]) rooms_.Clear(node);
    std::sort(gone.begin(), gone.end());
    return all ? std::optional(std::move(gone)) : std::nullopt;
  }

  void PlaceAll(size_t domain, int64_t slots) {
    for (const size_t node : nodes_of_[domain]) {
      const int64_t here = std::min(slots, rooms_.fit(node));
      if (here > 0) rooms_.Place(node, here);
      slots -= here;
    }
  }

  // Until there is room for all slots of the kind. False: there is not.
  bool Greedy(size_t domain, Places* gone) {
    std::vector<std::optional<Option>> options(problem_.nodes.size());
    std::vector<bool> is_known(problem_.nodes.size(), false);
    while (!rooms_.HasAll()) {
      const Option* best = nullptr;
      size_t at = 0;
      for (const size_t node : nodes_of_[domain]) {
        if (holders_on_[node].empty()) continue;
        if (!is_known[node]) options[node] = OptionOf(node);
        is_known[node] = true;
        if (!options[node] || (best != nullptr && !IsCheaper(*options[node], *best))) continue;
        best = &*options[node];
        at = node;
      }
      if (best == nullptr) return false;
      if (!TakeOut(best->holders)) {
        // Lenders can spare less by now.
        is_known[at] = false;
        continue;
      }
      for (const size_t holder : best->holders) {
        gone->push_back(holder);
        for (const auto& share : problem_.holders[holder].shares) is_known[share.node] = false;
      }
    }
    return true;
  }

  // Each of them, or none.
  bool TakeOut(const Places& holders) {
    for (size_t i = 0; i < holders.size(); ++i) {
      if (rooms_.MayGo(holders[i])) {
        rooms_.Set(holders[i], true);
        continue;
      }
      while (i-- > 0) rooms_.Set(holders[i], false);
      return false;
    }
    return true;
  }

  // For each slot that is of use; then by what is lost for it.
  bool IsCheaper(const Option& a, const Option& b) const {
    const int64_t of_a = std::min(a.gained, rooms_.lacking());
    const int64_t of_b = std::min(b.gained, rooms_.lacking());
    const int64_t price_a = static_cast<int64_t>(a.holders.size()) * of_b;
    const int64_t price_b = static_cast<int64_t>(b.holders.size()) * of_a;
    return price_a != price_b ? price_a < price_b : a.lost * of_b < b.lost * of_a;
  }

  std::optional<Option> OptionOf(size_t node) {
    std::optional<Option> best;
    const int64_t fit = rooms_.fit(node);
    const int64_t total = rooms_.total();
    const int64_t most = rooms_.lacking();
    for (int64_t more = 1; more <= most; more *= 2) {
      Option option;
      if (!Cover(node, fit + more, &option.holders)) break;
      option.gained = rooms_.total() - total;
      option.lost = LostBy(option.holders);
      SetAll(option.holders, false);
      if (!best || IsCheaper(option, *best)) best = std::move(option);
    }
    return best;
  }

  // Those are gone whom it takes to have room for so many slots on the node. False: none is.
  bool Cover(size_t node, int64_t slots, Places* holders) {
    while (rooms_.fit(node) < slots) {
      const OnNode* most = nullptr;
      int64_t given = 0;
      for (const OnNode& one : holders_on_[node]) {
        const int64_t gives = rooms_.Gives(one.holder, *one.share, slots);
        if (gives <= given || !rooms_.MayGo(one.holder)) continue;
        most = &one;
        given = gives;
      }
      if (most == nullptr) {
        SetAll(*holders, false);
        return false;
      }
      rooms_.Set(most->holder, true);
      holders->push_back(most->holder);
    }
    const auto enough = [&] { return rooms_.fit(node) >= slots; };
    SpareWhere(enough, holders);
    for (size_t& holder : *holders) {
      rooms_.Set(holder, false);
      for (const OnNode& other : holders_on_[node]) {
        if (other.holder >= holder) break;
        if (rooms_.is_gone(other.holder) || !rooms_.MayGo(other.holder)) continue;
        rooms_.Set(other.holder, true);
        if (enough()) {
          holder = other.holder;
          break;
        }
        rooms_.Set(other.holder, false);
      }
      rooms_.Set(holder, true);
    }
    return true;
  }

  // Those stay whom it does not take, those that lose most first.
  template <typename Enough>
  void SpareWhere(const Enough& enough, Places* gone) {
    std::sort(gone->begin(), gone->end(), std::greater<>());
    std::erase_if(*gone, [&](size_t holder) {
      rooms_.Set(holder, false);
      if (enough()) return true;
      rooms_.Set(holder, true);
      return false;
    });
  }

  Places HoldersIn(size_t domain) const {
    Places holders;
    for (size_t holder = 0; holder < problem_.holders.size(); ++holder) {
      const auto& shares = problem_.holders[holder].shares;
      if (std::any_of(shares.begin(), shares.end(), [&](const auto& share) {
            return problem_.nodes[share.node].domain == domain;
          })) {
        holders.push_back(holder);
      }
    }
    return holders;
  }

  // All sets that are smaller than the best, or lose less, as long as there are not too many.
  // REQUIRES: no holder is gone.
  void TryAll(const Places& useful, std::optional<Places>* best) {
    const size_t most = *best ? (*best)->size() : useful.size();
    Int128 sets = 1;
    for (size_t size = 1; size <= most; ++size) {
      sets = sets * static_cast<int64_t>(useful.size() - size + 1) / static_cast<int64_t>(size);
      if (sets > trials_left_) return;
      trials_left_ -= static_cast<int64_t>(sets);
      Places set;
      if (TrySets(useful, 0, size, &set, best)) return;
    }
  }

  // All of that size that begin so. True: one is enough, and `best` the best of these.
  bool TrySets(
      const Places& useful, size_t from, size_t size, Places* set, std::optional<Places>* best) {
    bool found = false;
    for (size_t i = from; i + (size - set->size()) <= useful.size(); ++i) {
      if (!rooms_.MayGo(useful[i])) continue;
      rooms_.Set(useful[i], true);
      set->push_back(useful[i]);
      bool enough = false;
      if (set->size() < size) {
        enough = TrySets(useful, i + 1, size, set, best);
      } else if (rooms_.HasAll()) {
        enough = true;
        if (!*best || IsBetter(*set, **best)) *best = *set;
      }
      found = found || enough;
      const bool is_last = set->size() == size;
      set->pop_back();
      rooms_.Set(useful[i], false);
      // Those behind lose no less.
      if (enough && is_last) break;
    }
    return found;
  }

  const StopProblem& problem_;
  Rooms rooms_;
  int64_t trials_left_;
  std::vector<Places> nodes_of_;                 // by domain
  std::vector<std::vector<OnNode>> holders_on_;  // by node
  std::vector<size_t> order_;                    // of the asks
};

}  // namespace

std::optional<std::vector<size_t>> FewestToStop(const StopProblem& problem, int64_t most_trials) {
  return Search(problem, most_trials).Run();
}

std::vector<size_t> SparedTogether(const StopProblem& problem) {
  Rooms rooms(problem);
  Places spared;
  for (size_t holder = 0; holder < problem.holders.size(); ++holder) {
    if (!rooms.MayGo(holder)) continue;
    rooms.Set(holder, true);
    spared.push_back(holder);
  }
  return spared;
}

}  // namespace fluxqueue::matcher_core
