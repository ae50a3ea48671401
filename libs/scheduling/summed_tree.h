// An ordered map that keeps a summary of each of its subtrees: what is asked of all of them at once
// (the first that fits, the sum up to a key) is answered by looking at O(log n) of them, as far as
// the summaries can tell.
//
//   struct Summary {
//     static Summary Of(const Key&, const Value&);   // of one
//     void Join(const Summary&);                     // of both
//   };
//
// What is in the map is not changed in place. Thread-compatible.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

#include "libs/base/check.h"

namespace fluxqueue::scheduling {

template <typename Key, typename Value, typename Summary>
class SummedTree {
  template <class ConstNode, class Node, class Compare, class Allocator>
  struct Update {
    using metadata_type = Summary;

    virtual ~Update() = default;
    void operator()(Node node, ConstNode end) const {
      Summary all = Summary::Of((**node).first, (**node).second);
      for (ConstNode child : {ConstNode(node.get_l_child()), ConstNode(node.get_r_child())}) {
        if (child != end) all.Join(child.get_metadata());
      }
      const_cast<Summary&>(node.get_metadata()) = all;
    }
    virtual ConstNode node_begin() const = 0;
    virtual ConstNode node_end() const = 0;
  };
  using Tree = __gnu_pbds::tree<Key, Value, std::less<Key>, __gnu_pbds::rb_tree_tag, Update>;
  using Node = typename Tree::node_const_iterator;

 public:
  // REQUIRES: nobody has this key.
  void Insert(const Key& key, Value value) {
    CHECK(tree_.insert({key, std::move(value)}).second, "a key stands twice in a summed tree");
  }
  // REQUIRES: somebody has this key.
  void Erase(const Key& key) { CHECK(tree_.erase(key), "a summed tree does not know the key"); }

  bool empty() const { return tree_.empty(); }
  size_t size() const { return tree_.size(); }
  void clear() { tree_.clear(); }
  auto begin() const { return tree_.begin(); }  // to (key, value)
  auto end() const { return tree_.end(); }

  // Of all.
  std::optional<Summary> All() const {
    if (tree_.empty()) return std::nullopt;
    return tree_.node_begin().get_metadata();
  }

  // The first behind `after` (null: the first of all) that is accepted. `may(summary)` is false
  // only where nobody in the subtree would be.
  template <typename May, typename Accept>
  std::optional<std::pair<Key, Value>> First(const Key* after, May may, Accept accept) const {
    return FirstOf(tree_.node_begin(), after, may, accept);
  }

  // `visit(summary)` for disjoint subtrees and single entries that are together all up to `last`.
  template <typename Visit>
  void UpTo(const Key& last, Visit visit) const {
    Node node = tree_.node_begin();
    while (node != tree_.node_end()) {
      if (last < (**node).first) {
        node = node.get_l_child();
        continue;
      }
      const Node left = node.get_l_child();
      if (left != tree_.node_end()) visit(left.get_metadata());
      visit(Summary::Of((**node).first, (**node).second));
      node = node.get_r_child();
    }
  }

 private:
  template <typename May, typename Accept>
  std::optional<std::pair<Key, Value>> FirstOf(Node node,
                                               const Key* after,
                                               const May& may,
                                               const Accept& accept) const {
    if (node == tree_.node_end() || !may(node.get_metadata())) return std::nullopt;
    const auto& [key, value] = **node;
    if (after != nullptr && !(*after < key)) {
      return FirstOf(node.get_r_child(), after, may, accept);
    }
    auto found = FirstOf(node.get_l_child(), after, may, accept);
    if (found.has_value()) return found;
    if (accept(key, value)) return std::pair(key, value);
    return FirstOf(node.get_r_child(), nullptr, may, accept);
  }

  Tree tree_;
};

}  // namespace fluxqueue::scheduling
