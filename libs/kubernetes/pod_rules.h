// Rules between pods, as a jobspec has them (libs/graph/pod_rules.h): required pod affinity and
// anti-affinity, and topology spread with DoNotSchedule; and what is preferred. Pure, thread-safe.
//
// They are about pods of the pod's own namespace; what names others is refused, if it is required.
// matchLabelKeys and
// mismatchLabelKeys become expressions, as the API server makes them. A rule without a selector is
// about no pods.
#pragma once

#include <string>
#include <string_view>

#include "libs/kubernetes/views.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

inline constexpr size_t kMaxPodRules = 16;
inline constexpr size_t kMaxPodRuleBytes = size_t{16} * 1024;
inline constexpr size_t kMaxPodPreferenceBytes = size_t{4} * 1024;

struct PodRules {
  std::string pod;    // JSON, attributes.system.job.pod
  std::string rules;  // JSON, attributes.system.pods; empty: none
  // JSON, attributes.system.job.pods; empty: nothing. As it keeps no pod from running, terms are
  // left out that are none or about other namespaces, and the lightest of more than kMaxPodRules or
  // kMaxPodPreferenceBytes.
  std::string preferred;
  // Each pod of a job is on a node of its own: an anti-affinity by node selects its own pods.
  bool one_per_node = false;
  // A rule that a job's pods have to keep among themselves besides.
  bool among_own = false;

  friend bool operator==(const PodRules&, const PodRules&) = default;
};

// Of a pod of the namespace, with these labels. InvalidArgument names field, value and what to do
// instead.
absl::StatusOr<PodRules> MakePodRules(const PodSpec& pod,
                                      std::string_view space,
                                      const StringMap& labels);

}  // namespace fluxqueue::kubernetes
