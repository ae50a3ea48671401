// Jobspecs in RFC 14's canonical form, as JSON: the subset that pods need, which is slots over any
// nodes.
//
//   {"version": 1,
//    "resources": [{"type": "slot", "count": 4, "label": "pod",
//                   "with": [{"type": "cpu", "count": 1500}, {"type": "memory", "count": 1024}]}],
//    "tasks": [{"command": ["pod"], "slot": "pod", "count": {"per_slot": 1}}],
//    "attributes": {"system": {"duration": 3600, "constraints": {"and": [
//        {"properties": ["disk=ssd"]}, {"tolerations": ["dedicated=batch:NoSchedule"]}]}}}}
//
// Each slot lies on one node; several may share a node. Slots that differ (a leader and its
// workers) stand beside each other, each with a label of its own, and are matched as one. One level
// above them, such as {"type": "rack", "count": 1, "with": [slots]}, keeps all of them below one
// vertex of that level; attributes.system.topology, such as {"preferred": "rack"}, tries that level
// first, then each one above it, then any nodes. Slots that are alike, one on each node, are below
// their nodes: {"type": "node", "count": 4, "with": [{"type": "slot", "count": 1, …}]}.
// `tolerations` stands at the top of `constraints` or in a top-level `and`, once; a jobspec without
// it tolerates no taint.
//
// attributes.system.job.preferences says which of the nodes where it could run it would rather
// have:
//
//   {"terms": [{"weight": 80, "constraint": {"properties": ["zone=a"]}}],
//    "tolerations": ["spot:PreferNoSchedule"]}
//
// A node is worth the weights of all terms that it meets (preferred_nodes.h). They never keep a job
// from starting. What pods are, their rules and what they prefer of other pods (`job.pod`, `pods`,
// `job.pods`) are said in pod_rules.h. The rest of `job` is not looked at.
//
// The count of slots may be a range, {"min": 2, "max": 8, "operator": "+", "operand": 1}: then the
// job is elastic. It starts with as many as there is room for, and takes more while it runs. Its
// slots are alike, and no level is required of them: those that come later would have to be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/graph/constraint.h"
#include "libs/graph/pod_rules.h"
#include "libs/graph/types.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

inline constexpr size_t kMaxJobspecBytes = size_t{256} * 1024;
inline constexpr int kMaxJobspecDepth = 32;
inline constexpr size_t kMaxNameBytes = 253;
inline constexpr int64_t kMaxSlots = 100'000;
inline constexpr int64_t kMaxAmount = int64_t{1} << 60;
inline constexpr size_t kMaxResources = 64;
inline constexpr size_t kMaxSlotGroups = 16;
// Of the object in JSON. Each term is looked at for each node.
inline constexpr size_t kMaxPreferencesBytes = size_t{16} * 1024;
inline constexpr int64_t kMaxWeight = 100;

struct Preference {
  Constraint nodes;
  int64_t weight = 0;  // from 1 to kMaxWeight
};

// What nodes are worth besides.
struct NodeWorths {
  std::vector<std::pair<uint64_t, int64_t>> by_ordinal;  // sorted; others are worth nothing
  std::string signature;                                 // equal for equal ones
};

struct Preferences {
  std::vector<Preference> terms;
  // Of taints of the effect PreferNoSchedule, beside those of the jobspec.
  std::vector<Toleration> tolerations;
  PodPreferences pods;
  // What `pods` comes to as things are, said by whoever knows where pods run; null: nothing. No
  // text says it.
  std::shared_ptr<const NodeWorths> worths;
  // As Jobspec::constraint_signature; empty: it prefers nothing.
  std::string signature;
};

// Immutable once parsed.
struct Jobspec {
  uint32_t slots = 0;      // of all groups together; of an elastic job at most
  uint32_t min_slots = 0;  // elastic: with so many it may start; 0: all or nothing
  // Never empty. Slots are numbered along them.
  std::vector<SlotGroup> groups;
  bool one_per_node = false;    // no two slots are on one node; they are alike
  std::string required_level;   // "rack"; empty: none
  std::string preferred_level;  // the same
  Constraint constraint;
  std::vector<Toleration> tolerations;
  Preferences preferences;
  PodRules pods;
  int64_t duration_s = 0;  // 0: unlimited
  // Canonical text of `constraint` and `tolerations`, or of a long one its SHA-256: equal for
  // jobspecs that the same nodes meet.
  std::string constraint_signature;
  // The same of everything but the duration and the preferences: equal for jobspecs that fit in the
  // same places, with all of their slots.
  std::string shape;
};

// InvalidArgument with the path of the offending key ("resources[0].with[1].count: …"), its value
// and what is allowed. Time and memory are bounded by the limits above.
absl::StatusOr<Jobspec> ParseJobspec(std::string_view json);

// Beyond that, of a text that comes from outside: its strings hold no control characters, and names
// of types and labels have at most kMaxNameBytes. (What has been taken once is read as it is.)
absl::Status CheckJobspecText(std::string_view json);

// Where other pods run matters to it.
inline bool LooksAtPods(const Jobspec& jobspec) {
  return !jobspec.pods.AreNone() || !jobspec.preferences.pods.AreNone();
}

// The same with so many slots, all or nothing. REQUIRES: its slots are alike; at least one.
Jobspec WithSlots(const Jobspec& jobspec, uint32_t slots);
// The same, and nodes are worth that besides. REQUIRES: it has none.
Jobspec WithWorths(Jobspec jobspec, std::shared_ptr<const NodeWorths> worths);

}  // namespace fluxqueue::graph
