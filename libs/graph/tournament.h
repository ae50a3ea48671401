// Which of many members has the greatest priority, when priorities change one at a time.
//
// A complete binary tree in an array that the caller keeps (so that many trees share one): an inner
// node has the greater of its children's priorities, a leaf its member's. Finding the best and
// changing one cost a walk between the root and a leaf.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace fluxqueue::graph {

class Tournament {
 public:
  // Of a member that does not take part.
  static constexpr uint64_t kOut = 0;
  static constexpr size_t kNobody = SIZE_MAX;

  // How many numbers a tree of so many members takes.
  static size_t Length(size_t members) { return 2 * std::bit_ceil(std::max<size_t>(members, 1)); }

  // `tree`: of Length(members), which the caller keeps.
  Tournament(uint64_t* tree, size_t members) : tree_(tree), leaves_(Length(members) / 2) {}

  // The member with the greatest priority, among equals the last; kNobody when all are out.
  size_t Best() const {
    if (tree_[1] == kOut) return kNobody;
    size_t node = 1;
    while (node < leaves_) node = 2 * node + (tree_[2 * node + 1] >= tree_[2 * node] ? 1 : 0);
    return node - leaves_;
  }

  uint64_t Priority(size_t member) const { return tree_[leaves_ + member]; }

  void Set(size_t member, uint64_t priority) {
    size_t node = leaves_ + member;
    if (tree_[node] == priority) return;
    tree_[node] = priority;
    for (node /= 2; node > 0; node /= 2) {
      const uint64_t greater = std::max(tree_[2 * node], tree_[2 * node + 1]);
      if (tree_[node] == greater) return;
      tree_[node] = greater;
    }
  }

  // Sets a member's priority before anything is asked; Build() makes it count.
  void Place(size_t member, uint64_t priority) { tree_[leaves_ + member] = priority; }
  void Build() {
    for (size_t node = leaves_ - 1; node > 0; --node) {
      tree_[node] = std::max(tree_[2 * node], tree_[2 * node + 1]);
    }
  }

 private:
  uint64_t* tree_;
  size_t leaves_;
};

}  // namespace fluxqueue::graph
