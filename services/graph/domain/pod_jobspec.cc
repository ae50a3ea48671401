#include "services/graph/domain/pod_jobspec.h"

#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/request.h"
#include "libs/graph/yaml_tree.h"

namespace fluxqueue::graph_service {
namespace {

using nlohmann::json;

// A node around one slot says no more than the slot.
absl::Status TakeOutNode(json* resources) {
  if (!resources->is_array() || resources->size() != 1) return absl::OkStatus();
  json& node = resources->front();
  if (!node.is_object() || node.value("type", json()) != "node" || !node.contains("with")) {
    return absl::OkStatus();
  }
  if (node.value("count", json(1)) != 1) {
    return InvalidArgument(
        "resources[0].count: several nodes at once are not for a pool; ask for slots over any "
        "nodes");
  }
  json inside = std::move(node["with"]);
  *resources = std::move(inside);
  return absl::OkStatus();
}

// The count in the unit of the pods; what is wrong with anything else, the jobspec's reader says.
absl::Status Multiply(json* resource, int64_t by, size_t index) {
  const auto count = resource->find("count");
  if (by == 1 || count == resource->end()) return absl::OkStatus();
  if (!count->is_number_integer() || count->get<int64_t>() < 0 ||
      count->get<int64_t>() > graph::kMaxAmount / by) {
    return InvalidArgument("resources.with[{}].count: must be a whole number, of {} in all at most",
                           index,
                           graph::kMaxAmount);
  }
  *count = count->get<int64_t>() * by;
  return absl::OkStatus();
}

absl::Status TranslateResource(json* resource, size_t index) {
  if (!resource->is_object() || !resource->contains("type")) return absl::OkStatus();
  const SlotUnits units = PodUnits();
  json& type = resource->at("type");
  int64_t by = 1;
  if (type == "core") {
    type = units.cpu;
    by = units.per_core;
  } else if (type == "gpu") {
    type = units.gpu;
  } else if (type == "storage") {
    type = units.storage;
  }
  const json unit = resource->value("unit", json(""));
  resource->erase("unit");
  if (unit.is_string() && unit != "") {
    by = BytesOfUnit(unit);
    if (by == 0) {
      return InvalidArgument(
          "resources.with[{}].unit: {} is none that is known", index, unit.dump());
    }
  }
  return Multiply(resource, by, index);
}

// A slot, or a level such as a rack around slots.
absl::Status TranslateTree(json* tree) {
  if (!tree->is_object() || !tree->contains("with") || !tree->at("with").is_array()) {
    return absl::OkStatus();
  }
  const bool is_slot = tree->value("type", json()) == "slot";
  json& with = tree->at("with");
  for (size_t i = 0; i < with.size(); ++i) {
    RETURN_IF_ERROR(is_slot ? TranslateResource(&with[i], i) : TranslateTree(&with[i]));
  }
  return absl::OkStatus();
}

}  // namespace

SlotUnits PodUnits() {
  return {.cpu = "cpu",
          .per_core = 1000,
          .memory = "memory",
          .memory_bytes = 1,
          .gpu = "nvidia.com/gpu",
          .storage = "ephemeral-storage",
          .storage_bytes = 1};
}

absl::StatusOr<std::string> ToPodJobspec(std::string_view text) {
  if (text.size() > graph::kMaxJobspecBytes) {
    return InvalidArgument(
        "has {} bytes, at most {} are allowed", text.size(), graph::kMaxJobspecBytes);
  }
  ASSIGN_OR_RETURN(json tree,
                   graph::ReadYaml(text,
                                   {.max_depth = graph::kMaxJobspecDepth,
                                    .max_values = graph::kMaxRequestValues,
                                    .quoted_lists = ""}));
  if (tree.is_object() && tree.contains("resources")) {
    json& resources = tree["resources"];
    RETURN_IF_ERROR(TakeOutNode(&resources));
    for (json& top : resources) RETURN_IF_ERROR(TranslateTree(&top));
  }
  return tree.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace fluxqueue::graph_service
