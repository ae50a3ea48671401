// The search against all sets of holders, on plain amounts.
#include "libs/matcher_core/stop_search.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::matcher_core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

StopProblem::Node NodeWith(int64_t free, size_t domain = 0) {
  return {.domain = domain, .rooms = {{.amounts = {free}, .gpus = {}}}};
}

StopProblem::Share ShareOf(size_t node, int64_t amount) {
  return {.node = node, .rooms = 1, .amounts = {amount}, .gpus = {}};
}

StopProblem::Holder HolderOf(std::vector<StopProblem::Share> shares, int64_t lost = 0) {
  return {.shares = std::move(shares), .lost = lost, .holds = {}};
}

StopProblem Asking(uint32_t slots, int64_t amount) {
  StopProblem problem;
  problem.asks.push_back({.slots = slots, .needs = {amount}});
  return problem;
}

TEST(StopSearchTest, NobodyWhereThereIsRoom) {
  StopProblem problem = Asking(2, 10);
  problem.nodes = {NodeWith(10), NodeWith(15)};
  problem.holders = {HolderOf({ShareOf(0, 100)})};
  EXPECT_THAT(FewestToStop(problem), Optional(IsEmpty()));
}

TEST(StopSearchTest, NobodyWhereAllTogetherAreNotEnough) {
  StopProblem problem = Asking(1, 10);
  problem.nodes = {NodeWith(0), NodeWith(0)};
  problem.holders = {HolderOf({ShareOf(0, 9), ShareOf(1, 9)})};
  EXPECT_EQ(FewestToStop(problem), std::nullopt);
}

TEST(StopSearchTest, FewestThenLeastLost) {
  for (const int64_t trials : {int64_t{0}, kMostTrials}) {
    StopProblem problem = Asking(1, 10);
    problem.nodes = {NodeWith(0), NodeWith(0), NodeWith(0)};
    // Two of node 0 lose nothing; one of node 1 or of node 2 is enough.
    problem.holders = {HolderOf({ShareOf(0, 5)}),
                       HolderOf({ShareOf(0, 5)}),
                       HolderOf({ShareOf(2, 10)}, 7),
                       HolderOf({ShareOf(1, 10)}, 8)};
    EXPECT_THAT(FewestToStop(problem, trials), Optional(ElementsAre(2)));
  }
}

TEST(StopSearchTest, OfANodeThoseWhoLoseLeastAmongEquals) {
  StopProblem problem = Asking(1, 10);
  problem.nodes = {NodeWith(0)};
  problem.holders = {HolderOf({ShareOf(0, 2)}, 1),
                     HolderOf({ShareOf(0, 6)}, 2),
                     HolderOf({ShareOf(0, 6)}, 3),
                     HolderOf({ShareOf(0, 9)}, 5)};
  EXPECT_THAT(FewestToStop(problem, 0), Optional(ElementsAre(0, 3)));
  EXPECT_THAT(FewestToStop(problem), Optional(ElementsAre(1, 2)));
}

TEST(StopSearchTest, AGangThatRunsOnAllNodesCountsOnAll) {
  for (const int64_t trials : {int64_t{0}, kMostTrials}) {
    StopProblem problem = Asking(3, 10);
    problem.nodes = {NodeWith(0), NodeWith(0), NodeWith(0)};
    for (size_t node = 0; node < 3; ++node) {
      problem.holders.push_back(HolderOf({ShareOf(node, 10)}));
    }
    problem.holders.push_back(HolderOf({ShareOf(0, 10), ShareOf(1, 10), ShareOf(2, 10)}, 99));
    EXPECT_THAT(FewestToStop(problem, trials), Optional(ElementsAre(3)));
  }
}

