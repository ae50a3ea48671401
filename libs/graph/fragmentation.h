// How much of a node's gpus the slots that are to come can use: what the policy `packed` goes by.
//
// Amounts of gpus are in thousandths of one. A slot that takes at most one gpu has a share of it;
// one that takes more has so many whole ones. The worth of what is free on a node is, over the
// shapes m of slots that are expected there,
//
//   Σ w(m) · usable(m)        usable(m) = min( gpus, cpu / cpu(m) · gpu(m), memory / … )
//
// where `gpus` is what as many slots of the shape as fit into the gpus take of them, and usable is
// 0 when not even one slot fits. What is free beyond that is fragmented: no slot of the shape will
// ever have it. So the place after which least is fragmented is the one that loses least worth.
//
// "Beware of Fragmentation" (Weng et al., USENIX ATC 2023) has the idea of a target workload, and
// another measure: all of a node that has too little of something, and each gpu that has too
// little, is lost to the shape, and nothing else. That sees a node run out of cpu or memory when it
// is too late.
//
// w(m) is how often the shape comes, times what makes its loss grave: how few of all gpus G it
// could use on an empty cluster, for its constraint or its form (U(m); a rare model, much memory,
// eight at once):
//
//   w(m) = count(m) · min( 256, (G / U(m))² )
//
// The exponent and the bounds were measured (tools/bench pack): with lower ones, models that few
// nodes have run out, and whole nodes where most slots are small; with higher ones, the others are
// packed worse. The room for slots of several gpus is not kept by a weight, which would have to be
// great enough for any mix, but by nodes that are used last (set_aside.h). By rules 4 and 5 these
// slots count twice all the same, and by rules up to 3, where no node is set aside, as many times
// as they want whole ones.
//
// Pure; whole numbers only, so that the same is decided on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libs/graph/types.h"

namespace fluxqueue::graph {

// What is free on a node.
struct NodeRoom {
  std::vector<int64_t> gpus;     // of each
  std::vector<int64_t> amounts;  // of other resources
};

struct SlotShape {
  int64_t gpu = 0;
  std::vector<int64_t> amounts;  // of the resources of NodeRoom, in their order
};

struct WeighedShape {
  SlotShape shape;
  int64_t weight = 0;
};

// What slots of the shape take of the gpus when they take all that they can.
int64_t UsableGpus(const NodeRoom& room, const SlotShape& shape);

// `shapes`: sorted by their gpus, which is faster.
int64_t WorthOf(const NodeRoom& room, std::span<const WeighedShape> shapes);

// The greatest sum of weights: a node's worth is at most so much for each thousandth of a gpu.
inline constexpr int kWeightBits = 19;

// What the weight of a shape follows from.
struct Demand {
  uint64_t count = 0;
  int64_t gpu = 0;     // of one slot
  int64_t usable = 0;  // what it could use of all gpus, were they free: U
};
// What several whole gpus at once count for: no more than one, twice, or as many times as there
// are.
enum class Gravity : uint8_t { kAlike, kTwiceForSeveral, kBySize };
// Of each, when there are so many gpus in all; together at most 1 << kWeightBits.
std::vector<int64_t> WeightsOf(std::span<const Demand> demands, int64_t gpus, Gravity by);

// The power of two that is nearest: of a workload that is counted again and again, few counts
// change.
uint64_t QuantisedCount(uint64_t count);

}  // namespace fluxqueue::graph
