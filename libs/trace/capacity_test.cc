#include "libs/trace/capacity.h"

#include <vector>

#include <gtest/gtest.h>

namespace fluxqueue::trace {
namespace {

const std::vector<TraceNode>& Nodes() {
  static const std::vector<TraceNode> nodes = {
      {"a", {{"cpu", 4000}, {"memory", 100}}, ""},
      {"b", {{"cpu", 8000}, {"memory", 100}, {"fluxqueue.io/gpu-milli", 1000}}, "T4"}};
  return nodes;
}

TEST(CapacityTest, CanEverRun) {
  struct Case {
    const char* what;
    TraceJob job;
    bool expected;
  };
  const std::vector<Case> cases = {
      {"nothing asked", {"j", 0, 1, 1000, {}, {}}, true},
      {"slots over both nodes", {"j", 0, 1, 3, {{"cpu", 4000}}, {}}, true},
      {"one slot too many", {"j", 0, 1, 4, {{"cpu", 4000}}, {}}, false},
      {"room in sum but on no node", {"j", 0, 1, 1, {{"cpu", 9000}}, {}}, false},
      {"the scarcer resource counts", {"j", 0, 1, 3, {{"cpu", 1}, {"memory", 100}}, {}}, false},
      {"parts of a GPU", {"j", 0, 1, 2, {{"fluxqueue.io/gpu-milli", 500}}, {}}, true},
      {"too many parts", {"j", 0, 1, 3, {{"fluxqueue.io/gpu-milli", 500}}, {}}, false},
      {"a resource that nobody has", {"j", 0, 1, 1, {{"fpga", 1}}, {}}, false},
      {"its model", {"j", 0, 1, 1, {{"cpu", 8000}}, {"P100", "T4"}}, true},
      {"no such model", {"j", 0, 1, 1, {{"cpu", 1}}, {"P100"}}, false},
  };
  for (const Case& c : cases) EXPECT_EQ(CanEverRun(c.job, Nodes()), c.expected) << c.what;
}

TEST(CapacityTest, TotalOffer) {
  const Amounts expected = {{"cpu", 12000}, {"memory", 200}, {"fluxqueue.io/gpu-milli", 1000}};
  EXPECT_EQ(TotalOffer(Nodes()), expected);
}

}  // namespace
}  // namespace fluxqueue::trace