TEST(StopSearchTest, ALargeGang) {
  StopProblem problem = Asking(500, 10);
  for (size_t node = 0; node < 1000; ++node) {
    problem.nodes.push_back(NodeWith(0));
    // Three small ones or one large one.
    for (int i = 0; i < 3; ++i) problem.holders.push_back(HolderOf({ShareOf(node, 4)}));
  }
  for (size_t node = 0; node < 1000; ++node) {
    problem.holders.push_back(HolderOf({ShareOf(node, 10)}, static_cast<int64_t>(1000 - node)));
  }
  std::reverse(problem.holders.begin() + 3000, problem.holders.end());
  const auto chosen = FewestToStop(problem);
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->size(), 500U);
  // The large ones that lose least.
  EXPECT_EQ(chosen->front(), 3000U);
  EXPECT_EQ(chosen->back(), 3499U);
}

TEST(StopSearchTest, OneDomain) {
  StopProblem problem = Asking(2, 10);
  problem.nodes = {NodeWith(0, 0), NodeWith(0, 1), NodeWith(10, 0), NodeWith(0, 1)};
  problem.domains = 2;
  problem.holders = {HolderOf({ShareOf(1, 10)}), HolderOf({ShareOf(0, 10)}, 5)};
  EXPECT_THAT(FewestToStop(problem), Optional(ElementsAre(1)));
}

TEST(StopSearchTest, WhatBeginsLaterIsInTheWayToo) {
  StopProblem problem = Asking(1, 10);
  problem.nodes = {
      {.domain = 0, .rooms = {{.amounts = {0}, .gpus = {}}, {.amounts = {5}, .gpus = {}}}},
      NodeWith(0)};
  // Has ended by then: what is free later is free without it.
  problem.holders = {HolderOf({ShareOf(0, 10)}), HolderOf({ShareOf(1, 10)}, 5)};
  EXPECT_THAT(FewestToStop(problem), Optional(ElementsAre(1)));
}

TEST(StopSearchTest, PartsOfGpus) {
  StopProblem problem;
  problem.asks.push_back({.slots = 1, .needs = {}, .gpus = graph::DevicesFor(1000)});
  problem.nodes = {{.domain = 0, .rooms = {{.amounts = {}, .gpus = {500, 0}}}}};
  const auto part = [](uint32_t device, int64_t amount) {
    return StopProblem::Share{.node = 0, .rooms = 1, .amounts = {}, .gpus = {{device, amount}}};
  };
  problem.holders = {
      HolderOf({part(1, 500)}), HolderOf({part(1, 500)}), HolderOf({part(0, 500)}, 9)};
  EXPECT_THAT(FewestToStop(problem), Optional(ElementsAre(2)));
  EXPECT_THAT(FewestToStop(problem, 0), Optional(ElementsAre(2)));
}

TEST(StopSearchTest, GroupsOfSlotsThatDiffer) {
  StopProblem problem = Asking(1, 4);
  problem.asks.push_back({.slots = 2, .needs = {10}});
  problem.nodes = {NodeWith(4), NodeWith(2), NodeWith(10)};
  problem.holders = {HolderOf({ShareOf(1, 8)})};
  EXPECT_THAT(FewestToStop(problem), Optional(ElementsAre(0)));
  problem.asks[0].needs = {5};
  EXPECT_EQ(FewestToStop(problem), std::nullopt);
}

TEST(StopSearchTest, LendersKeepTheirGuarantee) {
  StopProblem problem = Asking(2, 10);
  problem.nodes = {NodeWith(0), NodeWith(0), NodeWith(0)};
  problem.lenders = {{.spare = {10}, .above = 1}, {.spare = {20}}};
  for (size_t node = 0; node < 2; ++node) {
    problem.holders.push_back(HolderOf({ShareOf(node, 10)}));
    problem.holders.back().lender = 0;
    problem.holders.back().holds = {10};
  }
  EXPECT_EQ(FewestToStop(problem), std::nullopt);
  EXPECT_THAT(SparedTogether(problem), ElementsAre(0));
  problem.holders.push_back(HolderOf({ShareOf(2, 10)}, 5));
  problem.holders.back().lender = 1;
  problem.holders.back().holds = {10};
  EXPECT_THAT(FewestToStop(problem), Optional(ElementsAre(0, 2)));
  EXPECT_THAT(FewestToStop(problem, 0), Optional(ElementsAre(0, 2)));
}

