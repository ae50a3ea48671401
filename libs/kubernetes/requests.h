// What a pod asks for, counted as kube-scheduler counts it. Pure, thread-safe.
//
// For each resource, the larger of
//   the sum of the containers and the sidecars (init containers with restartPolicy Always), and
//   the largest init step: an init container and the sidecars that stand before it;
// then cpu, memory and huge pages are replaced by pod-level requests where those are given; then
// the overhead is added; then one unit of "pods", and one of each host port of a container or
// sidecar (libs/model/host_ports.h). Resources of amount 0 are left out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/views.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// "hostport-8080-tcp", whatever the case of the protocol. As two pods with a port on different
// addresses of one node are rare, its address does not matter.
std::string HostPortResource(int64_t port, std::string_view protocol);

// Of a pod that the API server has completed.
Amounts EffectiveRequests(const PodSpec& pod);

// What the API server would complete a template with when it makes a pod of it, in one namespace.
struct TemplateContext {
  Amounts default_requests;  // LimitRange: defaultRequest
  Amounts default_limits;    // LimitRange: default
  std::map<std::string, RuntimeClass, std::less<>> runtime_classes;
  std::map<std::string, int32_t, std::less<>> priorities;  // by PriorityClass
  std::optional<int32_t> default_priority;                 // of the globalDefault class

  // Several LimitRanges of a namespace: the first that names a resource wins.
  void Add(const LimitRange& range);
  void Add(const RuntimeClass& runtime_class);
  void Add(const PriorityClass& priority_class);
};

// The template as its pods will be: limits fill requests, LimitRange defaults fill what is missing
// still, pod-level limits fill pod-level requests, the RuntimeClass gives the overhead, and more
// node selectors and tolerations, and the PriorityClass the priority. InvalidArgument: a
// RuntimeClass or PriorityClass that is not in the context; a node selector that is not the
// RuntimeClass's, whose pods the API server refuses.
absl::StatusOr<PodSpec> CompleteTemplate(PodSpec pod, const TemplateContext& context);

// Unset if `requests` fit into a slot of `slot`; else what is larger: "memory 4Gi > 3Gi".
std::optional<std::string> Excess(const Amounts& requests, const Amounts& slot);

}  // namespace fluxqueue::kubernetes
