// What is free on the nodes of a StopProblem with some of the holders gone, and for how many slots
// that is room. The book that the search keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libs/matcher_core/stop_search.h"

namespace fluxqueue::matcher_core {

class Rooms {
 public:
  // No holder is gone. The problem must outlive them.
  explicit Rooms(const StopProblem& problem);

  // From now on slots of this kind are counted, in this domain, which has these nodes.
  void Count(const StopProblem::Ask& ask, size_t domain, const std::vector<size_t>& nodes);
  // Of what is counted.
  bool HasAll() const { return total_ >= ask_->slots; }
  int64_t total() const { return total_; }
  int64_t lacking() const;
  int64_t fit(size_t node) const { return fit_[node]; }

  bool is_gone(size_t holder) const { return gone_[holder]; }
  void Set(size_t holder, bool gone);
  // Lenders can spare it beside those that are gone.
  bool MayGo(size_t holder) const;
  // What the holder gives of what the node of the share lacks for so many slots, in parts of 2^16
  // of a resource. 0: it is of no use there.
  int64_t Gives(size_t holder, const StopProblem::Share& share, int64_t slots) const;

  // So many of the slots are on the node from now on. REQUIRES: they fit.
  void Place(size_t node, int64_t slots);
  // Nothing is placed there any more. REQUIRES: no holder is gone.
  void Clear(size_t node) { nodes_[node] = problem_.nodes[node]; }

 private:
  int64_t Fit(size_t node) const;
  static int64_t LeastFree(const StopProblem::Node& node, size_t device);
  int64_t GivesOfGpus(const StopProblem::Node& node, const StopProblem::Share& share) const;

  const StopProblem& problem_;
  std::vector<StopProblem::Node> nodes_;
  std::vector<int64_t> fit_;
  std::vector<bool> gone_;
  std::vector<std::vector<int64_t>> spare_;  // by lender
  const StopProblem::Ask* ask_ = nullptr;
  size_t domain_ = 0;
  int64_t total_ = 0;
};

}  // namespace fluxqueue::matcher_core