// ---- all sets

class RandomProblem {
 public:
  explicit RandomProblem(uint32_t seed) : random_(seed * 7919 + 1) {
    random_.discard(3);
    problem.domains = static_cast<size_t>(1 + Roll(4) / 3);
    const bool gpus = Roll(3) == 0;
    const int nodes = 2 + Roll(4);
    for (int i = 0; i < nodes; ++i) {
      const int rooms = 1 + Roll(4) / 3;
      StopProblem::Room room{.amounts = {Roll(4) - 1, Roll(6)}, .gpus = {}};
      if (gpus) room.gpus = {500 * Roll(3), 500 * Roll(3)};
      problem.nodes.push_back(
          {.domain = static_cast<size_t>(Roll(static_cast<int>(problem.domains))),
           .rooms = std::vector<StopProblem::Room>(static_cast<size_t>(rooms), room)});
    }
    problem.asks.push_back({.slots = static_cast<uint32_t>(Roll(2) == 0 ? 1 : 1 + Roll(5)),
                            .needs = {1 + Roll(4), Roll(4)}});
    if (gpus) problem.asks[0].gpus = graph::DevicesFor(500 * (1 + Roll(4)));
    problem.lenders = {{.spare = {1 + Roll(8)}, .above = 1}, {.spare = {4 + Roll(8)}}};
    const int holders = 1 + Roll(8);
    int64_t lost = 0;
    for (int i = 0; i < holders; ++i) AddHolder(gpus, lost += Roll(3));
  }

  bool IsAllowed(uint32_t set) const {
    for (size_t lender = 0; lender < problem.lenders.size(); ++lender) {
      int64_t held = 0;
      for (size_t i = 0; i < problem.holders.size(); ++i) {
        const auto& holder = problem.holders[i];
        if ((set >> i & 1) == 0 || holder.holds.empty()) continue;
        if (holder.lender == lender || lender == 1) held += holder.holds[0];
      }
      if (held > problem.lenders[lender].spare[0]) return false;
    }
    return true;
  }
  bool IsEnough(uint32_t set) const {
    std::vector<int64_t> slots(problem.domains, 0);
    for (size_t node = 0; node < problem.nodes.size(); ++node) {
      slots[problem.nodes[node].domain] += SlotsOn(node, set);
    }
    return *std::max_element(slots.begin(), slots.end()) >= problem.asks[0].slots;
  }
  int64_t LostBy(uint32_t set) const {
    int64_t lost = 0;
    for (size_t i = 0; i < problem.holders.size(); ++i) {
      if (set >> i & 1) lost += problem.holders[i].lost;
    }
    return lost;
  }

