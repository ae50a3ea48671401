// Preemption on a whole system: off unless a queue says so; by priority; of borrowed share.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

class PreemptionTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartSystem({.nodes = 1}); }

  static std::string In(const std::string& queue, int priority = 0) {
    return fmt::format(
        "{{fluxqueue.io/queue: {}, fluxqueue.io/priority: \"{}\"}}", queue, priority);
  }

  void Cancel(const std::string& name) {
    const auto done = system_->Fluxqueue({"cancel", "e2e/" + name});
    ASSERT_TRUE(done.ok()) << Message(done.status());
    EXPECT_EQ(done->exit_code, 0) << done->output;
    ExpectState(name, "Cancelled");
  }
};

// More than half of a node, which has 8: two of them do not fit.
constexpr char kMost[] = "5";

TEST_F(PreemptionTest, OffUnlessTheQueueSaysSo) {
  MakeQueue("calm", "{}");
  Apply(JobYaml("calm-low", {.cpu = kMost, .run_seconds = "60", .annotations = In("calm")}));
  ExpectState("calm-low", "Running");
  Apply(JobYaml("calm-high", {.cpu = kMost, .annotations = In("calm", 9)}));
  const auto refused = [this] {
    return Count("queue.jobs WHERE name = 'calm-high' AND reason = 'Reserved'") == 1;
  };
  const absl::Status waits = system_->WaitFor(
      refused, std::chrono::seconds(30), [] { return "calm-high to have a reservation"; });
  EXPECT_TRUE(waits.ok()) << Message(waits);
  EXPECT_EQ(StateOf("calm-low"), "Running");
  EXPECT_EQ(StopsOf("calm-low"), 0);
  Cancel("calm-low");
  ExpectState("calm-high", "Succeeded");
}

TEST_F(PreemptionTest, ByPriorityTheVictimRunsAgainAfterwards) {
  MakeQueue("urgent", "{preemption: {byPriority: true, grace: 5s}}");
  Apply(JobYaml("low", {.cpu = kMost, .run_seconds = "8", .annotations = In("urgent")}));
  ExpectState("low", "Running");
  Apply(JobYaml("high", {.cpu = kMost, .run_seconds = "1", .annotations = In("urgent", 9)}));
  ExpectState("high", "Succeeded");
  EXPECT_EQ(StopsOf("low"), 1);
  ExpectState("low", "Succeeded");
  // Not for a failure, and only once.
  EXPECT_EQ(StopsOf("low"), 1);
  EXPECT_EQ(StopsOf("high"), 0);
}

TEST_F(PreemptionTest, AGuaranteeIsReclaimed) {
  MakeQueue("lender",
            fmt::format("{{guarantee: {{cpu: \"{}\"}}, preemption: {{reclaim: true}}}}", kMost));
  MakeQueue("borrower", "{}");
  Apply(JobYaml("lent", {.cpu = kMost, .run_seconds = "8", .annotations = In("borrower", 9)}));
  ExpectState("lent", "Running");
  Apply(JobYaml("mine", {.cpu = kMost, .run_seconds = "1", .annotations = In("lender")}));
  ExpectState("mine", "Succeeded");
  EXPECT_EQ(StopsOf("lent"), 1);
  ExpectState("lent", "Succeeded");
}

}  // namespace
}  // namespace fluxqueue::e2e
