// Rules between the pods of jobs: which must not, must, or must not all, run in the same domain,
// where a domain is the nodes that have one value of a label. They are those of Kubernetes
// (podAntiAffinity and podAffinity, required; topologySpreadConstraints with DoNotSchedule), each
// about pods of the job's own namespace. An engine does not look at them: whoever asks it keeps
// nodes out of a match by closures.
//
// In a jobspec, the pods as they are, and the rules that they have:
//
//   attributes.system.job.pod   {"namespace": "lab", "labels": {"app": "web"}}
//   attributes.system.pods      {"apart":  [{"key": "kubernetes.io/hostname", "pods": SELECTOR}],
//                                "beside": [{"key": "zone", "pods": SELECTOR}],
//                                "spread": [{"key": "zone", "pods": SELECTOR, "skew": 1,
//                                            "domains": 1, "affinity": true, "taints": false}]}
//   SELECTOR                    {"labels": {"app": "web"},
//                                "expressions": [{"key": "tier", "op": "In", "values": ["a"]}]}
//
// What pods would rather have (preferred podAffinity and, with negative weights, podAntiAffinity;
// ScheduleAnyway) keeps no job from starting:
//
//   attributes.system.job.pods  {"near": [{"key": "zone", "pods": SELECTOR, "weight": -50}],
//                                "even": [{"key": "zone", "pods": SELECTOR,
//                                          "affinity": true, "taints": false}]}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "libs/base/label_selector.h"

#include "absl/status/status.h"

namespace fluxqueue::graph {

// Of the rules of one jobspec, and of its pods' labels, in JSON.
inline constexpr size_t kMaxPodRuleBytes = size_t{16} * 1024;
inline constexpr size_t kMaxPodRules = 16;

struct PodRule {
  std::string key;  // of a node's label: its values are the domains
  LabelSelector pods;
};

struct SpreadRule {
  std::string key;
  LabelSelector pods;
  // By how many of these pods a domain may be ahead of the one that has the fewest …
  int64_t skew = 1;
  // … which is none while there are fewer domains than this.
  int64_t domains = 1;
  // Which nodes' domains count: those that meet the jobspec's constraint; whose taints it
  // tolerates.
  bool heeds_constraint = true;
  bool heeds_taints = false;
};

struct PodPreference {
  std::string key;
  LabelSelector pods;
  int64_t weight = 0;  // of each such pod in the node's domain; below 0: rather not there
};

// Plain values.
struct PodPreferences {
  std::vector<PodPreference> near;
  // As few as can be of these pods in the node's domain; skew and domains do not matter.
  std::vector<SpreadRule> even;

  bool AreNone() const { return near.empty() && even.empty(); }
};

// Plain values.
struct PodRules {
  std::string space;  // the namespace
  LabelMap labels;
  std::vector<PodRule> apart;
  std::vector<PodRule> beside;
  std::vector<SpreadRule> spread;
  // Equal for equal rules; empty: there are none.
  std::string signature;

  bool AreNone() const { return signature.empty(); }
};

// InvalidArgument names the key, its value and what is allowed.
absl::Status ParsePodOf(const nlohmann::json& pod, PodRules* rules);
absl::Status ParsePodRules(const nlohmann::json& pods, PodRules* rules);
absl::Status ParsePodPreferences(const nlohmann::json& pods, PodPreferences* preferences);

}  // namespace fluxqueue::graph
