// The nodes of a pool as its log told of them last: also those that are gone, as long as one that
// comes back is to keep its place; and what those that can be given out have together.
//
// Changes are provisional until Commit(). Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/journaled.h"
#include "libs/graph/pod_rules.h"

namespace fluxqueue::matcher_core {

struct KnownNode {
  std::string uid;
  uint64_t ordinal = 0;  // its place among all, also once it is gone
  std::string bytes;     // events.v1.Node
  std::string resource_version;
  bool present = false;

  friend bool operator==(const KnownNode&, const KnownNode&) = default;
};

class NodeBook {
 public:
  using Nodes = Journaled<std::map<std::string, KnownNode>>;

  // Null: it is not known.
  const KnownNode* Find(const std::string& name) const { return nodes_.Find(name); }
  const std::map<std::string, KnownNode>& map() const { return nodes_.map(); }
  void Put(const std::string& name, KnownNode node);
  // Of those that are gone only `kept` are remembered: those that came last.
  void ForgetGone(size_t kept);

  // Pods on a node that hold nothing of ours.
  struct ForeignPods {
    graph::PodRules pods;
    uint32_t count = 0;
  };
  // By node. Null: none of that namespace is known.
  using ForeignByNode = std::map<std::string, std::vector<ForeignPods>>;
  const ForeignByNode* ForeignIn(const std::string& space) const;
  // Some of them have rules of their own.
  bool ForeignHaveRules(const std::string& space) const { return ruled_.contains(space); }
  bool ForeignHaveRules() const { return !ruled_.empty(); }

  // By resource, of all that are ready and not cordoned. None is 0.
  const std::map<std::string, int64_t>& capacity() const { return capacity_; }

  std::vector<Nodes::Change> Changes() const { return nodes_.Changes(); }
  void Commit() { nodes_.Commit(); }
  void Rollback();
  // As it was kept: no change.
  void Restore(const std::string& name, KnownNode node);
  void Clear();

 private:
  // What is derived from the nodes follows one that comes or goes.
  void Count(const std::string& name, const KnownNode& node);
  void Uncount(const std::string& name, const KnownNode& node);
  // `sign` 1: it counts from now on; -1: no longer.
  void CountCapacity(const events::v1::Node& node, int sign);
  void CountForeign(const events::v1::Node& node);
  void UncountForeign(const events::v1::Node& node);

  Nodes nodes_;
  std::map<std::string, int64_t> capacity_;
  std::map<std::string, ForeignByNode> foreign_;     // by namespace
  std::map<std::string, uint32_t> ruled_;            // how many of these have rules
  std::set<std::pair<uint64_t, std::string>> gone_;  // (ordinal, name)
};

}  // namespace fluxqueue::matcher_core
