#include "libs/simulation/setting.h"

#include "libs/base/status_macros.h"
#include "libs/graph/match_policy.h"
#include "libs/scheduling/queue_tree.h"
#include "libs/scheduling/strategy.h"

namespace fluxqueue::simulation {

std::string_view Name(Estimates estimates) {
  switch (estimates) {
    case Estimates::kExact:
      return "exact";
    case Estimates::kRequested:
      return "requested";
    case Estimates::kDouble:
      return "x2";
    case Estimates::kModal:
      return "modal";
    case Estimates::kPredicted:
      return "predicted";
  }
  return "";
}

absl::StatusOr<Estimates> ParseEstimates(std::string_view name) {
  for (const Estimates known : {Estimates::kExact,
                                Estimates::kRequested,
                                Estimates::kDouble,
                                Estimates::kModal,
                                Estimates::kPredicted}) {
    if (name == Name(known)) return known;
  }
  return InvalidArgument(
      "estimates \"{}\" do not exist; allowed: exact, requested, x2, modal, predicted", name);
}

std::string Setting::Name() const {
  return fmt::format("{}, {}, {}", strategy, policy, simulation::Name(estimates));
}

absl::Status CheckSetting(const Setting& setting) {
  if (scheduling::FindStrategy(setting.strategy) == nullptr) {
    return InvalidArgument("strategy \"{}\" does not exist; allowed: {}",
                           setting.strategy,
                           scheduling::StrategyNames());
  }
  if (!scheduling::FindJobOrder(setting.order).has_value()) {
    return InvalidArgument(
        "order \"{}\" does not exist; allowed: {}", setting.order, scheduling::JobOrderNames());
  }
  return graph::MatchPolicy::Parse(setting.policy).status();
}

}  // namespace fluxqueue::simulation
