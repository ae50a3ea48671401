// Which nodes meet a jobspec's constraints and tolerate its taints; remembered by the text of the
// constraints until a node comes, goes, or changes its labels or taints. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "libs/graph/jobspec.h"
#include "libs/graph/node_table.h"

namespace fluxqueue::graph {

struct MatchingNodes {
  // By position: kEver, or kEver and kNow, or nothing.
  static constexpr uint8_t kEver = 1;  // but for passing conditions of the node
  static constexpr uint8_t kNow = 2;
  std::vector<uint8_t> flags;
  // Positions, rising.
  std::vector<size_t> ever;
  std::vector<size_t> now;
};

class MatchingCache {
 public:
  explicit MatchingCache(const NodeTable& table) : table_(table) {}

  // Valid until the next call, or until the table changes.
  const MatchingNodes& Get(const Jobspec& jobspec);

 private:
  static constexpr size_t kMaxEntries = 256;

  const NodeTable& table_;
  uint64_t version_ = 0;
  std::unordered_map<std::string, MatchingNodes> entries_;
};

}  // namespace fluxqueue::graph
