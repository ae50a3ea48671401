// The native engine and what its tests say to it. For tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libs/graph/booked_engine.h"
#include "libs/graph/cluster_graph.h"

namespace fluxqueue::graph {

inline Jobspec Spec(uint32_t slots, Amounts request, const std::string& constraints = "{}") {
  std::string with;
  for (const Amount& amount : request) {
    with += (with.empty() ? "" : ",") + std::string(R"({"type":")") + amount.resource +
            R"(","count":)" + std::to_string(amount.amount) + "}";
  }
  const auto spec = ParseJobspec(
      R"({"version":1,"resources":[{"type":"slot","label":"s","count":)" + std::to_string(slots) +
      R"(,"with":[)" + with +
      R"(]}],"tasks":[{"command":["x"],"slot":"s","count":{"per_slot":1}}],"attributes":{"system":{"constraints":)" +
      constraints + "}}}");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

class NativeEngineTest : public ::testing::Test {
 protected:
  NodeSpec Node(const std::string& name, Amounts resources) {
    NodeSpec node;
    node.name = name;
    node.uid = name + "-uid";
    node.ordinal = ordinal_++;
    node.resources = std::move(resources);
    return node;
  }

  // n0, n1 …, each with 4 cores and 8 memory.
  void AddNodes(int count) {
    for (int i = 0; i < count; ++i) {
      Add(Node("n" + std::to_string(i), {{"cpu", 4000}, {"memory", 8}}));
    }
  }

  void Add(NodeSpec node) { ASSERT_TRUE(engine_.AddNode(std::move(node)).ok()); }

  // The nodes of the slots; empty when it does not fit.
  std::vector<std::string> Place(const Jobspec& spec) {
    const Outcome outcome =
        engine_.Match({.key = {"j" + std::to_string(job_++), 1, 0}, .jobspec = spec});
    kind_ = outcome.kind;
    std::vector<std::string> nodes;
    if (outcome.placement == nullptr) return nodes;
    for (const PlacedSlot& slot : outcome.placement->slots) nodes.push_back(slot.node);
    return nodes;
  }

  std::string Why(const Jobspec& spec) { return engine_.Explain(spec, Wording::kShort).sentence; }

  BookedEngine engine_{MakeClusterGraph};
  OutcomeKind kind_ = OutcomeKind::kBusy;
  uint64_t ordinal_ = 0;
  int job_ = 0;
};

}  // namespace fluxqueue::graph
