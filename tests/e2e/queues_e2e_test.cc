// A queue is a contract: queues on a whole system of three nodes, with the settings of a new
// installation. No job freezes another queue, what nothing can run now waits, and the first of a
// queue has its turn however many small jobs of other queues there are.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

class QueuesTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartSystem({.nodes = 3}); }

  void SetUp() override {
    SystemTest::SetUp();
    const auto names = system_->Kubectl(
        {"get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}"});
    ASSERT_TRUE(names.ok()) << Message(names.status());
    nodes_.clear();
    for (size_t at = 0; at < names->size();) {
      const size_t end = names->find('\n', at);
      nodes_.push_back(names->substr(at, end - at));
      at = end == std::string::npos ? end : end + 1;
    }
    ASSERT_EQ(nodes_.size(), 3U);
  }

  static std::string On(const std::string& node) {
    return "      nodeSelector: {kubernetes.io/hostname: " + node + "}\n";
  }
  static std::string In(const std::string& queue, const std::string& duration) {
    return fmt::format(
        "{{fluxqueue.io/queue: {}, fluxqueue.io/duration: \"{}\"}}", queue, duration);
  }
  // Takes whole nodes.
  void Submit(const std::string& queue,
              const std::string& name,
              const std::string& duration,
              const std::string& runs,
              const std::string& pod_spec = "",
              int nodes = 1) {
    Apply(JobYaml(name,
                  {.parallelism = nodes,
                   .completions = nodes,
                   .cpu = "7",
                   .run_seconds = runs,
                   .annotations = In(queue, duration),
                   .pod_spec = pod_spec}));
  }

  std::vector<std::string> nodes_;
};

TEST_F(QueuesTest, AJobThatCannotStartFreezesNoOtherQueue) {
  MakeQueue("a", "{strategy: fcfs}");
  MakeQueue("b", "{strategy: easy}");
  MakeQueue("c", "{}");
  // Without an end, for as long as this test takes.
  Submit("c", "endless", "0", "600", On(nodes_[0]));
  ExpectState("endless", "Running");
  Submit("a", "a-wants", "60s", "1", On(nodes_[0]));
  ExpectReason("a-wants", "Busy");
  // Its own line has stopped, as fcfs says.
  Submit("a", "a-behind", "60s", "1", On(nodes_[1]));
  // A promise of b is kept beside it.
  Submit("b", "b-long", "6s", "6", On(nodes_[1]));
  ExpectState("b-long", "Running");
  Submit("b", "b-promised", "5s", "1", On(nodes_[1]));
  ExpectReason("b-promised", "Reserved");
  const int64_t promised = StartOf("b-promised");
  // Empty nodes are for whoever asks, of this namespace and of others.
  Submit("b", "b-empty", "3s", "1", On(nodes_[2]));
  ExpectState("b-empty", "Succeeded");
  Apply(JobYaml("plain", {.run_seconds = "0.5"}));
  ExpectState("plain", "Succeeded");
  ExpectState("b-promised", "Succeeded");
  EXPECT_LT(StartOf("b-promised"), promised + 4000);
  EXPECT_EQ(StateOf("a-wants"), "Pending");
  EXPECT_EQ(StateOf("a-behind"), "Pending");
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "-n", "e2e", "endless"}).ok());
  ExpectState("a-wants", "Succeeded");
  ExpectState("a-behind", "Succeeded");
}

TEST_F(QueuesTest, JobsWaitWhileAllNodesAreTainted) {
  for (int i = 0; i < 3; ++i)
    Submit("default", fmt::format("fills-{}", i), "1h", i == 0 ? "5" : "9");
  for (int i = 0; i < 3; ++i) ExpectState(fmt::format("fills-{}", i), "Running");
  for (int i = 0; i < 3; ++i) Submit("default", fmt::format("waits-{}", i), "10s", "0.5");
  ExpectReason("waits-0", "Reserved");
  ASSERT_TRUE(system_->Kubectl({"taint", "nodes", "--all", "maintenance=true:NoSchedule"}).ok());
  ExpectState("fills-0", "Succeeded");
  for (int i = 0; i < 3; ++i) {
    ExpectReason(fmt::format("waits-{}", i), "Unsatisfiable");
    EXPECT_EQ(StateOf(fmt::format("waits-{}", i)), "Pending");
    EXPECT_THAT(MessageOf(fmt::format("waits-{}", i)), HasSubstr("maintenance"));
  }
  // Longer than the 5 s after which such jobs were once rejected for ever.
  for (int i = 1; i < 3; ++i) ExpectState(fmt::format("fills-{}", i), "Succeeded");
  ASSERT_TRUE(system_->Kubectl({"taint", "nodes", "--all", "maintenance-"}).ok());
  for (int i = 0; i < 3; ++i) ExpectState(fmt::format("waits-{}", i), "Succeeded");
}

// A device plugin that restarts takes its resource from the node for a while.
TEST_F(QueuesTest, AJobWaitsForADeviceThatIsAway) {
  const auto set = [this](const std::string& devices) {
    return system_->Kubectl(
        {"patch",
         "node",
         nodes_[0],
         "--subresource=status",
         "-p",
         fmt::format(R"({{"status": {{"capacity": {{"example.com/dongle": "{0}"}},
                                    "allocatable": {{"example.com/dongle": "{0}"}}}}}})",
                     devices)});
  };
  ASSERT_TRUE(set("0").ok());
  Apply(JobYaml("dongle", {.limits = "{example.com/dongle: 1}"}));
  ExpectReason("dongle", "Unsatisfiable");
  ASSERT_TRUE(set("1").ok());
  ExpectState("dongle", "Succeeded");
}

TEST_F(QueuesTest, TheFirstOfAQueueHasItsTurnInAStreamOfSmallJobs) {
  MakeQueue("patient", "{strategy: fcfs, reserveAfter: 2s}");
  MakeQueue("stream", "{strategy: easy, weight: 100}");
  constexpr int kSmall = 45;
  std::string stream;
  for (int i = 0; i < kSmall; ++i) {
    // Of lengths that differ, so that nodes come free one after the other.
    stream += JobYaml(fmt::format("small-{}", i),
                      {.cpu = "7",
                       .run_seconds = fmt::format("{:.1f}", 1 + i % 3 * 0.7),
                       .annotations = In("stream", "3s")});
  }
  Apply(stream);
  Submit("patient", "wide", "5s", "0.5", "", 3);
  ExpectState("wide", "Succeeded");
  EXPECT_GT(Count("queue.jobs WHERE name LIKE 'small-%' AND live"), 0);
  ExpectState(fmt::format("small-{}", kSmall - 1), "Succeeded", std::chrono::seconds(120));
}

// The log that the tests before this one have written.
TEST_F(QueuesTest, TheSimulatorDecidesAsTheServicesDid) {
  ExpectSimulatorAgrees();
}

}  // namespace
}  // namespace fluxqueue::e2e
