// Nodes that are kept for slots which not every node with gpus can take: the policy `packed` uses
// them last.
//
// Slots that want several gpus at once, and slots that name some of the nodes, are dropped first
// when a cluster fills, for the small ones that may go anywhere leave no whole node and no node of
// that kind. First fit does not: whatever comes is put at the front, so that the back stays whole.
// So does this, with as much of a back as the slots are expected to need: nodes that hold twice
// what such slots have of a full cluster, as what comes is not in proportion at every moment. All
// others are used first, by these slots too. What is used last is empty first where jobs end.
//
// What is expected may be wrong, and nothing mends a cluster whose nodes all have something on them
// when it turns out to be. So three tenths of the gpus are set aside at least, on the nodes that
// have most of them, whatever is expected; those that nothing is expected to need are used before
// the others of these. (By rules 4 and 5 as much as is expected, and no more.)
//
// Which nodes these are follows from the nodes and from what is expected, not from what is held.
//
// Pure; whole numbers only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libs/graph/fragmentation.h"

namespace fluxqueue::graph {

// The greater it is, the later the node is used.
enum class LastUse : uint8_t { kNone, kForTheUnexpected, kForSomeNodes, kForSeveralGpus };

inline constexpr int64_t kPercentSetAside = 30;

// Slots that are expected.
struct ExpectedSlots {
  SlotShape shape;
  size_t constraint = 0;  // its number
  uint64_t count = 0;
};

// Nodes that are alike when they are empty.
struct NodeKind {
  std::vector<bool> meets;  // by constraint
  NodeRoom room;
};

// Without slots that no node could take: they are no part of what is to come.
std::vector<ExpectedSlots> Holdable(std::span<const ExpectedSlots> expected,
                                    std::span<const NodeKind> kinds);

// Of each node. `nodes`: the kind of each, in the order in which they are set aside. `at_least`: so
// many percent of the gpus, as far as that makes whole nodes.
std::vector<LastUse> SetAside(std::span<const ExpectedSlots> expected,
                              std::span<const NodeKind> kinds,
                              std::span<const uint32_t> nodes,
                              int64_t at_least);

}  // namespace fluxqueue::graph
