// What one job holds of a resource graph, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

// How long a graph lasts, as Fluxion takes it (a hundred years), in seconds: a job without a
// duration holds what it holds for so long.
inline constexpr int64_t kForever = int64_t{100} * 365 * 24 * 3600;

// One vertex of what a job holds.
struct HeldVertex {
  VertexId vertex = 0;
  // That led to it; kNoEdge for the root.
  EdgeId edge = kNoEdge;
  int64_t amount = 0;
  // Held, rather than only on the way to what is held.
  bool exclusive = false;

  friend bool operator==(const HeldVertex&, const HeldVertex&) = default;
};

// Vertices in the order in which they were added. A whole node is mostly a few runs (its cores, its
// gpus), so these are what is kept.
class HeldVertices {
 public:
  // So many vertices like the first one, with the numbers behind its own, as have their edges.
  struct Run {
    HeldVertex first;
    uint32_t count = 1;

    HeldVertex operator[](uint32_t i) const {
      const EdgeId edge = first.edge == kNoEdge ? kNoEdge : first.edge + i;
      return {first.vertex + i, edge, first.amount, first.exclusive};
    }
    friend bool operator==(const Run&, const Run&) = default;
  };

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = HeldVertex;
    using difference_type = ptrdiff_t;
    using pointer = void;
    using reference = HeldVertex;

    Iterator() = default;
    explicit Iterator(const Run* run) : run_(run) {}

    HeldVertex operator*() const { return (*run_)[at_]; }
    Iterator& operator++() {
      if (++at_ == run_->count) {
        ++run_;
        at_ = 0;
      }
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Run* run_ = nullptr;
    uint32_t at_ = 0;
  };

  void push_back(const HeldVertex& held) { Append({held, 1}); }
  // REQUIRES: one vertex, or those of the run have edges.
  void Append(const Run& run) {
    if (!runs_.empty() && run.first.edge != kNoEdge) {
      Run& last = runs_.back();
      if (last.first.edge != kNoEdge && last[last.count] == run.first) {
        last.count += run.count;
        return;
      }
    }
    runs_.push_back(run);
  }
  void Reserve(size_t runs) { runs_.reserve(runs); }
  void clear() { runs_.clear(); }

  bool empty() const { return runs_.empty(); }
  // Counts them.
  size_t size() const {
    size_t vertices = 0;
    for (const Run& run : runs_) vertices += run.count;
    return vertices;
  }
  // REQUIRES: not empty.
  HeldVertex back() const { return runs_.back()[runs_.back().count - 1]; }
  Iterator begin() const { return Iterator(runs_.data()); }
  Iterator end() const { return Iterator(runs_.data() + runs_.size()); }
  std::span<const Run> runs() const { return runs_; }

  friend bool operator==(const HeldVertices&, const HeldVertices&) = default;

 private:
  std::vector<Run> runs_;  // none continues the one before it
};

struct Holding {
  int64_t at_s = 0;
  int64_t duration_s = 0;
  bool reserved = false;
  // What is free above is not less for it: several may hold the same.
  bool out_of_sums = false;
  // Children before their parents.
  HeldVertices vertices;
  // How much is held below each vertex that is in no group of leaves, in their order: how many
  // numbers follow, and one number for each of the filter types that the vertex had when it was
  // held. None where nothing is held of what the vertex sums up. See GraphState::SumUpBelow.
  std::vector<int64_t> below;

  friend bool operator==(const Holding&, const Holding&) = default;
};

}  // namespace fluxqueue::graph
