// Whom to stop so that a job has room: a search on plain amounts, whose result the graph judges.
//
// The naive way is to try all sets of holders, from the smallest on. That is what is done as long
// as there are at most kMostTrials of them; beyond that, node by node:
//
// - Of a node: the few whose leaving makes room for another slot there (for 1, 2, 4 … of them). Who
//   gives most of what is short comes first; who is not needed then stays, and each of the rest is
//   left alone where somebody who loses less will do.
// - Of the cluster: the node that asks for the fewest for each slot that is gained, then for the
//   least that is lost, until there is room for all. A holder on several nodes
//   counts on all of them.
// - At the end everyone stays who is not needed, those that lose most first.
//
// Beyond kMostTrials it may be more than the fewest: by the factor of a greedy cover, 1 +
// ln(slots), for a gang; for a job of one slot only where a node is short of several resources.
// Among sets of equal size the one that loses least, then whose holders stand first.
//
// Slots that differ are placed group by group, the largest first. Where a level is required, each
// domain (rack) is searched for itself.
//
// Pure; whole numbers only; the same problem has the same answer everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "libs/graph/types.h"

namespace fluxqueue::matcher_core {

struct StopProblem {
  static constexpr size_t kNone = SIZE_MAX;

  // Equal slots that are to have room.
  struct Ask {
    uint32_t slots = 0;
    std::vector<int64_t> needs;       // of a slot, by resource; 0: none
    graph::DevicesPerSlot gpus = {};  // in parts; no devices: none
  };
  // What is free of a node in a time; below 0 where more is held than there is.
  struct Room {
    std::vector<int64_t> amounts;  // by resource
    std::vector<int64_t> gpus;     // by device
  };
  struct Node {
    size_t domain = 0;
    std::vector<Room> rooms;  // one time after the other; a slot must have room in all
  };
  // What a holder has on a node.
  struct Share {
    size_t node = 0;
    size_t rooms = 0;  // it is held in so many of the node's, from the first one on
    std::vector<int64_t> amounts;
    std::vector<std::pair<uint32_t, int64_t>> gpus;  // device, amount
  };
  struct Holder {
    std::vector<Share> shares;
    int64_t lost = 0;
    size_t lender = kNone;
    std::vector<int64_t> holds;  // by what lenders count
  };
  // Those that are stopped below it may hold no more than this together.
  struct Lender {
    std::vector<int64_t> spare;
    size_t above = kNone;
  };

  std::vector<Ask> asks;
  std::vector<Node> nodes;
  size_t domains = 1;           // all slots in one of them
  std::vector<Holder> holders;  // those that lose least first
  std::vector<Lender> lenders;
};

inline constexpr int64_t kMostTrials = 20'000;

// Places of holders, rising, that lenders can spare together. Nothing: there is no such set, or
// none was found. Empty: there is room as it is.
std::optional<std::vector<size_t>> FewestToStop(const StopProblem& problem,
                                                int64_t most_trials = kMostTrials);

// Those whom lenders can spare together, taken in their order.
std::vector<size_t> SparedTogether(const StopProblem& problem);

}  // namespace fluxqueue::matcher_core
