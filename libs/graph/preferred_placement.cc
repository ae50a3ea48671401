#include "libs/graph/preferred_placement.h"

#include <algorithm>
#include <string>
#include <utility>

#include "libs/graph/levels.h"
#include "libs/graph/slot_requests.h"

namespace fluxqueue::graph {
namespace {

using Place = Placer::Place;
using Share = Placer::Share;
using Shares = Placer::Shares;
using When = Placer::When;

class Placing {
 public:
  Placing(const PlacingRequest& request,
          PreferenceTiers* tiers,
          const NodeTable& table,
          Placer* placer)
      : first_(request.first),
        spare_(request.first + request.needs.size()),
        needs_(request.needs),
        when_(request.when),
        now_(request.when),
        tiers_(*tiers),
        table_(table),
        placer_(*placer) {
    now_.may_reserve = false;
  }

  std::optional<Place> Run(Jobspec jobspec) {
    size_t too_few = 0;
    // Of slots that differ the placer may find places on fewer nodes that it does not find on all:
    // what starts is as without preferences.
    if (jobspec.preferred_level.empty() && jobspec.groups.size() == 1) {
      // What is wanted most is often there.
      if (auto place = placer_.Match(first_, tiers_.OnFirst(1, jobspec), now_)) return place;
      too_few = 1;
    }
    std::optional<Place> anywhere = placer_.Match(first_, jobspec, when_);
    if (!anywhere || anywhere->at_s != when_.now_s) return anywhere;
    placer_.Release(first_, needs_.size());
    Shares shares = std::move(anywhere->shares);
    if (!jobspec.preferred_level.empty()) KeepLevel(shares, &jobspec);
    const size_t used = UseFewTiers(jobspec, too_few, &shares);
    for (uint32_t group = 0; used > 1 && group < needs_.size(); ++group) {
      FillTiers(jobspec, group, used, &shares);
    }
    placer_.Hold(first_, shares, needs_, Span());
    return Place{std::move(shares), when_.now_s};
  }

 private:
  Placer::Span Span() const {
    return {.end_s = when_.duration_s == 0 ? 0 : when_.now_s + when_.duration_s};
  }

  // Also of a level that no node's label names.
  size_t Depth(const std::string& level) const { return DepthOf(level, table_.levels()); }

  // The levels from the outermost to the last one, no further in than `innermost`, below one vertex
  // of which all shares are.
  std::vector<Level> LevelsOf(const Shares& shares, const std::string& innermost) const {
    std::vector<Level> levels;
    const size_t last = Depth(innermost);
    if (last == table_.levels().size()) return levels;
    const NodeSpec& node = shares.front().node->spec;
    for (const Level& level : table_.LevelsInUse()) {
      if (Depth(level.name) > last) break;
      levels.push_back(level);
      const std::string where = GroupOf(node, levels);
      const bool together = std::all_of(shares.begin(), shares.end(), [&](const Share& share) {
        return GroupOf(share.node->spec, levels) == where;
      });
      if (!together) {
        levels.pop_back();
        break;
      }
    }
    return levels;
  }

  // What was had of the preferred level is required from now on, where that is more than is
  // required anyway.
  void KeepLevel(const Shares& shares, Jobspec* jobspec) const {
    const std::vector<Level> levels =
        LevelsOf(shares, std::exchange(jobspec->preferred_level, std::string()));
    if (levels.empty()) return;
    const bool is_inside = jobspec->required_level.empty() ||
                           Depth(levels.back().name) > Depth(jobspec->required_level);
    if (!is_inside) return;
    jobspec->required_level = levels.back().name;
    jobspec->shape += " all in one " + jobspec->required_level;
  }

  // How many tiers, the best first, have room for all, which is more than `too_few`; `shares` are
  // on them. REQUIRES: those that there are can be had now.
  size_t UseFewTiers(const Jobspec& jobspec, size_t too_few, Shares* shares) {
    size_t enough = tiers_.size();
    while (enough - too_few > 1) {
      const size_t count = (too_few + enough) / 2;
      std::optional<Place> place = placer_.Match(first_, tiers_.OnFirst(count, jobspec), now_);
      if (!place) {
        too_few = count;
        continue;
      }
      placer_.Release(first_, needs_.size());
      *shares = std::move(place->shares);
      enough = count;
    }
    return enough;
  }