  StopProblem problem;

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<uint32_t>(sides)); }

  void AddHolder(bool gpus, int64_t lost) {
    StopProblem::Holder& holder = problem.holders.emplace_back();
    holder.lost = lost;
    const int shares = 1 + Roll(4) / 3 + Roll(6) / 5;
    for (int i = 0; i < shares; ++i) {
      StopProblem::Share share;
      share.node = static_cast<size_t>(Roll(static_cast<int>(problem.nodes.size())));
      share.rooms =
          1 + static_cast<size_t>(Roll(static_cast<int>(problem.nodes[share.node].rooms.size())));
      share.amounts = {Roll(4), Roll(3)};
      if (gpus) share.gpus = {{static_cast<uint32_t>(Roll(2)), 500 * (1 + Roll(2))}};
      holder.shares.push_back(share);
    }
    if (Roll(2) == 0) return;
    holder.lender = static_cast<size_t>(Roll(2));
    holder.holds = {1 + Roll(4)};
  }

  int64_t SlotsOn(size_t number, uint32_t set) const {
    const StopProblem::Ask& ask = problem.asks[0];
    int64_t slots = ask.slots;
    const StopProblem::Node& node = problem.nodes[number];
    std::vector<int64_t> least(node.rooms[0].gpus.size(), std::numeric_limits<int64_t>::max());
    for (size_t at = 0; at < node.rooms.size(); ++at) {
      StopProblem::Room room = node.rooms[at];
      for (size_t i = 0; i < problem.holders.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        for (const auto& share : problem.holders[i].shares) {
          if (share.node != number || at >= share.rooms) continue;
          for (size_t r = 0; r < 2; ++r) room.amounts[r] += share.amounts[r];
          for (const auto& [device, amount] : share.gpus) room.gpus[device] += amount;
        }
      }
      for (size_t r = 0; r < 2; ++r) {
        if (ask.needs[r] > 0)
          slots = std::min(slots, std::max<int64_t>(0, room.amounts[r]) / ask.needs[r]);
      }
      for (size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], room.gpus[i]);
    }
    if (ask.gpus.devices == 0) return slots;
    int64_t parts = 0;
    for (const int64_t free : least) parts += std::max<int64_t>(0, free) / ask.gpus.of_each;
    return std::min(slots, parts / static_cast<int64_t>(ask.gpus.devices));
  }

  std::minstd_rand random_;
};

TEST(StopSearchProperty, TheBestOfAllSets) {
  int found = 0;
  int greedy_misses = 0;
  int greedy_fewest = 0;
  int single = 0;
  int single_fewest = 0;
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProblem random(seed);
    const uint32_t sets = 1U << random.problem.holders.size();
    std::optional<uint32_t> best;
    for (uint32_t set = 0; set < sets; ++set) {
      if (!random.IsAllowed(set) || !random.IsEnough(set)) continue;
      const auto worth = [&](uint32_t one) {
        return std::pair(std::popcount(one), random.LostBy(one));
      };
      if (!best || worth(set) < worth(*best)) best = set;
    }
    const auto chosen = FewestToStop(random.problem);
    const auto greedy = FewestToStop(random.problem, 0);
    ASSERT_EQ(best.has_value(), chosen.has_value());
    ASSERT_TRUE(best.has_value() || !greedy);
    if (!best || *best == 0) continue;
    ++found;
    greedy_misses += greedy ? 0 : 1;
    const bool fewest = greedy && static_cast<int>(greedy->size()) == std::popcount(*best);
    greedy_fewest += fewest ? 1 : 0;
    if (random.problem.asks[0].slots == 1) {
      ++single;
      single_fewest += fewest ? 1 : 0;
    }
    for (const auto& one : {chosen, greedy}) {
      if (!one) continue;
      uint32_t set = 0;
      for (const size_t holder : *one) set |= 1U << holder;
      EXPECT_TRUE(random.IsAllowed(set) && random.IsEnough(set));
      for (const size_t holder : *one) EXPECT_FALSE(random.IsEnough(set & ~(1U << holder)));
    }
    EXPECT_EQ(static_cast<int>(chosen->size()), std::popcount(*best));
    int64_t lost = 0;
    for (const size_t holder : *chosen) lost += random.problem.holders[holder].lost;
    EXPECT_EQ(lost, random.LostBy(*best));
  }
  fmt::print(
      "of {} problems: without trials {} have the fewest, {} nothing; of {} with one slot {} the "
      "fewest\n",
      found,
      greedy_fewest,
      greedy_misses,
      single,
      single_fewest);
  EXPECT_GT(found, 500);
  EXPECT_GT(greedy_fewest * 100, found * 90);
  EXPECT_LT(greedy_misses * 100, found * 5);
}

}  // namespace
}  // namespace fluxqueue::matcher_core
