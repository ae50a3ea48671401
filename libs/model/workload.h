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

constexpr bool IsClaim(std::string_view kind) {
  return kind == kClaimKind;
}

}  // namespace fluxqueue::model
