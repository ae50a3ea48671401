#include "tests/kubernetes/random_worlds.h"

#include <fmt/format.h>

namespace fluxqueue::kubernetes_test {
namespace {

const std::vector<const char*> kZones = {"a", "b", "c"};
const std::vector<const char*> kDisks = {"ssd", "hdd", ""};
// Numbers, and what looks like one; with more digits than a number has.
const std::vector<const char*> kCores = {
    "8", "16", "32", "64", "064", "0", "many", "1e3", "99999999999999999999", ""};
const std::vector<const char*> kKeys = {
    "topology.kubernetes.io/zone", "disk", "example.com/cores", "gpu"};
const std::vector<const char*> kTaintKeys = {
    "dedicated", "spot", "gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"};
const std::vector<const char*> kTaintValues = {"", "batch", "gpu"};
const std::vector<const char*> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

std::string NodeName(int number) {
  return number % 4 == 0 ? fmt::format("node-{}.example.com", number)
                         : fmt::format("node-{}", number);
}

json RuntimeClasses() {
  const json tolerations = json::array(
      {{{"key", "spot"}, {"operator", "Exists"}}, {{"key", "gpu"}, {"effect", "NoSchedule"}}});
  const json overhead = {{"podFixed", {{"cpu", "250m"}, {"memory", "64Mi"}}}};
  return json::array(
      {{{"metadata", {{"name", "plain"}}}, {"handler", "plain"}},
       {{"metadata", {{"name", "vm"}}}, {"handler", "vm"}, {"overhead", overhead}},
       {{"metadata", {{"name", "kata"}}},
        {"handler", "kata"},
        {"overhead", overhead},
        {"scheduling", {{"nodeSelector", {{"disk", "ssd"}}}, {"tolerations", tolerations}}}}});
}

}  // namespace

json RandomWorlds::Next(int nodes, int pods) {
  json world = {{"nodes", json::array()},
                {"bound", json::array()},
                {"pods", json::array()},
                {"runtimeClasses", RuntimeClasses()},
                {"limitRanges", json::array()}};
  if (Chance(30)) {
    // Of a namespace without any the API server would ask.
    const json none = {{"metadata", {{"name", "none"}, {"namespace", "others"}}},
                       {"spec", {{"limits", json::array({{{"type", "Container"}}})}}}};
    world["limitRanges"] = json::array({LimitRange(), none});
  }
  for (int i = 0; i < nodes; ++i) world["nodes"].push_back(Node(i));
  for (int i = 0; i < nodes; ++i) {
    for (uint64_t n = Below(4); n > 1; --n) {
      world["bound"].push_back(BoundPod(static_cast<int>(world["bound"].size()), NodeName(i)));
    }
  }
  for (int i = 0; i < pods; ++i) world["pods"].push_back(Pod(i, nodes));
  return world;
}

json RandomWorlds::LimitRange() {
  json item = {{"type", "Container"}};
  if (Chance(60)) item["defaultRequest"] = {{"cpu", Pick({"250m", "1"})}};
  if (Chance(40)) item["defaultRequest"]["memory"] = "256Mi";
  if (Chance(60)) item["default"] = {{"cpu", "5"}, {"memory", "3Gi"}};
  return {{"metadata", {{"name", "range"}, {"namespace", "team"}}},
          {"spec", {{"limits", json::array({std::move(item)})}}}};
}

json RandomWorlds::Node(int number) {
  const std::string name = NodeName(number);
  json node = {{"apiVersion", "v1"}, {"kind", "Node"}};
  node["metadata"] = {
      {"name", name}, {"uid", fmt::format("node-uid-{}", number)}, {"labels", Labels(name)}};
  node["spec"] = json::object();
  if (json taints = Taints(); !taints.empty()) node["spec"]["taints"] = std::move(taints);
  if (Chance(10)) node["spec"]["unschedulable"] = true;
  const char* ready = Chance(5) ? "False" : "True";
  node["status"] = {{"allocatable", Allocatable()},
                    {"conditions", json::array({{{"type", "Ready"}, {"status", ready}}})}};
  return node;
}

json RandomWorlds::Labels(const std::string& name) {
  json labels = {{"kubernetes.io/hostname", name}};
  if (Chance(80)) labels["topology.kubernetes.io/zone"] = Pick(kZones);
  if (Chance(70)) labels["disk"] = Pick(kDisks);
  if (Chance(80)) labels["example.com/cores"] = Pick(kCores);
  if (Chance(40)) labels["gpu"] = "";
  return labels;
}

json RandomWorlds::Taints() {
  json taints = json::array();
  if (!Chance(50)) return taints;
  for (uint64_t n = 1 + Below(3); n > 0; --n) {
    const std::string key = Pick(kTaintKeys);
    const std::string effect = Pick(kEffects);
    // The API server takes a key and effect once.
    const bool there = std::any_of(taints.begin(), taints.end(), [&](const json& taint) {
      return taint["key"] == key && taint["effect"] == effect;
    });
    if (there) continue;
    taints.push_back({{"key", key}, {"effect", effect}});
    if (const std::string value = Pick(kTaintValues); !value.empty()) {
      taints.back()["value"] = value;
    }
  }
  return taints;
}

json RandomWorlds::Allocatable() {
  json has = {{"cpu", Pick({"2", "4", "8", "16", "3900m"})},
              {"memory", Pick({"4Gi", "8Gi", "15.5Gi", "8e9"})},
              {"pods", Pick({"110", "110", "110", "110", "110", "2", "1", "0"})}};
  if (Chance(70)) has["ephemeral-storage"] = Pick({"10Gi", "100Gi"});
  if (Chance(40)) has["nvidia.com/gpu"] = Pick({"0", "1", "2", "8"});
  if (Chance(30)) has["example.com/foo"] = Pick({"0", "1", "3"});
  if (Chance(30)) has["hugepages-2Mi"] = Pick({"0", "64Mi", "1Gi"});
  return has;
}

json RandomWorlds::BoundPod(int number, const std::string& node) {
  json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = {{"name", fmt::format("bound-{}", number)},
                     {"namespace", Chance(80) ? "team" : "others"},
                     {"uid", fmt::format("bound-uid-{}", number)},
                     {"labels", PodLabels()}};
  json& spec = pod["spec"] = {{"nodeName", node}};
  spec["containers"] = json::array({Container("c0", 4)});
  if (Chance(30)) AddInitContainers(&spec);
  if (Chance(20)) spec["runtimeClassName"] = "vm";
  if (Chance(20)) AddPorts(&spec);
  if (Chance(10)) AddRule("podAntiAffinity", /*elsewhere=*/false, &spec);
  pod["status"] = {{"phase", "Running"}};
  return pod;
}

json RandomWorlds::Pod(int number, int nodes) {
  json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = {{"name", fmt::format("pod-{}", number)},
                     {"namespace", "team"},
                     {"uid", fmt::format("pod-uid-{}", number)},
                     {"labels", PodLabels()}};
  json& spec = pod["spec"];
  for (uint64_t n = 1 + Below(3), i = 0; i < n; ++i) {
    spec["containers"].push_back(Container(fmt::format("c{}", i), 4));
  }
  if (Chance(40)) AddInitContainers(&spec);
  if (Chance(15)) AddPodResources(&spec);
  if (Chance(15)) spec["runtimeClassName"] = Pick({"plain", "vm", "kata"});
  if (Chance(20)) spec["nodeSelector"][Pick(kKeys)] = Pick({"a", "b", "ssd", "hdd", "", "16"});
  if (Chance(50)) spec["affinity"]["nodeAffinity"] = Affinity(nodes);
  for (uint64_t n = Below(4); n > 0; --n) spec["tolerations"].push_back(Toleration());
  if (Chance(40)) AddWhatOthersSay(&spec);
  if (Chance(1)) spec["nodeName"] = NodeName(static_cast<int>(Below(nodes)));
  return pod;
}

// Asks for less than `most` times 400 millicores.
json RandomWorlds::Container(const std::string& name, uint64_t most) {
  json container = {{"name", name}, {"image", "x"}};
  json resources = json::object();
  if (Chance(70)) resources["requests"]["cpu"] = fmt::format("{}m", Below(most) * 400);
  if (Chance(60)) {
    resources["requests"]["memory"] = Pick({"0", "512Mi", "1Gi", "1.5Gi", "1e9", "100M"});
  }
  if (Chance(20)) resources["requests"]["ephemeral-storage"] = Pick({"0", "1Gi", "20Gi"});
  // Where only limits are given they are what is asked for.
  if (Chance(20)) resources["limits"]["cpu"] = Pick({"4", "5"});
  if (Chance(20)) resources["limits"]["memory"] = Pick({"2Gi", "3Gi"});
  if (!resources.empty()) container["resources"] = std::move(resources);
  if (Chance(15)) AskForDevices(&container);
  return container;
}

void RandomWorlds::AskForDevices(json* container) {
  json& limits = (*container)["resources"]["limits"];
  switch (Below(3)) {
    case 0:
      limits["nvidia.com/gpu"] = Pick({"0", "1", "2"});
      break;
    case 1:
      limits["example.com/foo"] = Pick({"0", "1", "2"});
      (*container)["resources"]["requests"]["example.com/foo"] = limits["example.com/foo"];
      break;
    default:
      limits["hugepages-2Mi"] = Pick({"0", "4Mi", "64Mi"});
      (*container)["resources"]["requests"]["cpu"] = "500m";
  }
}

void RandomWorlds::AddInitContainers(json* spec) {
  for (uint64_t n = 1 + Below(3), i = 0; i < n; ++i) {
    json container = Container(fmt::format("i{}", i), 5);
    if (Chance(40)) container["restartPolicy"] = "Always";
    (*spec)["initContainers"].push_back(std::move(container));
  }
}

// Some ask for less than their containers, which the API server refuses.
void RandomWorlds::AddPodResources(json* spec) {
  json& resources = (*spec)["resources"];
  if (Chance(70)) resources["requests"]["cpu"] = Pick({"1", "4", "7", "7500m"});
  if (Chance(50)) resources["requests"]["memory"] = Pick({"1Gi", "4Gi", "7Gi"});
  if (Chance(40)) resources["limits"]["cpu"] = Pick({"7500m", "20"});
  if (Chance(30)) resources["limits"]["memory"] = Pick({"7Gi", "32Gi"});
  if (resources.is_null()) spec->erase("resources");
}

json RandomWorlds::PodLabels() {
  json labels = {{"app", Pick({"web", "db", "api"})}};
  if (Chance(50)) labels["tier"] = Pick({"front", "back"});
  if (Chance(20)) labels["pod-template-hash"] = Pick({"a", "b"});
  return labels;
}

json RandomWorlds::PodSelector() {
  json selector = json::object();
  if (Chance(70)) selector["matchLabels"] = {{"app", Pick({"web", "db", "api"})}};
  if (!Chance(30)) return selector;
  json expression = {{"key", "tier"},
                     {"operator", Pick({"In", "NotIn", "Exists", "DoesNotExist"})}};
  const std::string op = expression["operator"];
  if (op == "In" || op == "NotIn") expression["values"] = json::array({Pick({"front", "back"})});
  selector["matchExpressions"] = json::array({std::move(expression)});
  return selector;
}

// Of the node's own ports; 0.0.0.0 is any address.
void RandomWorlds::AddPorts(json* spec) {
  json port = {{"containerPort", 80}, {"hostPort", 80}};
  if (Chance(30)) port["protocol"] = "UDP";
  if (Chance(20)) port = {{"containerPort", 53}, {"hostPort", 53}, {"protocol", "UDP"}};
  if (Chance(20)) port["hostIP"] = "0.0.0.0";
  (*spec)["containers"][0]["ports"] = json::array({std::move(port)});
}

// A required term of podAffinity or podAntiAffinity. `elsewhere`: some look at other namespaces.
void RandomWorlds::AddRule(const char* kind, bool elsewhere, json* spec) {
  json terms = json::array();
  for (uint64_t n = 1 + Below(2); n > 0; --n) {
    json term = {{"topologyKey", Pick({"kubernetes.io/hostname", "topology.kubernetes.io/zone"})}};
    if (!Chance(5)) term["labelSelector"] = PodSelector();
    if (elsewhere && Chance(20)) term["namespaces"] = json::array({"team"});
    if (elsewhere && Chance(10)) term["namespaces"] = json::array({"others"});
    if (elsewhere && Chance(10)) term["namespaceSelector"] = json::object();
    terms.push_back(std::move(term));
  }
  (*spec)["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"] = std::move(terms);
}

void RandomWorlds::AddSpread(json* spec) {
  json spread = {{"maxSkew", 1 + Below(2)},
                 {"topologyKey", Pick({"kubernetes.io/hostname", "topology.kubernetes.io/zone"})},
                 {"whenUnsatisfiable", Chance(80) ? "DoNotSchedule" : "ScheduleAnyway"}};
  if (!Chance(5)) spread["labelSelector"] = PodSelector();
  if (spread["whenUnsatisfiable"] == "DoNotSchedule" && Chance(20)) {
    spread["minDomains"] = 1 + Below(5);
  }
  if (Chance(20)) spread["nodeAffinityPolicy"] = Pick({"Honor", "Ignore"});
  if (Chance(20)) spread["nodeTaintsPolicy"] = Pick({"Honor", "Ignore"});
  (*spec)["topologySpreadConstraints"].push_back(std::move(spread));
}

// What depends on other pods, and ports of the node.
void RandomWorlds::AddWhatOthersSay(json* spec) {
  switch (Below(9)) {
    case 0:
      AddPorts(spec);
      break;
    case 1:
      (*spec)["hostNetwork"] = true;
      (*spec)["containers"][0]["ports"] = json::array({{{"containerPort", 80}}});
      break;
    case 2:
      AddRule("podAffinity", /*elsewhere=*/true, spec);
      break;
    case 3:
      AddRule("podAntiAffinity", /*elsewhere=*/true, spec);
      break;
    case 4: {
      const json term = {{"labelSelector", PodSelector()},
                         {"topologyKey", "kubernetes.io/hostname"}};
      (*spec)["affinity"][Chance(50) ? "podAffinity" : "podAntiAffinity"]
             ["preferredDuringSchedulingIgnoredDuringExecution"] =
                 json::array({{{"weight", 5}, {"podAffinityTerm", term}}});
      break;
    }
    default:
      AddSpread(spec);
  }
}

json RandomWorlds::Affinity(int nodes) {
  json affinity;
  if (Chance(80)) {
    json terms = json::array();
    for (uint64_t n = 1 + Below(3); n > 0; --n) terms.push_back(NodeTerm(nodes));
    affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = terms;
  }
  if (Chance(30)) {
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] =
        json::array({{{"weight", 1 + Below(100)}, {"preference", NodeTerm(nodes)}}});
  }
  return affinity.is_null() ? json::object() : affinity;
}

