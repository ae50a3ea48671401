#include "libs/kubernetes/requests.h"

#include <vector>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/model/host_ports.h"

#include "absl/strings/ascii.h"

namespace fluxqueue::kubernetes {
namespace {

bool IsHugePages(std::string_view resource) {
  return resource.starts_with("hugepages-");
}

// The resources that spec.resources can name.
bool IsPodLevel(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || IsHugePages(resource);
}

Amounts OfContainers(const PodSpec& pod) {
  Amounts sum;
  for (const Container& container : pod.containers) Add(sum, container.requests);
  Amounts sidecars;
  Amounts largest_step;
  for (const Container& container : pod.init_containers) {
    if (container.sidecar) {
      Add(sum, container.requests);
      Add(sidecars, container.requests);
      RaiseTo(largest_step, sidecars);
    } else {
      Amounts step = sidecars;
      Add(step, container.requests);
      RaiseTo(largest_step, step);
    }
  }
  RaiseTo(sum, largest_step);
  return sum;
}

// What the API server makes of spec.resources.limits where spec.resources.requests is silent: the
// containers' sum if they ask for any (huge pages apart), else the limit.
void CompletePodRequests(PodSpec* pod) {
  if (pod->pod_limits.empty()) return;
  for (const auto& [resource, amount] : OfContainers(*pod)) {
    if (IsPodLevel(resource) && !IsHugePages(resource)) pod->pod_requests.emplace(resource, amount);
  }
  FillMissing(pod->pod_requests, pod->pod_limits);
}

template <typename Map>
std::string Names(const Map& map) {
  std::string names;
  for (const auto& [name, unused] : map) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

absl::Status ApplyRuntimeClass(const TemplateContext& context, PodSpec* pod) {
  if (pod->runtime_class.empty()) return absl::OkStatus();
  const auto found = context.runtime_classes.find(pod->runtime_class);
  if (found == context.runtime_classes.end()) {
    return InvalidArgument("spec.runtimeClassName: there is no RuntimeClass \"{}\"; there are: {}",
                           pod->runtime_class,
                           Names(context.runtime_classes));
  }
  const RuntimeClass& runtime = found->second;
  if (pod->overhead.empty()) pod->overhead = runtime.overhead;
  for (const auto& [key, value] : runtime.node_selector) {
    const auto& [selected, added] = pod->node_selector.emplace(key, value);
    if (added || selected->second == value) continue;
    return InvalidArgument(
        "spec.nodeSelector: {} is \"{}\"; allowed with RuntimeClass \"{}\" is its own, \"{}\"",
        key,
        selected->second,
        runtime.name,
        value);
  }
  pod->tolerations.insert(
      pod->tolerations.end(), runtime.tolerations.begin(), runtime.tolerations.end());
  return absl::OkStatus();
}

absl::Status ApplyPriorityClass(const TemplateContext& context, PodSpec* pod) {
  if (pod->priority) return absl::OkStatus();
  if (pod->priority_class.empty()) {
    pod->priority = context.default_priority;
    return absl::OkStatus();
  }
  const auto found = context.priorities.find(pod->priority_class);
  if (found == context.priorities.end()) {
    return InvalidArgument(
        "spec.priorityClassName: there is no PriorityClass \"{}\"; there are: {}",
        pod->priority_class,
        Names(context.priorities));
  }
  pod->priority = found->second;
  return absl::OkStatus();
}

}  // namespace

std::string HostPortResource(int64_t port, std::string_view protocol) {
  std::string name = fmt::format("{}{}-{}", model::kHostPortPrefix, port, protocol);
  absl::AsciiStrToLower(&name);
  return name;
}

Amounts EffectiveRequests(const PodSpec& pod) {
  Amounts requests = OfContainers(pod);
  for (const auto& [resource, amount] : pod.pod_requests) {
    if (IsPodLevel(resource)) requests[resource] = amount;
  }
  Add(requests, pod.overhead);
  requests["pods"] = 1;
  const auto take_ports = [&requests](const Container& container) {
    for (const std::string& port : container.host_ports) requests[port] = 1;
  };
  for (const Container& container : pod.containers) take_ports(container);
  for (const Container& container : pod.init_containers) {
    if (container.sidecar) take_ports(container);
  }
  std::erase_if(requests, [](const auto& item) { return item.second == 0; });
  return requests;
}

void TemplateContext::Add(const LimitRange& range) {
  FillMissing(default_requests, range.default_requests);
  FillMissing(default_limits, range.default_limits);
}

void TemplateContext::Add(const RuntimeClass& runtime_class) {
  runtime_classes[runtime_class.name] = runtime_class;
}

void TemplateContext::Add(const PriorityClass& priority_class) {
  priorities[priority_class.name] = priority_class.value;
  if (priority_class.global_default) default_priority = priority_class.value;
}

absl::StatusOr<PodSpec> CompleteTemplate(PodSpec pod, const TemplateContext& context) {
  const auto each_container = [&](auto apply) {
    for (Container& container : pod.containers) apply(container);
    for (Container& container : pod.init_containers) apply(container);
  };
  // In the API server's order: its own defaults, then the admission plugins'.
  each_container([](Container& c) { FillMissing(c.requests, c.limits); });
  CompletePodRequests(&pod);
  each_container([&](Container& c) {
    FillMissing(c.requests, context.default_requests);
    FillMissing(c.limits, context.default_limits);
  });
  RETURN_IF_ERROR(ApplyRuntimeClass(context, &pod));
  RETURN_IF_ERROR(ApplyPriorityClass(context, &pod));
  return pod;
}

std::optional<std::string> Excess(const Amounts& requests, const Amounts& slot) {
  std::string excess;
  for (const auto& [resource, amount] : requests) {
    const auto held = slot.find(resource);
    const int64_t has = held == slot.end() ? 0 : held->second;
    if (amount <= has) continue;
    if (!excess.empty()) excess += ", ";
    excess += fmt::format(
        "{} {} > {}", resource, FormatQuantity(resource, amount), FormatQuantity(resource, has));
  }
  return excess.empty() ? std::nullopt : std::optional<std::string>(std::move(excess));
}

}  // namespace fluxqueue::kubernetes
