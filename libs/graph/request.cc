#include "libs/graph/request.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/shortened.h"
#include "libs/graph/yaml_tree.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;
using Keys = std::initializer_list<std::string_view>;

// What Fluxion takes a graph to last: a hundred years.
constexpr double kMaxDuration = 100.0 * 365 * 24 * 3600;

std::string Join(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

// A mapping with no key beyond the known ones.
absl::Status CheckMapping(const json& value, const std::string& path, Keys known) {
  if (!value.is_object()) {
    return InvalidArgument(
        "{}: must be a mapping, is {}", path.empty() ? "the jobspec" : path, value.type_name());
  }
  for (const auto& [key, unused] : value.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return InvalidArgument(
          "{}: unknown key; known are {}", Join(path, key), fmt::join(known, ", "));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const json*> Member(const json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end()) return InvalidArgument("{}: is missing", Join(path, key));
  return &*found;
}

absl::StatusOr<std::string> Text(const json& value, const std::string& path) {
  if (value.is_structured() || value.is_null()) {
    return InvalidArgument("{}: must be a text, is {}", path, value.type_name());
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

absl::StatusOr<uint64_t> Positive(const json& value, const std::string& path) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 ||
      value.get<uint64_t>() > kMaxCount) {
    return InvalidArgument(
        "{}: must be an integer from 1 to {}, is {}", path, kMaxCount, value.dump());
  }
  return value.get<uint64_t>();
}

absl::StatusOr<CountRange> ParseCount(const json& value, const std::string& path) {
  CountRange count;
  if (!value.is_object()) {
    ASSIGN_OR_RETURN(count.min, Positive(value, path));
    count.max = count.min;
    return count;
  }
  RETURN_IF_ERROR(CheckMapping(value, path, {"min", "max", "operator", "operand"}));
  ASSIGN_OR_RETURN(const json* min, Member(value, "min", path));
  ASSIGN_OR_RETURN(count.min, Positive(*min, path + ".min"));
  ASSIGN_OR_RETURN(const json* max, Member(value, "max", path));
  ASSIGN_OR_RETURN(count.max, Positive(*max, path + ".max"));
  if (count.max < count.min) {
    return InvalidArgument("{}.max: must be at least min ({}), is {}", path, count.min, count.max);
  }
  ASSIGN_OR_RETURN(const json* op, Member(value, "operator", path));
  if (*op != "+" && *op != "*" && *op != "^") {
    return InvalidArgument("{}.operator: must be \"+\", \"*\" or \"^\", is {}", path, op->dump());
  }
  count.op = op->get_ref<const std::string&>().front();
  ASSIGN_OR_RETURN(const json* operand, Member(value, "operand", path));
  ASSIGN_OR_RETURN(count.operand, Positive(*operand, path + ".operand"));
  return count;
}

absl::StatusOr<Exclusivity> ParseExclusive(const json& value, const std::string& path) {
  if (value == true || value == "true") return Exclusivity::kExclusive;
  if (value == false || value == "false") return Exclusivity::kShared;
  return InvalidArgument("{}: must be true or false, is {}", path, value.dump());
}

absl::StatusOr<std::vector<ResourceRequest>> ParseResources(const json& list,
                                                            const std::string& path);

absl::StatusOr<ResourceRequest> ParseResource(const json& value, const std::string& path) {
  RETURN_IF_ERROR(
      CheckMapping(value, path, {"type", "count", "unit", "exclusive", "with", "label", "id"}));
  ResourceRequest resource;
  ASSIGN_OR_RETURN(const json* type, Member(value, "type", path));
  ASSIGN_OR_RETURN(resource.type, Text(*type, path + ".type"));
  if (resource.type.empty()) return InvalidArgument("{}.type: is empty", path);
  ASSIGN_OR_RETURN(const json* count, Member(value, "count", path));
  ASSIGN_OR_RETURN(resource.count, ParseCount(*count, path + ".count"));
  for (const auto& [key, text] : {std::pair{"unit", &resource.unit},
                                  std::pair{"label", &resource.label},
                                  std::pair{"id", &resource.id}}) {
    if (const auto found = value.find(key); found != value.end()) {
      ASSIGN_OR_RETURN(*text, Text(*found, Join(path, key)));
    }
  }
  if (resource.is_slot() && resource.label.empty()) {
    return InvalidArgument("{}.label: is missing; every slot has one, which its tasks name", path);
  }
  if (const auto found = value.find("exclusive"); found != value.end()) {
    ASSIGN_OR_RETURN(resource.exclusivity, ParseExclusive(*found, path + ".exclusive"));
  }
  if (const auto found = value.find("with"); found != value.end()) {
    ASSIGN_OR_RETURN(resource.with, ParseResources(*found, path + ".with"));
  }
  return resource;
}

absl::StatusOr<std::vector<ResourceRequest>> ParseResources(const json& list,
                                                            const std::string& path) {
  if (!list.is_array() || list.empty()) {
    return InvalidArgument("{}: must be a list of at least one resource", path);
  }
  std::vector<ResourceRequest> resources;
  for (size_t i = 0; i < list.size(); ++i) {
    ASSIGN_OR_RETURN(ResourceRequest resource,
                     ParseResource(list[i], fmt::format("{}[{}]", path, i)));
    resources.push_back(std::move(resource));
  }
  return resources;
}

absl::StatusOr<std::vector<std::string>> ParseTasks(const json& tasks) {
  if (!tasks.is_array()) return InvalidArgument("tasks: must be a list, is {}", tasks.type_name());
  std::vector<std::string> slots;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string path = fmt::format("tasks[{}]", i);
    RETURN_IF_ERROR(
        CheckMapping(tasks[i], path, {"command", "slot", "count", "distribution", "attributes"}));
    ASSIGN_OR_RETURN(const json* command, Member(tasks[i], "command", path));
    if (command->is_object() || command->is_null()) {
      return InvalidArgument("{}.command: must be a text or a list of texts", path);
    }
    ASSIGN_OR_RETURN(const json* slot, Member(tasks[i], "slot", path));
    ASSIGN_OR_RETURN(std::string label, Text(*slot, path + ".slot"));
    slots.push_back(std::move(label));
  }
  return slots;
}

absl::StatusOr<int64_t> ParseDuration(const json& value) {
  if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > kMaxDuration) {
    return InvalidArgument(
        "attributes.system.duration: must be seconds from 0 (unlimited) to {:.0f}, is {}",
        kMaxDuration,
        value.dump());
  }
  const auto seconds = value.get<double>();
  // Fluxion cuts the fraction off; what would become 0 there, and so unlimited, is one second.
  return seconds == 0 ? 0 : std::max<int64_t>(1, static_cast<int64_t>(seconds));
}