json RandomWorlds::NodeTerm(int nodes) {
  json term = json::object();
  for (uint64_t n = Below(4); n > 1; --n) term["matchExpressions"].push_back(Expression());
  if (Chance(60) || Chance(20)) term["matchExpressions"].push_back(Expression());
  for (uint64_t n = Below(8); n > 5; --n) term["matchFields"].push_back(FieldExpression(nodes));
  return term;
}

json RandomWorlds::Expression() {
  static const std::vector<const char*> kOperators = {
      "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
  json expression = {{"key", Pick(kKeys)}, {"operator", Pick(kOperators)}};
  const std::string op = expression["operator"];
  if (op == "Gt" || op == "Lt") {
    expression["key"] = "example.com/cores";
    expression["values"] = json::array({Pick({"0",
                                              "8",
                                              "15",
                                              "016",
                                              "64",
                                              "9223372036854775807",
                                              "9223372036854775808",
                                              "many",
                                              "1e1",
                                              ""})});
  } else if (op == "In" || op == "NotIn") {
    for (uint64_t n = 1 + Below(3); n > 0; --n) {
      expression["values"].push_back(Pick({"a", "b", "c", "ssd", "hdd", "", "16", "064", "many"}));
    }
  }
  return expression;
}

json RandomWorlds::FieldExpression(int nodes) {
  // Some name none of them.
  const int number = static_cast<int>(Below(nodes + 2));
  return {{"key", "metadata.name"},
          {"operator", Chance(30) ? "In" : "NotIn"},
          {"values", json::array({NodeName(number)})}};
}

json RandomWorlds::Toleration() {
  json toleration = json::object();
  if (!Chance(10)) toleration["key"] = Pick(kTaintKeys);
  // Without a key every taint is meant, which only Exists can say; without an operator it is Equal.
  if (Chance(50) || !toleration.contains("key")) {
    toleration["operator"] = "Exists";
  } else {
    if (Chance(50)) toleration["operator"] = "Equal";
    if (const std::string value = Pick(kTaintValues); !value.empty()) toleration["value"] = value;
  }
  if (Chance(60)) toleration["effect"] = Pick(kEffects);
  if (toleration.value("effect", "") == "NoExecute" && Chance(50)) {
    toleration["tolerationSeconds"] = Below(2) * 300;
  }
  return toleration;
}

}  // namespace fluxqueue::kubernetes_test
