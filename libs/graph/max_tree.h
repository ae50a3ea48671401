// An index over a row of leaves, each with a vector of amounts: which leaf, in some order, has at
// least so much of everything?
//
// The naive search looks at every leaf. Here each inner node of a binary tree knows the greatest
// amount of each resource below it, so a subtree in which one resource falls short is skipped
// whole. What is found is the same, as a leaf never has more than its ancestors say. One leaf is
// changed in O(resources · log leaves); a search costs about log leaves when amounts are alike, and
// at worst (each resource is to be had, but nowhere together) a look at every leaf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace fluxqueue::graph {

// So much of the resource with this index.
struct Need {
  size_t resource = 0;
  int64_t amount = 0;
};

class MaxTree {
 public:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // All leaves become absent. `leaves` is rounded up to a power of two.
  void Reset(size_t leaves, size_t resources);

  size_t leaves() const { return leaves_; }

  // `amounts` has one entry for each resource.
  void Set(size_t leaf, std::span<const int64_t> amounts);
  // An absent leaf is never found.
  void Clear(size_t leaf);

  // Whether one leaf may fit: false is certain.
  bool MayFit(std::span<const Need> needs) const { return leaves_ > 0 && Fits(1, needs); }
  // The greatest amount of the resource on one leaf; negative when all are absent.
  int64_t Greatest(size_t resource) const { return leaves_ > 0 ? At(1)[resource] : -1; }

  // The first leaf at or behind `from` that fits and that `accept(leaf)` takes; kNone: there is
  // none.
  template <typename Accept>
  size_t FindUp(size_t from, std::span<const Need> needs, const Accept& accept) const {
    return leaves_ == 0 ? kNone : Up({1, 0, leaves_}, from, needs, accept);
  }

  // The last leaf before `end`.
  template <typename Accept>
  size_t FindDown(size_t end, std::span<const Need> needs, const Accept& accept) const {
    return leaves_ == 0 ? kNone : Down({1, 0, leaves_}, end, needs, accept);
  }

  // The leaf with the greatest amount of `resource`; among equals the last.
  template <typename Accept>
  size_t FindGreatest(size_t resource, std::span<const Need> needs, const Accept& accept) const {
    Best best;
    if (leaves_ > 0) Greatest({1, 0, leaves_}, resource, needs, accept, &best);
    return best.leaf;
  }

 private:
  static constexpr int64_t kAbsent = -1;

  struct Range {
    size_t node;
    size_t begin;
    size_t size;
    Range Left() const { return {2 * node, begin, size / 2}; }
    Range Right() const { return {2 * node + 1, begin + size / 2, size / 2}; }
  };
  struct Best {
    int64_t amount = kAbsent;
    size_t leaf = kNone;
  };

  const int64_t* At(size_t node) const { return &greatest_[node * resources_]; }
  bool Fits(size_t node, std::span<const Need> needs) const {
    const int64_t* have = At(node);
    for (const Need& need : needs) {
      if (have[need.resource] < need.amount) return false;
    }
    return true;
  }
  void Raise(size_t leaf);

  template <typename Accept>
  size_t Up(Range range, size_t from, std::span<const Need> needs, const Accept& accept) const {
    if (range.begin + range.size <= from || !Fits(range.node, needs)) return kNone;
    if (range.size == 1) return accept(range.begin) ? range.begin : kNone;
    const size_t found = Up(range.Left(), from, needs, accept);
    return found != kNone ? found : Up(range.Right(), from, needs, accept);
  }

  template <typename Accept>
  size_t Down(Range range, size_t end, std::span<const Need> needs, const Accept& accept) const {
    if (range.begin >= end || !Fits(range.node, needs)) return kNone;
    if (range.size == 1) return accept(range.begin) ? range.begin : kNone;
    const size_t found = Down(range.Right(), end, needs, accept);
    return found != kNone ? found : Down(range.Left(), end, needs, accept);
  }

  template <typename Accept>
  void Greatest(Range range,
                size_t resource,
                std::span<const Need> needs,
                const Accept& accept,
                Best* best) const {
    const int64_t amount = At(range.node)[resource];
    const bool better = amount > best->amount ||
                        (amount == best->amount && range.begin + range.size - 1 > best->leaf);
    if ((best->leaf != kNone && !better) || !Fits(range.node, needs)) return;
    if (range.size == 1) {
      if (accept(range.begin)) *best = {amount, range.begin};
      return;
    }
    // The better half first, so that the other is mostly skipped.
    Range first = range.Right();
    Range second = range.Left();
    if (At(second.node)[resource] > At(first.node)[resource]) std::swap(first, second);
    Greatest(first, resource, needs, accept, best);
    Greatest(second, resource, needs, accept, best);
  }

  size_t leaves_ = 0;
  size_t resources_ = 0;
  // Of node i (1: the root; i's children: 2i, 2i+1; the leaves behind) at [i·resources, …).
  std::vector<int64_t> greatest_;
};

}  // namespace fluxqueue::graph
