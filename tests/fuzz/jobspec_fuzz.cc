#include <string>

#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

using graph::Jobspec;
using nlohmann::json;

std::string Write(const Jobspec& spec) {
  json resources = json::array();
  for (const graph::SlotGroup& group : spec.groups) {
    json with = json::array();
    for (const graph::Amount& amount : group.request) {
      with.push_back({{"type", amount.resource}, {"count", amount.amount}});
    }
    json count = group.slots;
    if (spec.min_slots != 0) count = {{"min", spec.min_slots}, {"max", group.slots}};
    resources.push_back({{"type", "slot"},
                         {"count", std::move(count)},
                         {"label", fmt::format("pod{}", resources.size())},
                         {"with", std::move(with)}});
  }
  if (!spec.required_level.empty()) {
    resources = {{{"type", spec.required_level}, {"count", 1}, {"with", std::move(resources)}}};
  }
  json system = {{"duration", spec.duration_s}};
  for (const graph::Toleration& toleration : spec.tolerations) {
    system["constraints"]["tolerations"].push_back(toleration.text());
  }
  if (!spec.preferred_level.empty()) system["topology"]["preferred"] = spec.preferred_level;
  return json{{"version", 1},
              {"resources", std::move(resources)},
              {"tasks", {{{"command", {"pod"}}, {"slot", "pod0"}, {"count", {{"per_slot", 1}}}}}},
              {"attributes", {{"system", std::move(system)}}}}
      .dump();
}

void CheckWritten(const Jobspec& spec) {
  const std::string text = Write(spec);
  const auto again = graph::ParseJobspec(text);
  CHECK(again.ok(), "{}: {}", Message(again.status()), text);
  CHECK(again->slots == spec.slots && again->min_slots == spec.min_slots &&
            again->groups == spec.groups && again->duration_s == spec.duration_s &&
            Write(*again) == text,
        "{}",
        text);
}

void CheckMatch(const Jobspec& spec) {
  const auto engine = graph::MakeNativeEngine();
  for (uint64_t i = 0; i < 3; ++i) {
    graph::NodeSpec node;
    node.name = fmt::format("node{}", i);
    node.ordinal = i;
    node.resources = {{"cpu", 4000}, {"memory", int64_t{1} << 33}, {"pods", 10}};
    node.labels = {{"disk", i == 0 ? "ssd" : "hdd"}, {"rack", i == 0 ? "a" : "b"}};
    if (i == 2) node.taints = {{"dedicated", "batch", "NoSchedule"}};
    CHECK(engine->AddNode(std::move(node)).ok());
  }
  CHECK(engine->SetLevels({"zone", "rack"}).ok());
  const uint64_t before = engine->Fingerprint();
  const graph::AllocationKey key{"job", 0, 0};
  const auto outcome = engine->Match({.key = key, .jobspec = spec, .now_s = 0, .duration_s = 60});
  CHECK(!engine->Explain(spec, graph::Wording::kShort).sentence.empty());
  const bool held = outcome.kind == graph::OutcomeKind::kAllocated;
  if (spec.groups.size() == 1) {
    const graph::Jobspec one = graph::WithSlots(spec, 1);
    const auto grown = engine->Grow({.key = key, .jobspec = one, .now_s = 1});
    CHECK(held || grown.kind == graph::OutcomeKind::kBusy);
  }
  CHECK(engine->Release(key) == held);
  CHECK(engine->Fingerprint() == before);
}

}  // namespace

void FuzzJobspec(std::string_view text) {
  const auto spec = graph::ParseJobspec(text);
  if (!spec.ok()) {
    CHECK(absl::IsInvalidArgument(spec.status()), "{}", Message(spec.status()));
    return;
  }
  CheckWritten(*spec);
  CheckMatch(*spec);
}

}  // namespace fluxqueue::fuzz
