#include "libs/kubernetes/jobspec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/constraints.h"
#include "libs/kubernetes/json_text.h"

namespace fluxqueue::kubernetes {
namespace {

absl::Status CheckAmounts(const Amounts& requests) {
  for (const auto& [resource, amount] : requests) {
    if (amount <= kMostAmount) continue;
    return InvalidArgument(
        "resources: {} of {} is more than any node has; allowed: up to {} in one pod",
        FormatQuantity(resource, amount),
        resource,
        FormatQuantity(resource, kMostAmount));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PodDemand> DemandOfPod(const PodSpec& pod,
                                      std::string_view space,
                                      const StringMap& labels) {
  PodDemand demand;
  ASSIGN_OR_RETURN(demand.constraint, MakeConstraint(pod));
  demand.preferences = MakePreferences(pod);
  ASSIGN_OR_RETURN(demand.rules, MakePodRules(pod, space, labels));
  demand.mode = ChooseMode(pod);
  demand.requests = EffectiveRequests(pod);
  RETURN_IF_ERROR(CheckAmounts(demand.requests));
  return demand;
}

namespace {

std::string Below(std::string_view level, const std::string& count, const std::string& resources) {
  return fmt::format(
      R"({{"type":{},"count":{},"with":[{}]}})", JsonString(level), count, resources);
}

std::string SlotsText(const std::string& label,
                      const std::string& count,
                      const Amounts& requests,
                      bool one_per_node) {
  std::string with;
  for (const auto& [resource, amount] : requests) {
    with += fmt::format(
        "{}{{\"type\":{},\"count\":{}}}", with.empty() ? "" : ",", JsonString(resource), amount);
  }
  std::string slots = fmt::format(R"({{"type":"slot","count":{},"label":"{}","with":[{}]}})",
                                  one_per_node ? "1" : count,
                                  label,
                                  with);
  return one_per_node ? Below("node", count, slots) : slots;
}

// With a comma behind it; empty: nothing is to be said.
std::string JobText(const PodDemand& demand) {
  std::vector<std::string> members;
  if (!demand.rules.pod.empty()) members.push_back(fmt::format(R"("pod":{})", demand.rules.pod));
  if (!demand.preferences.empty()) {
    members.push_back(fmt::format(R"("preferences":{})", demand.preferences));
  }
  if (!demand.rules.preferred.empty()) {
    members.push_back(fmt::format(R"("pods":{})", demand.rules.preferred));
  }
  return members.empty() ? "" : fmt::format(R"("job":{{{}}},)", fmt::join(members, ","));
}

std::string TaskText(const std::string& label) {
  return fmt::format(R"({{"command":["pod"],"slot":"{}","count":{{"per_slot":1}}}})", label);
}

}  // namespace

std::string MakeJobspec(const PodDemand& demand,
                        uint32_t slots,
                        Millis duration,
                        const Topology& topology,
                        uint32_t min_slots) {
  const std::string count =
      min_slots == 0
          ? fmt::format("{}", slots)
          : fmt::format(R"({{"min":{},"max":{},"operator":"+","operand":1}})", min_slots, slots);
  // Slots that differ are no job whose pods are each on a node of its own.
  const bool one_per_node = demand.rules.one_per_node && slots > 1 && demand.sets.size() <= 1;
  std::string resources;
  std::string tasks;
  if (demand.sets.empty()) {
    resources = SlotsText("pod", count, demand.requests, one_per_node);
    tasks = TaskText("pod");
  }
  for (size_t i = 0; i < demand.sets.size(); ++i) {
    const PodSet& set = demand.sets[i];
    const std::string label = i == 0 ? "pod" : fmt::format("pod{}", i);
    const std::string comma = i == 0 ? "" : ",";
    resources += comma + SlotsText(label, fmt::format("{}", set.slots), set.requests, one_per_node);
    tasks += comma + TaskText(label);
  }
  if (!topology.required.empty()) {
    resources = Below(topology.required, "1", resources);
  }
  std::string more;
  if (!topology.preferred.empty()) {
    more = fmt::format(R"("topology":{{"preferred":{}}},)", JsonString(topology.preferred));
  }
  if (!demand.rules.rules.empty()) more += fmt::format(R"("pods":{},)", demand.rules.rules);
  more += JobText(demand);
  return fmt::format(R"({{"version":1,"resources":[{}],)"
                     R"("tasks":[{}],)"
                     R"("attributes":{{"system":{{"duration":{},{}"constraints":{}}}}}}})",
                     resources,
                     tasks,
                     (duration.count() + 999) / 1000,
                     more,
                     demand.constraint);
}

}  // namespace fluxqueue::kubernetes
