#include "libs/kubernetes/jobspec.h"

#include <fmt/format.h>

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

absl::StatusOr<PodDemand> DemandOfPod(const PodSpec& pod) {
  PodDemand demand;
  ASSIGN_OR_RETURN(demand.constraint, MakeConstraint(pod));
  demand.preferences = MakePreferences(pod);
  demand.mode = ChooseMode(pod);
  demand.requests = EffectiveRequests(pod);
  RETURN_IF_ERROR(CheckAmounts(demand.requests));
  return demand;
}

absl::StatusOr<PodDemand> DemandOfTemplate(const PodSpec& pod, const TemplateContext& context) {
  ASSIGN_OR_RETURN(const PodSpec complete, CompleteTemplate(pod, context));
  return DemandOfPod(complete);
}

namespace {

std::string SlotsText(const std::string& label, const std::string& count, const Amounts& requests) {
  std::string with;
  for (const auto& [resource, amount] : requests) {
    with += fmt::format(
        "{}{{\"type\":{},\"count\":{}}}", with.empty() ? "" : ",", JsonString(resource), amount);
  }
  return fmt::format(
      R"({{"type":"slot","count":{},"label":"{}","with":[{}]}})", count, label, with);
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
  std::string resources;
  std::string tasks;
  if (demand.sets.empty()) {
    resources = SlotsText("pod", count, demand.requests);
    tasks = TaskText("pod");
  }
  for (size_t i = 0; i < demand.sets.size(); ++i) {
    const PodSet& set = demand.sets[i];
    const std::string label = i == 0 ? "pod" : fmt::format("pod{}", i);
    const std::string comma = i == 0 ? "" : ",";
    resources += comma + SlotsText(label, fmt::format("{}", set.slots), set.requests);
    tasks += comma + TaskText(label);
  }
  if (!topology.required.empty()) {
    resources = fmt::format(
        R"({{"type":{},"count":1,"with":[{}]}})", JsonString(topology.required), resources);
  }
  std::string preferred;
  if (!topology.preferred.empty()) {
    preferred = fmt::format(R"("topology":{{"preferred":{}}},)", JsonString(topology.preferred));
  }
  if (!demand.preferences.empty()) {
    preferred += fmt::format(R"("job":{{"preferences":{}}},)", demand.preferences);
  }
  return fmt::format(R"({{"version":1,"resources":[{}],)"
                     R"("tasks":[{}],)"
                     R"("attributes":{{"system":{{"duration":{},{}"constraints":{}}}}}}})",
                     resources,
                     tasks,
                     (duration.count() + 999) / 1000,
                     preferred,
                     demand.constraint);
}

}  // namespace fluxqueue::kubernetes
