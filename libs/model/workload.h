// What kinds of workload there are besides those of Kubernetes.
//
// A claim holds resources without pods: a job that no object of the cluster stands behind,
// submitted by a command (events.v1.SubmitClaim). Whoever looks for workloads in the cluster leaves
// it out.
#pragma once

#include <string_view>

namespace fluxqueue::model {

inline constexpr std::string_view kClaimApiVersion = "fluxqueue.io/v1";
// Also in queue.jobs.kind; no object that admission takes has it.
inline constexpr std::string_view kClaimKind = "Claim";

// Pods that carry one group label, of which all start or none (libs/kubernetes/group.h). It is no
// object of the cluster either; its pods are.
inline constexpr std::string_view kGroupApiVersion = "fluxqueue.io/v1";
inline constexpr std::string_view kGroupKind = "PodGroup";

constexpr bool IsGroup(std::string_view kind) {
  return kind == kGroupKind;
}

constexpr bool IsClaim(std::string_view kind) {
  return kind == kClaimKind;
}

}  // namespace fluxqueue::model
