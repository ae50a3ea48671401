// Holders of something, each in or out of the graph, to see for whom there is room without them.
//
// Out is: released, and restored at its place afterwards; so the engine's fingerprint is the same
// in the end. Reservations stand all the while, and are not touched.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "libs/graph/engine.h"
#include "libs/graph/types.h"

namespace fluxqueue::matcher_core {

class Removal {
 public:
  explicit Removal(graph::Engine* engine) : engine_(engine) {}
  ~Removal() { PutBack(); }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

  // One more, which is in. False: it is there already, or holds nothing (any more).
  bool Add(const graph::AllocationKey& key);

  size_t size() const { return holders_.size(); }
  const graph::AllocationKey& key(size_t i) const { return holders_[i].key; }
  const graph::Placement& placement(size_t i) const { return holders_[i].placement; }
  bool is_out(size_t i) const { return holders_[i].out; }

  void Set(size_t i, bool out);
  void TakeOutAll();
  void PutBack();

  // Whether there is room now. Holds nothing afterwards.
  bool Fits(const graph::MatchRequest& request);
  // Of `order` the shortest beginning without which it fits is out, and no other of it. False:
  // it does not fit without all of it. 1 + log2(n) matches. Where a policy finds room in less than
  // it misses it in, the beginning may be longer than need be; never too short.
  bool FindBeginning(const graph::MatchRequest& request, std::span<const size_t> order);
  // Of these, in this order, every one that is out goes back in without which it fits all the same.
  // REQUIRES: it fits. What is out then is minimal. One match for each.
  void Spare(const graph::MatchRequest& request, std::span<const size_t> order);

 private:
  struct Holder {
    graph::AllocationKey key;
    graph::Placement placement;
    bool out = false;
  };

  graph::Engine* const engine_;
  std::vector<Holder> holders_;
  std::set<graph::AllocationKey> keys_;
};

}  // namespace fluxqueue::matcher_core
