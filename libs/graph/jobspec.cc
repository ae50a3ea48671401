#include "libs/graph/jobspec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/json_check.h"
#include "libs/graph/json_fields.h"
#include "libs/graph/shortened.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kTopKeys = {
    "attributes", "resources", "tasks", "version"};
constexpr std::array<std::string_view, 4> kSlotKeys = {"count", "label", "type", "with"};
constexpr std::array<std::string_view, 4> kRangeKeys = {"max", "min", "operand", "operator"};
constexpr std::array<std::string_view, 3> kLevelKeys = {"count", "type", "with"};
constexpr std::array<std::string_view, 3> kResourceKeys = {"count", "type", "unit"};
constexpr std::array<std::string_view, 4> kTaskKeys = {"attributes", "command", "count", "slot"};
constexpr std::array<std::string_view, 2> kTaskCountKeys = {"per_slot", "total"};
constexpr std::array<std::string_view, 2> kAttributeKeys = {"system", "user"};
// Those that do not say where a job can run are accepted and not looked at.
constexpr std::array<std::string_view, 9> kSystemKeys = {
    "constraints", "cwd", "duration", "environment", "job", "pods", "queue", "shell", "topology"};
constexpr std::array<std::string_view, 1> kTopologyKeys = {"preferred"};
constexpr std::array<std::string_view, 2> kPreferencesKeys = {"terms", "tolerations"};
constexpr std::array<std::string_view, 2> kTermKeys = {"constraint", "weight"};
constexpr double kMaxDuration = 1e10;  // seconds: three centuries

absl::StatusOr<int64_t> Count(const json& object, const std::string& path, int64_t most) {
  const auto count = object.find("count");
  if (count != object.end() && count->is_object()) {
    return InvalidArgument("{}.count: only slots have a range of counts; give one integer", path);
  }
  return Integer(object, "count", path, 1, most);
}

struct SlotCounts {
  int64_t min = 0;  // 0: no range
  int64_t max = 0;
};

absl::StatusOr<SlotCounts> CountsOf(const json& slots, const std::string& path) {
  ASSIGN_OR_RETURN(const json* count, Member(slots, "count", path));
  SlotCounts counts;
  if (!count->is_object()) {
    ASSIGN_OR_RETURN(counts.max, Count(slots, path, kMaxSlots));
    return counts;
  }
  const std::string of_count = path + ".count";
  RETURN_IF_ERROR(CheckObject(*count, of_count, kRangeKeys));
  ASSIGN_OR_RETURN(counts.max, Integer(*count, "max", of_count, 1, kMaxSlots));
  ASSIGN_OR_RETURN(counts.min, Integer(*count, "min", of_count, 1, counts.max));
  const std::pair<const char*, json> only[] = {{"operator", "+"}, {"operand", 1}};
  for (const auto& [key, value] : only) {
    if (count->value(key, value) == value) continue;
    return InvalidArgument(
        "{}.{}: must be {}, is {}: an elastic job takes one slot after the other",
        of_count,
        key,
        value.dump(),
        (*count)[key].dump());
  }
  return counts;
}

absl::Status ParseResource(const json& value, const std::string& path, Amounts* request) {
  if (value.is_object() && value.contains("with")) {
    return InvalidArgument(
        "{}.with: a level inside the slot is not supported; a slot has "
        "resources only",
        path);
  }
  RETURN_IF_ERROR(CheckObject(value, path, kResourceKeys));
  Amount amount;
  ASSIGN_OR_RETURN(amount.resource, Text(value, "type", path));
  if (amount.resource == "slot") {
    return InvalidArgument("{}.type: a slot within a slot is not supported", path);
  }
  if (value.contains("unit") && value["unit"] != "") {
    return InvalidArgument(
        "{}.unit: amounts are in base units (cpu: millicores, memory: bytes); "
        "leave the unit out, is {}",
        path,
        value["unit"].dump());
  }
  ASSIGN_OR_RETURN(amount.amount, Count(value, path, kMaxAmount));
  request->push_back(std::move(amount));
  return absl::OkStatus();
}

