// The nodes of a pool in the order of their ordinals: what each has, what others use of it, what is
// held of it by us, and which levels their labels name. The books that people read; where jobs go
// is decided on the graph.
//
// Resources are numbered as they come; the numbers never show outside the engine. Node objects keep
// their addresses. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/graph/levels.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/types.h"

namespace fluxqueue::graph {

// `amount` (at least 1) of the resource with this number.
struct Need {
  size_t resource = 0;
  int64_t amount = 0;
};

struct Node {
  // Where a resource of the node is in the graph.
  struct Leaf {
    VertexId vertex = 0;
    EdgeId edge = kNoEdge;  // that leads to it; kNoEdge: it is not in the graph
  };

  NodeSpec spec;
  uint32_t live_slots = 0;
  // By resource number.
  std::vector<int64_t> capacity;
  std::vector<int64_t> foreign;
  std::vector<int64_t> held;
  // What can be given out: never negative, also where more is in use than there is. Not looked at
  // while the node is not schedulable.
  std::vector<int64_t> free;
  Leaf here;
  std::vector<Leaf> leaves;
  // GPUs that are given out in parts (kGpuMilli): what is held of each, which may be more devices
  // than there are, and what others use and what is free of each that there is.
  std::vector<int64_t> device_held;
  std::vector<int64_t> device_foreign;
  std::vector<int64_t> device_free;
  std::vector<Leaf> devices;
};

// A vertex of a level, such as a rack.
struct LevelGroup {
  std::string name;  // GroupOf its nodes
  size_t depth = 0;  // of the level, among those in use
  // The one node of a group that no label names; null: a label does.
  const Node* own = nullptr;
};

class NodeTable {
 public:
  static constexpr size_t kCpu = 0;
  static constexpr size_t kGpus = 1;

  NodeTable() {
    Number("cpu");
    Number(kGpuMilli);
  }

  // The number of the resource, given now if it has none.
  size_t Number(std::string_view resource);
  // Nothing when no node ever had one of the resources.
  std::optional<std::vector<Need>> NeedsOf(const Amounts& request) const;
  const std::vector<std::string>& resources() const { return resources_; }

  Node* Find(std::string_view name) const;
  bool HasOrdinal(uint64_t ordinal) const { return by_ordinal_.contains(ordinal); }
  // REQUIRES: neither its name nor its ordinal is taken.
  Node* Add(NodeSpec spec);
  // Puts back what Take took, as it was.
  void PutBack(std::unique_ptr<Node> node);
  std::unique_ptr<Node> Take(Node* node);
  // REQUIRES: the same name and ordinal.
  void Replace(Node* node, NodeSpec spec);

  // `slots` may be negative: they are given back.
  void Hold(Node* node, std::span<const Need> needs, int64_t slots);
  // The same of `amount` of each of these devices; it may be negative.
  void HoldDevices(Node* node, std::span<const uint32_t> devices, int64_t amount);

  void SetLevels(std::vector<Level> levels);
  const std::vector<Level>& levels() const { return levels_; }
  // Those of them that some node's label names.
  std::vector<Level> LevelsInUse() const;
  // Of each level in use, from the outermost: the groups that labels name, in their natural order,
  // then those of nodes without the label.
  std::vector<LevelGroup> Groups() const;

  // By ordinal.
  const std::map<uint64_t, Node*>& nodes() const { return by_ordinal_; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t schedulable() const { return schedulable_; }
  // The most that one node has.
  int64_t Largest(std::string_view resource) const;
  // Rises whenever nodes come or go, or what they have, their labels, taints or levels change.
  uint64_t version() const { return version_; }

 private:
  void CountLabels(const NodeSpec& spec, int direction);
  void Load(Node* node) const;
  void CountFree(Node* node) const;
  static void CountFreeDevices(Node* node);

  std::vector<std::string> resources_;
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> numbers_;
  std::unordered_map<std::string, std::unique_ptr<Node>, TextHash, std::equal_to<>> nodes_;
  std::map<uint64_t, Node*> by_ordinal_;
  std::vector<Level> levels_;
  // By label: how many nodes have it. Those of levels only.
  std::map<std::string, uint32_t, std::less<>> labelled_;
  uint32_t schedulable_ = 0;
  uint64_t version_ = 0;
};

}  // namespace fluxqueue::graph
