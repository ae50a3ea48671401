// Which nodes are worth more than others to a jobspec, as Kubernetes has it: a node is worth the
// weights of the preferred terms that it meets, less kSoftTaint if it has a taint of the effect
// PreferNoSchedule that is not tolerated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/graph/constraint.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/node_table.h"

namespace fluxqueue::graph {

// As much as the heaviest term.
inline constexpr int64_t kSoftTaint = 100;

// The nodes that a jobspec could use, by what they are worth to it. Not thread-safe.
class PreferenceTiers {
 public:
  // At most so many tiers are told apart; all below are one.
  static constexpr size_t kMost = 8;
  using Nodes = std::vector<const Node*>;

  // `of`: tells apart what is preferred, and by which jobspecs.
  PreferenceTiers(const std::string& of, std::vector<Nodes> tiers);

  // No tier: all nodes are worth the same. Else at least two, the best first.
  size_t size() const { return tiers_.size(); }
  const Nodes& nodes(size_t tier) const { return tiers_[tier].nodes; }
  // The same jobspec on the nodes of this tier alone, and of the first `count` tiers.
  Jobspec OnTier(size_t tier, const Jobspec& jobspec);
  Jobspec OnFirst(size_t count, const Jobspec& jobspec);

 private:
  struct Tier {
    Nodes nodes;
    // Made when they are asked for.
    std::optional<Constraint> alone;
    std::optional<Constraint> or_better;
  };

  std::string name_;  // the same for the same nodes in the same tiers
  std::vector<Tier> tiers_;
};

// Not thread-safe.
class PreferredNodes {
 public:
  // Null: all that meet its constraint are worth the same. Valid until the next call.
  PreferenceTiers* TiersOf(const Jobspec& jobspec, const NodeTable& table);

 private:
  struct Known {
    PreferenceTiers tiers;
    uint64_t used = 0;  // when that was, in calls
  };

  void Renew(const NodeTable& table);
  void ForgetOldest();

  uint64_t version_ = UINT64_MAX;  // of the table
  bool any_soft_taint_ = false;
  // By what is preferred, and where the jobspec could run.
  std::map<std::string, Known> known_;
  uint64_t calls_ = 0;
};

}  // namespace fluxqueue::graph
