// A pool as its cores have it: who waits and why, what is in use, and who holds what. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "libs/base/clock.h"
#include "libs/graph/engine.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/queue_core/queue_core.h"

namespace fluxqueue::cli {

struct PoolView {
  // That holds nothing: those in line by queue and in their order, then the others.
  struct Waiting {
    std::string id{};
    std::string name{};
    std::string queue{};
    size_t position = 0;  // in its queue; 0: it is not in line
    std::string state{};
    std::string reason{};
    std::string message{};
    uint32_t slots = 0;
    int32_t priority = 0;
    int64_t submitted_ms = 0;
    int64_t promised_ms = 0;  // 0: no start is
    bool firm = false;
  };
  struct Allocation {
    std::string id{};
    uint32_t attempt = 0;
    std::string name{};  // empty: the queue does not know it any more
    std::string queue{};
    std::string state{};
    int64_t since_ms = 0;
    int64_t until_ms = 0;                                   // as planned; 0: it has no end
    std::vector<std::pair<std::string, uint32_t>> nodes{};  // slots of each
  };

  std::string pool{};
  int64_t time_ms = 0;
  std::vector<Waiting> waiting{};
  std::vector<Allocation> allocations{};
  std::vector<graph::ResourceUsage> usage{};
  std::vector<graph::NodeUsage> nodes{};
};

PoolView Look(const queue_core::QueueCore& queue,
              const matcher_core::MatcherCore& matcher,
              Millis now);

// What a key holds, by node: in the order of the slots, without those that were given back.
std::vector<std::pair<std::string, uint32_t>> SlotsByNode(const graph::Placement& placement);
// "n1 x2, n2"
std::string NodesText(const std::vector<std::pair<std::string, uint32_t>>& nodes);

nlohmann::json ToJson(const PoolView& view);
// Of the view's own day the times alone.
std::string FormatView(const PoolView& view, int64_t now_ms, bool colour);

}  // namespace fluxqueue::cli
