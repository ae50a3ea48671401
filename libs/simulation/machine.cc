#include "libs/simulation/machine.h"

#include <set>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/yaml_tree.h"
#include "libs/kubernetes/node.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::simulation {
namespace {

constexpr int64_t kMillicores = 1000;
// Of 100,000 nodes as kubectl prints them.
constexpr graph::YamlRules kListRules{
    .max_depth = 64, .max_values = 50'000'000, .quoted_lists = {}};

events::v1::Node ToNode(const trace::TraceNode& offered) {
  events::v1::Node node;
  node.set_name(offered.name);
  node.set_uid("uid-" + offered.name);
  node.set_ready(true);
  for (const auto& [resource, amount] : offered.offers) {
    events::v1::Amount* item = node.add_allocatable();
    item->set_resource(resource);
    item->set_amount(amount);
  }
  if (!offered.gpu_model.empty()) {
    events::v1::Label* label = node.add_labels();
    label->set_key(std::string(kGpuModelLabel));
    label->set_value(offered.gpu_model);
  }
  return node;
}

trace::TraceNode ToOffer(const kubernetes::Node& node) {
  trace::TraceNode offer;
  offer.name = node.meta.name;
  offer.offers = node.allocatable;
  const auto model = node.meta.labels.find(kGpuModelLabel);
  if (model != node.meta.labels.end()) offer.gpu_model = model->second;
  return offer;
}

}  // namespace

int64_t Machine::Total(std::string_view resource) const {
  int64_t total = 0;
  for (const trace::TraceNode& node : offers) {
    const auto amount = node.offers.find(resource);
    if (amount != node.offers.end()) total += amount->second;
  }
  return total;
}

Machine MachineOfProcessors(int64_t processors) {
  Machine machine = MachineOfTrace({{"machine", {{"cpu", processors * kMillicores}}, ""}});
  machine.processors = processors;
  return machine;
}

Machine MachineOfTrace(const std::vector<trace::TraceNode>& nodes) {
  Machine machine;
  machine.offers = nodes;
  for (const trace::TraceNode& node : nodes) machine.nodes.push_back(ToNode(node));
  return machine;
}

absl::StatusOr<Machine> MachineOfKubernetes(std::string_view text, std::string_view file) {
  // JSON is YAML too, but the reader of JSON is the faster one.
  nlohmann::json list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (list.is_discarded()) {
    absl::StatusOr<nlohmann::json> yaml = graph::ReadYaml(text, kListRules);
    if (!yaml.ok()) return Annotate(yaml.status(), file);
    list = *std::move(yaml);
  }
  const auto items = list.is_object() ? list.find("items") : list.end();
  if (items == list.end() || !items->is_array()) {
    return InvalidArgument(
        "{}: it has no list \"items\"; wanted is what `kubectl get nodes -o json` or `-o yaml` "
        "prints",
        file);
  }
  Machine machine;
  std::set<std::string> names;
  for (const nlohmann::json& item : *items) {
    const auto node = kubernetes::ParseNode(item.dump());
    if (!node.ok()) return Annotate(node.status(), file);
    if (!names.insert(node->meta.name).second) {
      return InvalidArgument("{}: node {} is here for the second time", file, node->meta.name);
    }
    machine.nodes.push_back(kubernetes::ToEvent(*node, {}));
    if (machine.nodes.back().uid().empty()) machine.nodes.back().set_uid("uid-" + node->meta.name);
    machine.offers.push_back(ToOffer(*node));
  }
  if (machine.nodes.empty()) return InvalidArgument("{}: it names no node", file);
  return machine;
}

}  // namespace fluxqueue::simulation
