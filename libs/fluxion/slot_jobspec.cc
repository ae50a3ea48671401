#include "libs/fluxion/slot_jobspec.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace fluxqueue::fluxion {

std::string SlotJobspec(const graph::Amounts& request,
                        int64_t slots,
                        const graph::Constraint& where,
                        const Granules& granules) {
  using nlohmann::json;
  json with = json::array();
  for (const graph::Amount& amount : request) {
    with.push_back({{"type", TypeOf(amount.resource)},
                    {"count", granules.Needed(amount.resource, amount.amount)}});
  }
  json slot = {{"type", "slot"}, {"count", 1}, {"label", "pod"}, {"with", std::move(with)}};
  if (slots > 1) slot["count"] = {{"min", 1}, {"max", slots}, {"operator", "+"}, {"operand", 1}};
  const json node = {{"type", "node"}, {"count", 1}, {"with", json::array({std::move(slot)})}};
  const json task = {
      {"command", json::array({"pod"})}, {"slot", "pod"}, {"count", {{"per_slot", 1}}}};
  json system = {{"duration", 0}};
  if (json constraints = where.ToJson(); !constraints.empty()) {
    system["constraints"] = std::move(constraints);
  }
  const json jobspec = {{"version", 1},
                        {"resources", json::array({node})},
                        {"tasks", json::array({task})},
                        {"attributes", {{"system", std::move(system)}}}};
  return jobspec.dump();
}

}  // namespace fluxqueue::fluxion
