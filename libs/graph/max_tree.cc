#include "libs/graph/max_tree.h"

#include <algorithm>
#include <bit>

namespace fluxqueue::graph {

void MaxTree::Reset(size_t leaves, size_t resources) {
  leaves_ = std::bit_ceil(std::max<size_t>(leaves, 1));
  resources_ = resources;
  greatest_.assign(2 * leaves_ * resources_, kAbsent);
}

void MaxTree::Set(size_t leaf, std::span<const int64_t> amounts) {
  std::copy(amounts.begin(), amounts.end(), &greatest_[(leaves_ + leaf) * resources_]);
  Raise(leaf);
}

void MaxTree::Clear(size_t leaf) {
  int64_t* amounts = &greatest_[(leaves_ + leaf) * resources_];
  std::fill(amounts, amounts + resources_, kAbsent);
  Raise(leaf);
}

void MaxTree::Raise(size_t leaf) {
  for (size_t node = (leaves_ + leaf) / 2; node >= 1; node /= 2) {
    const int64_t* left = At(2 * node);
    const int64_t* right = At(2 * node + 1);
    int64_t* here = &greatest_[node * resources_];
    bool changed = false;
    for (size_t i = 0; i < resources_; ++i) {
      const int64_t greatest = std::max(left[i], right[i]);
      changed |= here[i] != greatest;
      here[i] = greatest;
    }
    if (!changed) return;
  }
}

}  // namespace fluxqueue::graph
