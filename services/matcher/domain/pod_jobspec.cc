#include "services/matcher/domain/pod_jobspec.h"

#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/request.h"
#include "libs/graph/yaml_tree.h"

namespace fluxqueue::matcher {
namespace {

using nlohmann::json;

// The content of a list of one, of that type and count 1; null: it is another.
json* OnlyOne(json& list, const char* type) {
  if (!list.is_array() || list.size() != 1 || !list[0].is_object()) return nullptr;
  json& one = list[0];
  return one.value("type", json()) == type && one.contains("with") ? &one : nullptr;
}

// A node around one slot says no more than the slot.
absl::Status TakeOutNode(json* resources) {
  json* node = OnlyOne(*resources, "node");
  if (node == nullptr) return absl::OkStatus();
  if (node->value("count", json(1)) != 1) {
    return InvalidArgument(
        "resources[0].count: several nodes at once are not for a pool; ask for slots over any "
        "nodes");
  }
  json inside = std::move(node->at("with"));
  *resources = std::move(inside);
  return absl::OkStatus();
}

bool Multiply(json* count, int64_t by) {
  if (!count->is_number_integer() || count->get<int64_t>() < 0 ||
      count->get<int64_t>() > graph::kMaxAmount / by) {
    return false;
  }
  *count = count->get<int64_t>() * by;
  return true;
}

absl::Status Translate(json* resource, const SlotUnits& units, size_t index) {
  if (!resource->is_object() || !resource->value("type", json()).is_string()) {
    return absl::OkStatus();
  }
  const std::string type = resource->at("type");
  json& count = (*resource)["count"];
  int64_t by = 1;
  if (type == "core") {
    resource->at("type") = units.cpu;
    by = units.per_core;
  } else if (type == "gpu") {
    resource->at("type") = units.gpu;
  } else if (type == "storage") {
    resource->at("type") = units.storage;
  }
  const auto unit = resource->find("unit");
  if (unit != resource->end() && unit->is_string() && !unit->get<std::string>().empty()) {
    by = BytesOfUnit(*unit);
    if (by == 0) {
      return InvalidArgument(
          "resources.with[{}].unit: \"{}\" is none that is known", index, unit->get<std::string>());
    }
  }
  resource->erase("unit");
  if (by != 1 && !Multiply(&count, by)) {
    return InvalidArgument("resources.with[{}].count: must be a whole number, of {} in all at most",
                           index,
                           graph::kMaxAmount);
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
  if (!tree.is_object() || !tree.contains("resources")) return tree.dump();
  json& resources = tree["resources"];
  RETURN_IF_ERROR(TakeOutNode(&resources));
  if (!resources.is_array()) return tree.dump();
  for (json& top : resources) {
    if (!top.is_object()) continue;
    // Below a level, such as a rack, are the slots.
    json slots = json::array();
    json* level = nullptr;
    if (top.value("type", json()) != "slot" && top.contains("with")) level = &top["with"];
    json& list = level != nullptr && level->is_array() ? *level : slots;
    if (level == nullptr) slots.push_back(top);
    for (json& slot : list) {
      if (!slot.is_object() || !slot.contains("with") || !slot["with"].is_array()) continue;
      for (size_t i = 0; i < slot["with"].size(); ++i) {
        RETURN_IF_ERROR(Translate(&slot["with"][i], PodUnits(), i));
      }
    }
    if (level == nullptr) top = slots[0];
  }
  return tree.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace fluxqueue::matcher
