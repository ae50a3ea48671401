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
  demand.mode = ChooseMode(pod);
  demand.requests = EffectiveRequests(pod);
  RETURN_IF_ERROR(CheckAmounts(demand.requests));
  return demand;
}

absl::StatusOr<PodDemand> DemandOfTemplate(const PodSpec& pod, const TemplateContext& context) {
  ASSIGN_OR_RETURN(const PodSpec complete, CompleteTemplate(pod, context));
  return DemandOfPod(complete);
}

std::string MakeJobspec(const PodDemand& demand,
                        uint32_t slots,
                        Millis duration,
                        const Topology& topology,
                        uint32_t min_slots) {
  const std::string count =
      min_slots == 0
          ? fmt::format("{}", slots)
          : fmt::format(R"({{"min":{},"max":{},"operator":"+","operand":1}})", min_slots, slots);
  std::string with;
  for (const auto& [resource, amount] : demand.requests) {
    with += fmt::format(
        "{}{{\"type\":{},\"count\":{}}}", with.empty() ? "" : ",", JsonString(resource), amount);
  }
  std::string resources =
      fmt::format(R"({{"type":"slot","count":{},"label":"pod","with":[{}]}})", count, with);
  if (!topology.required.empty()) {
    resources = fmt::format(
        R"({{"type":{},"count":1,"with":[{}]}})", JsonString(topology.required), resources);
  }
  std::string preferred;
  if (!topology.preferred.empty()) {
    preferred = fmt::format(R"("topology":{{"preferred":{}}},)", JsonString(topology.preferred));
  }
  return fmt::format(R"({{"version":1,"resources":[{}],)"
                     R"("tasks":[{{"command":["pod"],"slot":"pod","count":{{"per_slot":1}}}}],)"
                     R"("attributes":{{"system":{{"duration":{},{}"constraints":{}}}}}}})",
                     resources,
                     (duration.count() + 999) / 1000,
                     preferred,
                     demand.constraint);
}

}  // namespace fluxqueue::kubernetes
