// The nodes of a graph in the order of their ordinals, what is free on each, and indexes over it.
//
// A node stands at a position; positions rise with ordinals. A node that is taken out leaves a
// hole, and positions are given anew when there is no room behind the last one or when an ordinal
// has to go between. Node objects keep their addresses.
//
// Resources are numbered as they come; the numbers never show outside the engine. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/graph/max_tree.h"
#include "libs/graph/types.h"

namespace fluxqueue::graph {

struct Node {
  NodeSpec spec;
  size_t position = 0;
  uint32_t live_slots = 0;
  // By resource number.
  std::vector<int64_t> capacity;
  std::vector<int64_t> foreign;
  std::vector<int64_t> held;
  // What can be given out: never negative, also where more is in use than there is. Not looked at
  // while the node is not schedulable.
  std::vector<int64_t> free;
};

// How many slots go into `amounts`.
int64_t SlotsIn(std::span<const int64_t> amounts, std::span<const Need> needs);

class NodeTable {
 public:
  static constexpr size_t kCpu = 0;

  NodeTable();

  // The number of the resource, given now if it has none.
  size_t Number(std::string_view resource);
  // Nothing when no node ever had one of the resources.
  std::optional<std::vector<Need>> NeedsOf(const Amounts& request) const;
  const std::vector<std::string>& resources() const { return resources_; }

  Node* Find(std::string_view name) const;
  bool HasOrdinal(uint64_t ordinal) const;
  // REQUIRES: neither its name nor its ordinal is taken.
  Node* Add(NodeSpec spec);
  // Puts back what Take took, as it was.
  void PutBack(std::unique_ptr<Node> node);
  std::unique_ptr<Node> Take(Node* node);
  // REQUIRES: the same name and ordinal.
  void Replace(Node* node, NodeSpec spec);

  // `slots` may be negative: they are given back.
  void Hold(Node* node, std::span<const Need> needs, int64_t slots);

  // Whether nodes that hold slots of ours are indexed apart from those that do not.
  void SetApart(bool apart);

  // By position; null where there is a hole.
  const std::vector<Node*>& positions() const { return positions_; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t schedulable() const { return schedulable_; }
  // Rises whenever positions, labels or taints change.
  uint64_t version() const { return version_; }

  // Leaf = position. Free amounts of schedulable nodes without slots of ours (of all of them when
  // not kept apart), and with.
  const MaxTree& untouched() const { return untouched_; }
  const MaxTree& touched() const { return touched_; }
  // Whole sizes of all nodes.
  const MaxTree& capacity() const { return capacity_; }

  // Takes a node out of the index `touched` until the next Refresh of it.
  void Hide(const Node& node) { touched_.Clear(node.position); }
  void Refresh(Node* node);

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void Place(Node* node);
  void Renumber(Node* added);
  void Load(Node* node) const;
  void Index(Node* node);

  std::vector<std::string> resources_;
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> numbers_;
  std::unordered_map<std::string, std::unique_ptr<Node>, TextHash, std::equal_to<>> nodes_;
  std::vector<Node*> positions_;
  uint64_t last_ordinal_ = 0;  // at or before the last position
  uint32_t schedulable_ = 0;
  uint64_t version_ = 0;
  bool apart_ = true;
  MaxTree untouched_;
  MaxTree touched_;
  MaxTree capacity_;
};

}  // namespace fluxqueue::graph
