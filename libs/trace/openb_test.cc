#include "libs/trace/openb.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

const char kPods[] =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";
const char kNodes[] = "sn,cpu_milli,memory_mib,gpu,model\n";

TEST(OpenbPodsTest, ReadsRequestsAndTimes) {
  const auto trace = ParseOpenbPods(std::string(kPods) +
                                        "a,12000,16384,2,1000,,LS,Running,50,90,60\n"
                                        "b,500,0,1,460,T4|P100|T4,BE,Failed,40,47.5,\n"
                                        "c,1000,1,0,0,,BE,Failed,45,46,45\n",
                                    {"pods.csv"});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::vector<TraceJob> expected = {
      {"b",
       0,
       7.5,
       1,
       {{"cpu", 500}, {"fluxqueue.io/gpu-milli", 460}},
       {"T4", "P100"},
       -1,
       "",
       "",
       3},
      {"c", 5, 1, 1, {{"cpu", 1000}, {"memory", kMiB}}, {}, -1, "", "", 4},
      {"a",
       10,
       30,
       1,
       {{"cpu", 12000}, {"memory", 16384 * kMiB}, {"fluxqueue.io/gpu-milli", 2000}},
       {},
       -1,
       "",
       "",
       2}};
  EXPECT_EQ(trace->jobs, expected);
}

TEST(OpenbPodsTest, PodsWithoutRunTimeAreCounted) {
  const auto trace = ParseOpenbPods(std::string(kPods) +
                                        "a,1,1,0,0,,LS,Running,5,9,9\n"
                                        "b,1,1,0,0,,LS,Pending,5,,\n"
                                        "c,1,1,0,0,,LS,Pending,5,4,\n"
                                        "d,1,1,0,0,,LS,Running,5,9,6\n",
                                    {"pods.csv", 3});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->without_run_time, 3);
  EXPECT_TRUE(trace->jobs.empty());
}

TEST(OpenbPodsTest, ColumnsInAnyOrder) {
  const auto trace = ParseOpenbPods(
      "scheduled_time,deletion_time,creation_time,gpu_spec,gpu_milli,num_gpu,memory_mib,cpu_milli,"
      "name\r\n1,3,0,,0,0,2,4,x\r\n",
      {"pods.csv"});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const TraceJob expected = {"x", 0, 2, 1, {{"cpu", 4}, {"memory", 2 * kMiB}}, {}, -1, "", "", 2};
  EXPECT_THAT(trace->jobs, ElementsAre(expected));
}

TEST(OpenbPodsTest, Errors) {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::string head = kPods;
  const std::vector<Case> cases = {
      {"", "pods.csv:1: there is no column \"name\"; wanted are name, cpu_milli"},
      {"name,cpu_milli\n", "there is no column \"memory_mib\""},
      {head + "a,1\n", "pods.csv:2: it has 2 fields and the first line has 11"},
      {head + ",1,1,0,0,,LS,R,0,1,0\n", "field name is \"\": allowed is a text"},
      {head + "a,-1,1,0,0,,LS,R,0,1,0\n", "field cpu_milli is \"-1\": allowed is a whole"},
      {head + "a,1,1,1,1001,,LS,R,0,1,0\n",
       "field gpu_milli is \"1001\": allowed is a whole number "
       "from 0 to 1000"},
      {head + "\na,1,1,0,0,,LS,R,x,1,0\n", "pods.csv:3: field creation_time is \"x\""},
      {head + "a,1,1,0,0,,LS,R,0,1,0\na,1,1,0,0,,LS,R,0,1,0\n",
       "pods.csv:3: pod a is here for the second time"},
  };
  for (const Case& c : cases) {
    const auto trace = ParseOpenbPods(c.text, {"pods.csv"});
    ASSERT_FALSE(trace.ok()) << c.text;
    EXPECT_THAT(Message(trace.status()), HasSubstr(c.message));
  }
}

TEST(OpenbNodesTest, ReadsNodes) {
  const auto nodes =
      ParseOpenbNodes(std::string(kNodes) + "n0,32000,2,0,\nn1,96000,4,8,G2\n", {"nodes.csv"});
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  const TraceNode first = {"n0", {{"cpu", 32000}, {"memory", 2 * kMiB}}, ""};
  const TraceNode second = {
      "n1", {{"cpu", 96000}, {"memory", 4 * kMiB}, {"fluxqueue.io/gpu-milli", 8000}}, "G2"};
  EXPECT_THAT(*nodes, ElementsAre(first, second));
}

TEST(OpenbNodesTest, Errors) {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::string head = kNodes;
  const std::vector<Case> cases = {
      {head + "n0,1,1,2,\n", "nodes.csv:2: field model is \"\""},
      {head + "n0,1,1,x,\n", "nodes.csv:2: field gpu is \"x\": allowed is a whole number"},
      {head + "n0,1,1,0,\nn0,1,1,0,\n", "nodes.csv:3: node n0 is here for the second time"},
  };
  for (const Case& c : cases) {
    const auto nodes = ParseOpenbNodes(c.text, {"nodes.csv"});
    ASSERT_FALSE(nodes.ok()) << c.text;
    EXPECT_THAT(Message(nodes.status()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace fluxqueue::trace