  // The group's slots go to the best of the first `count` tiers first, while the others stay where
  // they are.
  void FillTiers(const Jobspec& jobspec, uint32_t group, size_t count, Shares* shares) {
    Shares others;
    for (const Share& share : *shares) {
      if (share.group != group) others.push_back(share);
    }
    placer_.Hold(first_, others, needs_, Span());
    std::optional<Shares> filled = Filled(SlotsOf(jobspec, group, *shares), group, count);
    placer_.Release(first_, needs_.size());
    if (!filled) return;
    const auto behind = std::find_if(
        others.begin(), others.end(), [group](const Share& share) { return share.group > group; });
    others.insert(behind, filled->begin(), filled->end());
    *shares = std::move(others);
  }

  // The slots of one group, below the same vertex of the level that is required as `shares`.
  Jobspec SlotsOf(const Jobspec& jobspec, uint32_t group, const Shares& shares) const {
    Jobspec one = jobspec;
    one.groups = {jobspec.groups[group]};
    one.slots = one.groups[0].slots;
    one.required_level.clear();
    one.preferred_level.clear();
    if (jobspec.required_level.empty()) return one;
    return Beside(shares.front().node->spec, LevelsOf(shares, jobspec.required_level), one);
  }

  // Nothing: the last tier has less room than is left to place.
  std::optional<Shares> Filled(const Jobspec& jobspec, uint32_t group, size_t count) {
    Shares shares;
    uint32_t left = jobspec.slots;
    JobNumber next = spare_;
    for (size_t tier = 0; tier < count && left > 0; ++tier) {
      const Jobspec here = tiers_.OnTier(tier, jobspec);
      const std::optional<Shares> most =
          tier + 1 < count ? MostOf(here, next, group, std::min(left, RoomOn(tier, group)))
                           : MatchNow(next, WithSlots(here, left));
      if (!most) continue;
      ++next;
      for (Share share : *most) {
        left -= static_cast<uint32_t>(share.slots);
        share.group = group;
        shares.push_back(std::move(share));
      }
    }
    for (JobNumber number = spare_; number < next; ++number) placer_.Release(number, 1);
    if (left > 0) return std::nullopt;
    return shares;
  }

  std::optional<Shares> MatchNow(JobNumber number, const Jobspec& jobspec) {
    std::optional<Place> place = placer_.Match(number, jobspec, now_);
    if (!place) return std::nullopt;
    return std::move(place->shares);
  }

  // As many slots as there is room for, held as `number`; nothing: there is none.
  std::optional<Shares> MostOf(const Jobspec& jobspec,
                               JobNumber number,
                               uint32_t group,
                               uint32_t most) {
    std::optional<Shares> best;
    uint32_t fits = 0;
    uint32_t too_many = most + 1;
    for (uint32_t slots = most; slots > fits; slots = (fits + too_many) / 2) {
      std::optional<Shares> shares = MatchNow(number, WithSlots(jobspec, slots));
      if (!shares) {
        too_many = slots;
        continue;
      }
      placer_.Release(number, 1);
      best = std::move(shares);
      fits = slots;
    }
    if (best) placer_.Hold(number, *best, needs_.subspan(group, 1), Span());
    return best;
  }

  // No more slots than this have room on the tier: what is reserved is not looked at.
  uint32_t RoomOn(size_t tier, uint32_t group) const {
    int64_t slots = 0;
    for (const Node* node : tiers_.nodes(tier)) {
      if (!node->spec.schedulable) continue;
      int64_t here = kMaxSlots;
      for (const Need& need : needs_[group]) {
        if (need.resource == NodeTable::kGpus) continue;
        here = std::min(here, node->free[need.resource] / need.amount);
      }
      slots = std::min(slots + here, kMaxSlots);
    }
    return static_cast<uint32_t>(slots);
  }

  const JobNumber first_;
  const JobNumber spare_;  // from here on
  const std::span<const std::vector<Need>> needs_;
  const When when_;
  When now_;
  PreferenceTiers& tiers_;
  const NodeTable& table_;
  Placer& placer_;
};

}  // namespace

std::optional<Place> PlaceByPreference(const PlacingRequest& request,
                                       PreferenceTiers* tiers,
                                       const NodeTable& table,
                                       Placer* placer) {
  return Placing(request, tiers, table, placer).Run(request.jobspec);
}

}  // namespace fluxqueue::graph
