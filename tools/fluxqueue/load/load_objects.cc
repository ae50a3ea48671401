#include "tools/fluxqueue/load/load_objects.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/labels.h"

namespace fluxqueue::load {
namespace {

using nlohmann::json;

constexpr int kPodsOfANode = 110;  // kubelet's own default

// In the base unit, which Kubernetes takes for everything but cpu.
std::string Quantity(std::string_view resource, int64_t amount) {
  return fmt::format("{}{}", amount, resource == "cpu" ? "m" : "");
}

json Quantities(const trace::Amounts& amounts) {
  json quantities = json::object();
  for (const auto& [resource, amount] : amounts) quantities[resource] = Quantity(resource, amount);
  return quantities;
}

// Kubernetes wants a limit that equals the request for what it does not know itself.
json ExtendedOf(const trace::Amounts& amounts) {
  json limits = json::object();
  for (const auto& [resource, amount] : amounts) {
    if (resource.find('/') != std::string::npos) limits[resource] = Quantity(resource, amount);
  }
  return limits;
}

json Condition(const char* type, const char* status, const char* reason, std::string_view now) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", ""},
          {"lastHeartbeatTime", now},
          {"lastTransitionTime", now}};
}

json NodeStatus(const trace::TraceNode& node, std::string_view now) {
  json resources = Quantities(node.offers);
  resources["pods"] = fmt::format("{}", kPodsOfANode);
  return {{"phase", "Running"},
          {"capacity", resources},
          {"allocatable", resources},
          {"conditions", json::array({Condition("Ready", "True", "KubeletReady", now)})},
          {"addresses", json::array({{{"type", "Hostname"}, {"address", node.name}}})},
          {"nodeInfo",
           {{"architecture", "amd64"},
            {"operatingSystem", "linux"},
            {"kubeletVersion", "kwok"},
            {"containerRuntimeVersion", "kwok"},
            {"kernelVersion", ""},
            {"kubeProxyVersion", ""},
            {"osImage", ""},
            {"bootID", ""},
            {"machineID", ""},
            {"systemUUID", ""}}}};
}

json GpuAffinity(const std::vector<std::string>& models) {
  const json expression = {{"key", kGpuModelLabel}, {"operator", "In"}, {"values", models}};
  const json term = {{"matchExpressions", json::array({expression})}};
  return {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution",
             {{"nodeSelectorTerms", json::array({term})}}}}}};
}

json PodTemplate(const PlannedJob& planned, std::string_view space) {
  json container = {{"name", "run"}, {"image", "kwok"}};
  container["resources"]["requests"] = Quantities(planned.job.requests);
  container["resources"]["limits"] = ExtendedOf(planned.job.requests);
  json spec = {{"restartPolicy", "Never"},
               {"nodeSelector", {{kLoadLabel, space}}},
               {"containers", json::array({container})}};
  if (!planned.job.gpu_models.empty()) spec["affinity"] = GpuAffinity(planned.job.gpu_models);
  const std::string run = fmt::format("{}ms", planned.run.count());
  return {{"metadata", {{"annotations", {{"fluxqueue.io/run-seconds", run}}}}}, {"spec", spec}};
}

}  // namespace

std::string NamespaceObject(std::string_view space, bool managed) {
  json object = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", space}}}};
  object["metadata"]["labels"][std::string(kLoadLabel)] = space;
  if (managed) object["metadata"]["labels"][std::string(kubernetes::kManagedLabel)] = "true";
  return object.dump();
}

std::string NodeObject(const trace::TraceNode& node, std::string_view space, std::string_view now) {
  json labels = {{"kubernetes.io/hostname", node.name},
                 {"kubernetes.io/os", "linux"},
                 {"kubernetes.io/arch", "amd64"},
                 {"type", "kwok"},
                 {kLoadLabel, space}};
  if (!node.gpu_model.empty()) labels[std::string(kGpuModelLabel)] = node.gpu_model;
  const json object = {{"apiVersion", "v1"},
                       {"kind", "Node"},
                       {"metadata",
                        {{"name", node.name},
                         {"labels", labels},
                         {"annotations", {{"kwok.x-k8s.io/node", "fake"}}}}},
                       {"status", NodeStatus(node, now)}};
  return object.dump();
}

std::string JobObject(const PlannedJob& planned, std::string_view space, std::string_view queue) {
  json object = {{"apiVersion", "batch/v1"},
                 {"kind", "Job"},
                 {"metadata", {{"name", planned.job.name}, {"namespace", space}}},
                 {"spec",
                  {{"parallelism", planned.job.slots},
                   {"completions", planned.job.slots},
                   {"template", PodTemplate(planned, space)}}}};
  if (planned.job.slots > 1) object["spec"]["completionMode"] = "Indexed";
  if (!queue.empty()) object["metadata"]["labels"][std::string(kubernetes::kQueueKey)] = queue;
  return object.dump();
}

}  // namespace fluxqueue::load
