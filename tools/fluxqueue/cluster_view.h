// The cluster as queue and matcher see it: its nodes, where they stand, what is used of them and
// whose jobs do.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libs/postgres/connection.h"

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

using Amounts = std::map<std::string, int64_t>;  // in base units, by resource

struct NodeView {
  std::string name;
  std::string pool;
  std::string state;  // "up", or why not: "gone", "not ready", "cordoned"
  Amounts allocatable;
  Amounts ours;                          // held by our jobs
  Amounts foreign;                       // used by others
  std::map<std::string, uint32_t> jobs;  // slots, by job id
  std::string queue;                     // whose jobs hold the most slots here; empty: none
  // From the outermost level down: "zone a", "rack r1".
  std::vector<std::string> place;

  // Of the resource that is used most, ours and others'; 0 to 1, and more on shared nodes.
  double Use() const;
};

// Nodes that are gone are left out unless something is held there.
absl::StatusOr<std::vector<NodeView>> ReadClusterView(postgres::Connection& connection);

// cpu, memory and pods, then what else there is of more interest than disk and huge pages.
std::vector<std::string> ResourcesOf(const std::vector<NodeView>& nodes);

// "3+1/8": ours, others' (if any), and what there is; "-": there is none.
std::string ShareText(const NodeView& node, const std::string& resource);

}  // namespace fluxqueue::cli
