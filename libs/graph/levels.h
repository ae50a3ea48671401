// The levels of a cluster above its nodes (zone, block, rack), which the nodes' labels name. Pure,
// thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/types.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

inline constexpr size_t kMaxLevels = 8;

struct Level {
  std::string name;   // "rack": what jobspecs call it
  std::string label;  // "topology.kubernetes.io/rack": whose value tells racks apart

  friend bool operator==(const Level&, const Level&) = default;
};

// From the outermost. Each text is a label, whose last part is the level's name, or "name=label".
// InvalidArgument names the text: an empty name or label, one that stands twice, a name that means
// something else in a jobspec ("slot", "node", "cluster"), more than kMaxLevels.
absl::StatusOr<std::vector<Level>> ParseLevels(const std::vector<std::string>& texts);

// Those that at least one of the nodes' labels names are the levels of a graph; null: the node has
// no such label.
const std::string* LabelOf(const NodeSpec& node, std::string_view label);

// What tells apart the vertices of the last of `levels`: "a/r1" is rack r1 of zone a; in another
// zone r1 is another rack. A node without the label is in a rack of its own, as nothing says that
// it shares one: "a/node7:rack".
std::string GroupOf(const NodeSpec& node, std::span<const Level> levels);

// "rack-2" before "rack-10".
bool NaturallyBefore(std::string_view a, std::string_view b);

}  // namespace fluxqueue::graph