absl::Status ParseRequest(const json& with, const std::string& path, Amounts* request) {
  if (!with.is_array() || with.empty() || with.size() > kMaxResources) {
    return InvalidArgument("{}: must be a list of 1 to {} resources", path, kMaxResources);
  }
  for (size_t i = 0; i < with.size(); ++i) {
    RETURN_IF_ERROR(ParseResource(with[i], fmt::format("{}[{}]", path, i), request));
  }
  const auto by_name = [](const Amount& a, const Amount& b) { return a.resource < b.resource; };
  std::sort(request->begin(), request->end(), by_name);
  for (size_t i = 1; i < request->size(); ++i) {
    if ((*request)[i - 1].resource == (*request)[i].resource) {
      return InvalidArgument("{}: names {} twice; add the counts up", path, (*request)[i].resource);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SlotGroup> ParseSlot(const json& slot,
                                    const std::string& path,
                                    std::set<std::string>* labels,
                                    uint32_t* min_slots) {
  RETURN_IF_ERROR(CheckObject(slot, path, kSlotKeys));
  ASSIGN_OR_RETURN(const std::string type, Text(slot, "type", path));
  if (type != "slot") {
    return InvalidArgument("{}.type: must be \"slot\", is \"{}\"", path, type);
  }
  SlotGroup group;
  ASSIGN_OR_RETURN(const SlotCounts counts, CountsOf(slot, path));
  group.slots = static_cast<uint32_t>(counts.max);
  if (counts.min != 0) *min_slots = static_cast<uint32_t>(counts.min);
  ASSIGN_OR_RETURN(std::string label, Text(slot, "label", path));
  if (labels->contains(label)) {
    return InvalidArgument("{}.label: \"{}\" is another slot's label", path, label);
  }
  labels->insert(std::move(label));
  ASSIGN_OR_RETURN(const json* with, Member(slot, "with", path));
  RETURN_IF_ERROR(ParseRequest(*with, path + ".with", &group.request));
  return group;
}

absl::Status ParseSlots(const json& slots,
                        const std::string& path,
                        Jobspec* spec,
                        std::set<std::string>* labels) {
  if (!slots.is_array() || slots.empty() || slots.size() > kMaxSlotGroups) {
    return InvalidArgument("{}: must be a list of 1 to {} slots", path, kMaxSlotGroups);
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::string of_slot = fmt::format("{}[{}]", path, i);
    ASSIGN_OR_RETURN(SlotGroup group, ParseSlot(slots[i], of_slot, labels, &spec->min_slots));
    spec->slots += group.slots;
    if (spec->slots > kMaxSlots) {
      return InvalidArgument(
          "{}: {} slots in all, at most {} are allowed", path, spec->slots, kMaxSlots);
    }
    spec->groups.push_back(std::move(group));
  }
  if (spec->min_slots != 0 && (slots.size() > 1 || !spec->required_level.empty())) {
    return InvalidArgument(
        "{}: a range of counts is for slots that are all alike and below no level{}",
        path,
        slots.size() > 1 ? fmt::format("; here are {} that differ", slots.size()) : "");
  }
  return absl::OkStatus();
}

absl::Status ParseNodes(const json& nodes,
                        const std::string& path,
                        Jobspec* spec,
                        std::set<std::string>* labels) {
  RETURN_IF_ERROR(CheckObject(nodes, path, kLevelKeys));
  ASSIGN_OR_RETURN(const SlotCounts counts, CountsOf(nodes, path));
  ASSIGN_OR_RETURN(const json* with, Member(nodes, "with", path));
  RETURN_IF_ERROR(ParseSlots(*with, path + ".with", spec, labels));
  if (spec->slots != 1 || spec->min_slots != 0) {
    return InvalidArgument(
        "{}.with: must be one slot of each node, is {}; leave the node out where several slots may "
        "be on one",
        path,
        with->dump());
  }
  spec->one_per_node = true;
  spec->slots = spec->groups[0].slots = static_cast<uint32_t>(counts.max);
  spec->min_slots = static_cast<uint32_t>(counts.min);
  return absl::OkStatus();
}

bool IsOfType(const json& resources, std::string_view type) {
  return resources.is_array() && resources.size() == 1 && resources[0].is_object() &&
         resources[0].contains("type") && resources[0]["type"] == type;
}

absl::Status ParseLevel(const json& level, Jobspec* spec, std::set<std::string>* labels) {
  const std::string path = "resources[0]";
  RETURN_IF_ERROR(CheckObject(level, path, kLevelKeys));
  ASSIGN_OR_RETURN(spec->required_level, Text(level, "type", path));
  ASSIGN_OR_RETURN(const int64_t count, Count(level, path, kMaxSlots));
  if (count != 1) {
    return InvalidArgument("{}.count: must be 1 for a level above the slots, is {}", path, count);
  }
  ASSIGN_OR_RETURN(const json* with, Member(level, "with", path));
  if (!IsOfType(*with, "node")) return ParseSlots(*with, path + ".with", spec, labels);
  if ((*with)[0].contains("count") && (*with)[0]["count"].is_object()) {
    return InvalidArgument("{}.with[0].count: a range of counts is for slots below no level", path);
  }
  return ParseNodes((*with)[0], path + ".with[0]", spec, labels);
}

absl::Status ParseResources(const json& resources, Jobspec* spec, std::set<std::string>* labels) {
  if (!resources.is_array() || resources.empty()) {
    return InvalidArgument("resources: must be a list of slots, or of one level above them");
  }
  if (IsOfType(resources, "node")) return ParseNodes(resources[0], "resources[0]", spec, labels);
  const json& first = resources[0];
  const bool level = resources.size() == 1 && first.is_object() && first.contains("type") &&
                     first["type"].is_string() && first["type"] != "slot";
  return level ? ParseLevel(first, spec, labels) : ParseSlots(resources, "resources", spec, labels);
}

// Tasks say what runs in a slot, which is the pod's business; only their form is checked.
absl::Status CheckTasks(const json& tasks, const std::set<std::string>& labels) {
  if (!tasks.is_array() || tasks.empty()) {
    return InvalidArgument("tasks: must be a list of at least one task");
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string path = fmt::format("tasks[{}]", i);
    RETURN_IF_ERROR(CheckObject(tasks[i], path, kTaskKeys));
    ASSIGN_OR_RETURN(const json* command, Member(tasks[i], "command", path));
    if (!command->is_array() && !command->is_string()) {
      return InvalidArgument("{}.command: must be a list of strings", path);
    }
    ASSIGN_OR_RETURN(const std::string slot, Text(tasks[i], "slot", path));
    if (!labels.contains(slot)) {
      return InvalidArgument("{}.slot: \"{}\" is no label of a slot; there is \"{}\"",
                             path,
                             slot,
                             fmt::join(labels, "\", \""));
    }
    ASSIGN_OR_RETURN(const json* count, Member(tasks[i], "count", path));
    RETURN_IF_ERROR(CheckObject(*count, path + ".count", kTaskCountKeys));
  }
  return absl::OkStatus();
}

absl::Status ParseDuration(const json& value, int64_t* seconds) {
  const bool fits =
      value.is_number() && value.get<double>() >= 0 && value.get<double>() <= kMaxDuration;
  if (!fits) {
    return InvalidArgument(
        "attributes.system.duration: must be seconds from 0 (unlimited) to {:.0f}, is {}",
        kMaxDuration,
        value.dump());
  }
  *seconds = static_cast<int64_t>(std::ceil(value.get<double>()));
  return absl::OkStatus();
}

absl::StatusOr<Preference> ParseTerm(const json& term, const std::string& path) {
  RETURN_IF_ERROR(CheckObject(term, path, kTermKeys));
  Preference preference;
  ASSIGN_OR_RETURN(preference.weight, Integer(term, "weight", path, 1, kMaxWeight));
  ASSIGN_OR_RETURN(const json* constraint, Member(term, "constraint", path));
  ASSIGN_OR_RETURN(preference.nodes, Constraint::Parse(*constraint, path + ".constraint", nullptr));
  return preference;
}

absl::StatusOr<Toleration> ParseToleration(const json& toleration, const std::string& path) {
  if (toleration.is_string()) return Toleration::Parse(toleration.get<std::string>(), path);
  return InvalidArgument("{}: must be a string, is {}", path, toleration.type_name());
}

absl::Status ParsePreferences(const json& value, Preferences* preferences) {
  const std::string path = "attributes.system.job.preferences";
  RETURN_IF_ERROR(CheckObject(value, path, kPreferencesKeys));
  std::string text = value.dump();
  if (text.size() > kMaxPreferencesBytes) {
    return InvalidArgument(
        "{}: has {} bytes, at most {} are allowed", path, text.size(), kMaxPreferencesBytes);
  }
  ASSIGN_OR_RETURN(preferences->terms, ParseItems<Preference>(value, "terms", path, ParseTerm));
  ASSIGN_OR_RETURN(preferences->tolerations,
                   ParseItems<Toleration>(value, "tolerations", path, ParseToleration));
  preferences->signature = Digested(std::move(text));
  return absl::OkStatus();
}

absl::Status ParseJob(const json& job, Jobspec* spec) {
  if (job.contains("preferences")) {
    RETURN_IF_ERROR(ParsePreferences(job["preferences"], &spec->preferences));
  }
  if (job.contains("pods")) {
    RETURN_IF_ERROR(ParsePodPreferences(job["pods"], &spec->preferences.pods));
    spec->preferences.signature += Digested(job["pods"].dump());
  }
  return job.contains("pod") ? ParsePodOf(job["pod"], &spec->pods) : absl::OkStatus();
}

absl::Status ParseAttributes(const json& attributes, Jobspec* spec) {
  RETURN_IF_ERROR(CheckObject(attributes, "attributes", kAttributeKeys));
  const auto system = attributes.find("system");
  if (system == attributes.end()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckObject(*system, "attributes.system", kSystemKeys));
  if (const auto duration = system->find("duration"); duration != system->end()) {
    RETURN_IF_ERROR(ParseDuration(*duration, &spec->duration_s));
  }
  if (const auto topology = system->find("topology"); topology != system->end()) {
    const std::string path = "attributes.system.topology";
    RETURN_IF_ERROR(CheckObject(*topology, path, kTopologyKeys));
    ASSIGN_OR_RETURN(spec->preferred_level, Text(*topology, "preferred", path));
  }
  if (const auto job = system->find("job"); job != system->end()) {
    RETURN_IF_ERROR(ParseJob(*job, spec));
  }
  if (const auto pods = system->find("pods"); pods != system->end()) {
    RETURN_IF_ERROR(ParsePodRules(*pods, &spec->pods));
  }
  if (LooksAtPods(*spec) && spec->pods.space.empty()) {
    return InvalidArgument(
        "attributes.system.job.pod: is missing; rules between pods are about one namespace");
  }
  const auto constraints = system->find("constraints");
  if (constraints == system->end()) return absl::OkStatus();
  std::optional<std::vector<Toleration>> tolerations;
  ASSIGN_OR_RETURN(spec->constraint,
                   Constraint::Parse(*constraints, "attributes.system.constraints", &tolerations));
  if (tolerations.has_value()) spec->tolerations = *std::move(tolerations);
  return absl::OkStatus();
}

void SignConstraint(Jobspec* spec) {
  spec->constraint_signature = spec->constraint.ToString();
  for (const Toleration& toleration : spec->tolerations) {
    // JSON's way to quote: a toleration's text may hold any character.
    spec->constraint_signature += " ~" + json(toleration.text()).dump();
  }
  spec->constraint_signature = Digested(std::move(spec->constraint_signature));
}

// REQUIRES: SignConstraint.
void SignShape(Jobspec* spec) {
  for (const SlotGroup& group : spec->groups) {
    spec->shape += fmt::format("{}{} x", spec->shape.empty() ? "" : ", ", group.slots);
    for (const Amount& amount : group.request) {
      spec->shape += fmt::format(" {}:{}", json(amount.resource).dump(), amount.amount);
    }
  }
  if (spec->one_per_node) spec->shape += " each on a node of its own";
  if (!spec->required_level.empty()) {
    spec->shape += " in one " + json(spec->required_level).dump();
  }
  if (!spec->preferred_level.empty()) {
    spec->shape += " preferably in one " + json(spec->preferred_level).dump();
  }
  spec->shape += " on " + spec->constraint_signature;
  if (!spec->pods.AreNone()) spec->shape += " by " + spec->pods.signature;
}

absl::StatusOr<Jobspec> ParseTree(const json& tree) {
  RETURN_IF_ERROR(CheckObject(tree, "", kTopKeys));
  ASSIGN_OR_RETURN(const json* version, Member(tree, "version", ""));
  // 9999 is what Fluxion's own examples carry.
  if (*version != 1 && *version != 9999) {
    return InvalidArgument("version: must be 1, is {}", version->dump());
  }
  Jobspec spec;
  std::set<std::string> labels;
  ASSIGN_OR_RETURN(const json* resources, Member(tree, "resources", ""));
  RETURN_IF_ERROR(ParseResources(*resources, &spec, &labels));
  ASSIGN_OR_RETURN(const json* tasks, Member(tree, "tasks", ""));
  RETURN_IF_ERROR(CheckTasks(*tasks, labels));
  if (const auto attributes = tree.find("attributes"); attributes != tree.end()) {
    RETURN_IF_ERROR(ParseAttributes(*attributes, &spec));
  }
  SignConstraint(&spec);
  SignShape(&spec);
  return spec;
}

}  // namespace

absl::Status CheckJobspecText(std::string_view text) {
  const JsonLimits limits{.depth = kMaxJobspecDepth,
                          .is_plain = true,
                          .name_keys = {"label", "slot", "type"},
                          .name_bytes = kMaxNameBytes};
  return Shortened(Annotate(CheckJson(text, limits), "jobspec"));
}

absl::StatusOr<Jobspec> ParseJobspec(std::string_view text) {
  if (text.size() > kMaxJobspecBytes) {
    return InvalidArgument(
        "jobspec: has {} bytes, at most {} are allowed", text.size(), kMaxJobspecBytes);
  }
  if (absl::Status status = CheckJson(text, {.depth = kMaxJobspecDepth}); !status.ok()) {
    return Shortened(Annotate(status, "jobspec"));
  }
  // It has parsed once: neither an exception nor a discarded value can come of it.
  absl::StatusOr<Jobspec> spec = ParseTree(json::parse(text, nullptr, /*allow_exceptions=*/false));
  if (!spec.ok()) return Shortened(spec.status());
  return spec;
}

Jobspec WithSlots(const Jobspec& jobspec, uint32_t slots) {
  CHECK(jobspec.groups.size() == 1 && slots > 0, "{} slots of {}", slots, jobspec.shape);
  Jobspec same = jobspec;
  same.slots = same.groups[0].slots = slots;
  same.min_slots = 0;
  same.shape.clear();
  SignShape(&same);
  return same;
}

Jobspec WithWorths(Jobspec jobspec, std::shared_ptr<const NodeWorths> worths) {
  Preferences& preferences = jobspec.preferences;
  CHECK(preferences.worths == nullptr, "worths of {} are said twice", jobspec.shape);
  preferences.signature += " worth " + worths->signature;
  preferences.worths = std::move(worths);
  return jobspec;
}

}  // namespace fluxqueue::graph