absl::Status ParseAttributes(const json& attributes, JobRequest* request) {
  if (attributes.is_null()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckMapping(attributes, "attributes", {"system", "user"}));
  const auto system = attributes.find("system");
  if (system == attributes.end() || system->is_null()) return absl::OkStatus();
  if (!system->is_object()) {
    return InvalidArgument("attributes.system: must be a mapping, is {}", system->type_name());
  }
  if (const auto duration = system->find("duration"); duration != system->end()) {
    ASSIGN_OR_RETURN(request->duration_s, ParseDuration(*duration));
  }
  if (const auto queue = system->find("queue"); queue != system->end()) {
    ASSIGN_OR_RETURN(request->queue, Text(*queue, "attributes.system.queue"));
  }
  const auto constraints = system->find("constraints");
  if (constraints == system->end()) return absl::OkStatus();
  std::optional<std::vector<Toleration>> tolerations;
  ASSIGN_OR_RETURN(request->constraint,
                   Constraint::Parse(*constraints, "attributes.system.constraints", &tolerations));
  request->constrained = true;
  return absl::OkStatus();
}

absl::StatusOr<JobRequest> ParseTree(const json& tree) {
  RETURN_IF_ERROR(CheckMapping(tree, "", {"version", "resources", "tasks", "attributes"}));
  ASSIGN_OR_RETURN(const json* version, Member(tree, "version", ""));
  // 9999 is what Fluxion's own examples carry.
  if (*version != 1 && *version != 9999) {
    return InvalidArgument("version: must be 1, is {}", version->dump());
  }
  JobRequest request;
  ASSIGN_OR_RETURN(const json* resources, Member(tree, "resources", ""));
  ASSIGN_OR_RETURN(request.resources, ParseResources(*resources, "resources"));
  ASSIGN_OR_RETURN(const json* tasks, Member(tree, "tasks", ""));
  ASSIGN_OR_RETURN(request.task_slots, ParseTasks(*tasks));
  ASSIGN_OR_RETURN(const json* attributes, Member(tree, "attributes", ""));
  RETURN_IF_ERROR(ParseAttributes(*attributes, &request));
  request.shape = fmt::format("{} on {}", resources->dump(), request.constraint.ToString());
  return request;
}

uint64_t Product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// base to the power of exponent, or more than `limit` when it is more.
uint64_t Power(uint64_t base, uint64_t exponent, uint64_t limit) {
  uint64_t product = 1;
  for (uint64_t i = 0; i < exponent && product <= limit; ++i) product = Product(product, base);
  return product;
}

}  // namespace

uint64_t CountRange::Best(uint64_t available) const {
  if (min > max || min > available) return 0;
  const uint64_t most = std::min(max, available);
  if (op == '+') return most - (most - min) % operand;
  if (operand < 2 || (op == '^' && min == 1)) return min;
  uint64_t best = min;
  while (true) {
    const uint64_t next = op == '*' ? Product(best, operand) : Power(best, operand, most);
    if (next > most) return best;
    best = next;
  }
}

absl::StatusOr<JobRequest> ParseJobRequest(std::string_view text) {
  if (text.size() > kMaxRequestBytes) {
    return InvalidArgument(
        "jobspec: has {} bytes, at most {} are allowed", text.size(), kMaxRequestBytes);
  }
  constexpr YamlRules kRules = {
      .max_depth = kMaxRequestDepth, .max_values = kMaxRequestValues, .quoted_lists = "properties"};
  absl::StatusOr<json> tree = ReadYaml(text, kRules);
  if (!tree.ok()) return Shortened(Annotate(tree.status(), "jobspec"));
  absl::StatusOr<JobRequest> request = ParseTree(*tree);
  if (!request.ok()) return Shortened(request.status());
  return request;
}

}  // namespace fluxqueue::graph
