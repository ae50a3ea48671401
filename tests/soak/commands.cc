#include "tests/soak/commands.h"

#include <cctype>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "tests/soak/objects.h"

namespace fluxqueue::soak {
namespace {

using Program = Command::Program;

std::string Lower(const Action& action) {
  if (action.kind == "JobSet") return "jobset";
  if (action.kind == "MPIJob") return "mpijob";
  std::string kind = action.kind;
  for (char& letter : kind) letter = static_cast<char>(std::tolower(letter));
  return kind;
}

Command Kubectl(std::vector<std::string> words, std::string input = "") {
  return {.words = std::move(words), .input = std::move(input)};
}

Command Patch(const Action& action, const std::string& patch) {
  return Kubectl({"patch",
                  Lower(action),
                  action.name,
                  "-n",
                  std::string(kNamespace),
                  "--type=merge",
                  "-p",
                  patch});
}

Command Annotate(const Action& action, const std::string& word) {
  return Kubectl({"annotate",
                  Lower(action),
                  action.name,
                  "-n",
                  std::string(kNamespace),
                  "--overwrite",
                  "fluxqueue.io/" + word});
}

Command Fluxqueue(const std::string& verb, const Action& action, const std::string& value = "") {
  Command command{.program = Program::kFluxqueue,
                  .words = {verb, fmt::format("{}/{}", kNamespace, action.name)}};
  if (!value.empty()) command.words.push_back(value);
  return command;
}

// A JobSet's Jobs are its own: they go with it.
std::vector<Command> Make(const Action& action) {
  std::vector<Command> commands = {Kubectl({"create", "-f", "-"}, ObjectYaml(action))};
  if (action.what != What::kJobSet && action.what != What::kMpiJob) return commands;
  commands.push_back(Kubectl({"get",
                              Lower(action),
                              action.name,
                              "-n",
                              std::string(kNamespace),
                              "-o",
                              "jsonpath={.metadata.uid}"}));
  commands.push_back(Kubectl({"create", "-f", "-"}, ChildrenYaml(action)));
  return commands;
}

Command Evict(const Action& action) {
  return Kubectl({"create",
                  "--raw",
                  fmt::format("/api/v1/namespaces/{}/pods/{}/eviction", kNamespace, action.name),
                  "-f",
                  "-"},
                 fmt::format(R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":)"
                             R"({{"name":"{}","namespace":"{}"}}}})",
                             action.name,
                             kNamespace));
}

Command Delete(const Action& action) {
  std::vector<std::string> words = {
      "delete", Lower(action), action.name, "-n", std::string(kNamespace), "--wait=false"};
  if (!action.value.empty()) words.push_back("--cascade=" + action.value);
  return Kubectl(std::move(words));
}

Command OnNode(const Action& action) {
  const std::string taint = fmt::format("{}=yes:{}", kTaintKey, action.value);
  switch (action.what) {
    case What::kCordon:
      return Kubectl({"cordon", action.name});
    case What::kUncordon:
      return Kubectl({"uncordon", action.name});
    case What::kTaint:
      return Kubectl({"taint", "node", action.name, taint});
    case What::kUntaint:
      return Kubectl({"taint", "node", action.name, std::string(kTaintKey) + "-"});
    case What::kDeleteNode:
      return Kubectl({"delete", "node", action.name, "--wait=false"});
    case What::kMoveNode:
      return Kubectl({"label",
                      "node",
                      action.name,
                      "--overwrite",
                      "topology.kubernetes.io/zone=" + action.value});
    default:
      return {.program = Program::kMakeNodes};
  }
}

Command OnObject(const Action& action) {
  switch (action.what) {
    case What::kScale:
      return Patch(action, fmt::format(R"({{"spec":{{"replicas":{}}}}})", action.pods));
    case What::kRollOut:
      return Patch(action,
                   fmt::format(R"({{"spec":{{"template":{{"metadata":{{"annotations":)"
                               R"({{"soak":"{}"}}}}}}}}}})",
                               action.value));
    case What::kResizeJob:
      return Patch(action, fmt::format(R"({{"spec":{{"parallelism":{}}}}})", action.pods));
    case What::kSuspendJob:
      return Patch(action,
                   fmt::format(R"({{"metadata":{{"labels":{{"{}":"yes"}}}},)"
                               R"("spec":{{"suspend":true}}}})",
                               kSuspendedLabel));
    case What::kResumeJob:
      return Patch(action,
                   fmt::format(R"({{"metadata":{{"labels":{{"{}":null}}}},)"
                               R"("spec":{{"suspend":false}}}})",
                               kSuspendedLabel));
    case What::kAnnotateHold:
      return Annotate(action, "hold=true");
    case What::kTakeOffHold:
      return Annotate(action, "hold-");
    case What::kMoveJob:
      return Annotate(action, "queue=" + action.value);
    case What::kEvictPod:
      return Evict(action);
    case What::kCancel:
      return Fluxqueue("cancel", action);
    case What::kHold:
      return Fluxqueue("hold", action);
    case What::kRelease:
      return Fluxqueue("release", action);
    case What::kPriority:
      return Fluxqueue("priority", action, action.value);
    default:
      return Delete(action);
  }
}

}  // namespace

std::vector<Command> CommandsFor(const Action& action) {
  if (Makes(action.what)) return Make(action);
  if (action.what == What::kKillService) {
    return {{.program = Program::kKillService, .words = {action.value}}};
  }
  if (action.what == What::kSweepEnded) {
    return {Kubectl({"delete",
                     "pods",
                     "-n",
                     std::string(kNamespace),
                     "--field-selector=status.phase=Succeeded",
                     "--wait=false"})};
  }
  return {action.kind == "Node" ? OnNode(action) : OnObject(action)};
}

std::string KindsYaml() {
  std::string yaml;
  for (const auto& [kind, plural, singular, group, version] :
       {std::tuple("JobSet", "jobsets", "jobset", "jobset.x-k8s.io", "v1alpha2"),
        std::tuple("MPIJob", "mpijobs", "mpijob", "kubeflow.org", "v2beta1")}) {
    yaml += fmt::format(R"(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {}.{}, annotations: {{api-approved.kubernetes.io: "unapproved, a test"}}}}
spec:
  group: {}
  scope: Namespaced
  names: {{kind: {}, plural: {}, singular: {}}}
  versions:
    - name: {}
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
)",
                        plural,
                        group,
                        group,
                        kind,
                        plural,
                        singular,
                        version);
  }
  return yaml;
}

std::string QueuesYaml() {
  return R"(apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: patient}
spec: {namespaceSelector: {}, strategy: conservative}
---
apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: urgent}
spec: {namespaceSelector: {}, priority: 5, preemption: {byPriority: true, grace: 2s}}
)";
}

}  // namespace fluxqueue::soak
