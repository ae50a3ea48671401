// The API resources that Fluxqueue talks of. Pure.
#pragma once

#include <string>
#include <string_view>

namespace fluxqueue::kubernetes {

struct Resource {
  std::string_view group;  // empty: the core group
  std::string_view version;
  std::string_view plural;
  bool namespaced = true;

  // "/apis/batch/v1/namespaces/default/jobs/a/status"; name, subresource and (for all namespaces)
  // namespace may be empty. Each of them stays one segment, whatever it holds.
  std::string Path(std::string_view space,
                   std::string_view name = {},
                   std::string_view subresource = {}) const;
};

inline constexpr Resource kPods{"", "v1", "pods"};
inline constexpr Resource kPodTemplates{"", "v1", "podtemplates"};
inline constexpr Resource kNodes{"", "v1", "nodes", false};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", false};
inline constexpr Resource kLimitRanges{"", "v1", "limitranges"};
inline constexpr Resource kEvents{"events.k8s.io", "v1", "events"};
inline constexpr Resource kJobs{"batch", "v1", "jobs"};
inline constexpr Resource kDaemonSets{"apps", "v1", "daemonsets"};
inline constexpr Resource kRuntimeClasses{"node.k8s.io", "v1", "runtimeclasses", false};
inline constexpr Resource kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses", false};
inline constexpr Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", false};
inline constexpr Resource kSubjectAccessReviews{
    "authorization.k8s.io", "v1", "subjectaccessreviews", false};
inline constexpr Resource kProvisioningRequests{
    "autoscaling.x-k8s.io", "v1", "provisioningrequests"};
inline constexpr Resource kFluxJobs{"fluxqueue.io", "v1alpha1", "fluxjobs"};
inline constexpr Resource kFluxQueues{"fluxqueue.io", "v1alpha1", "fluxqueues", false};
inline constexpr Resource kFluxWindows{"fluxqueue.io", "v1alpha1", "fluxwindows", false};

}  // namespace fluxqueue::kubernetes
