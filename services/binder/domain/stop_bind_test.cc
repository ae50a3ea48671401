// Jobs that do not let themselves be stopped: calls about them fail for ever, or their users gave
// their pods a year to end.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

#include "fmt/format.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JOB_STATE_STOPPING;
using events::v1::JobFact;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class StopTest : public BindPlannerTest {
 protected:
  void Run() {
    h_.cluster.suspended["a"] = false;
    h_.cluster.AddPod("a", "a-0");
    Allocate(1);
    h_.Settle();
    ASSERT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  }
  // Executes them, but those of this kind fail; `unmade`: without having been made.
  void Fail(const std::vector<Call>& calls, Call::Kind kind, bool unmade = false) {
    for (const Call& call : calls) {
      if (call.kind == kind) {
        h_.planner->Answer({.call = call,
                            .outcome = CallResult::Outcome::kRetry,
                            .pod = {},
                            .unmade = unmade,
                            .message = "504"});
      } else {
        h_.planner->Answer(h_.cluster.Execute(call));
      }
    }
  }
  // What the planner asks for, while calls of this kind fail; then all that failed is due again.
  std::vector<Call> Round(Call::Kind failing, bool unmade = false) {
    std::vector<Call> asked = h_.Batch();
    Fail(asked, failing, unmade);
    // The answers count from when they are heard.
    const std::vector<Call> more = h_.Batch();
    Fail(more, failing, unmade);
    asked.insert(asked.end(), more.begin(), more.end());
    h_.now += h_.options.retry_max;
    return asked;
  }
  // In so many rounds.
  std::vector<std::string> Asked(int rounds, Call::Kind failing, bool unmade = false) {
    std::vector<std::string> asked;
    for (int round = 0; round < rounds; ++round) {
      for (const Call& call : Round(failing, unmade)) asked.push_back(Describe(call));
    }
    return asked;
  }
};

TEST_F(StopTest, AJobThatCannotBeSuspendedKeepsNoSlots) {
  Run();
  Stop(1);
  EXPECT_THAT(Asked(Retry::kMostRefusals - 1, Call::Kind::kSuspend),
              Not(Contains("delete a-0 n0")));
  EXPECT_THAT(Asked(1, Call::Kind::kSuspend), Contains("delete a-0 n0"));
  EXPECT_TRUE(h_.cluster.Pod("a-0")->deleting);
  EXPECT_THAT(h_.Said("job_stopped"), IsEmpty());
  h_.cluster.Remove("a-0");
  Asked(2, Call::Kind::kSuspend);
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
  EXPECT_FALSE(h_.cluster.suspended["a"]);
}

TEST_F(StopTest, AStopThatWasNotHeardIsSaidAgain) {
  Run();
  Stop(1);
  EXPECT_FALSE(h_.planner->SayEndAgain("a"));
  h_.Settle();
  h_.cluster.Remove("a-0");
  h_.Settle();
  ASSERT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
  EXPECT_TRUE(h_.planner->SayEndAgain("a"));
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1", "a/1"));
}

TEST_F(StopTest, AnApiServerThatIsAwayIsWaitedFor) {
  Run();
  Stop(1);
  h_.planner->SetPodsInView(false, h_.now);
  Asked(Retry::kMostRefusals + 1, Call::Kind::kSuspend);
  h_.planner->SetPodsInView(true, h_.now);
  // So are calls that waited too long behind others.
  Asked(Retry::kMostRefusals + 1, Call::Kind::kSuspend, /*unmade=*/true);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.suspended["a"]);
  EXPECT_FALSE(h_.cluster.Pod("a-0")->deleting);
}

TEST_F(StopTest, AJobIsSuspendedAfterAllWhenThatSucceeds) {
  Run();
  Stop(1);
  Asked(Retry::kMostRefusals - 1, Call::Kind::kSuspend);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.suspended["a"]);
  EXPECT_FALSE(h_.cluster.Pod("a-0")->deleting);
}

// What has failed before may hold few threads.
TEST_F(StopTest, CallsThatFailAreMarked) {
  Run();
  Stop(1);
  for (const bool again : {false, false, true, true}) {
    const std::vector<Call> calls = Round(Call::Kind::kSuspend);
    ASSERT_THAT(Describe(calls), ElementsAre("suspend a "));
    EXPECT_EQ(calls[0].again, again);
  }
}

TEST_F(StopTest, APodThatCannotBeFencedIsDeleted) {
  BarePod();
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/false, "a");
  Allocate(1);
  h_.Batch();  // its Binding is lost
  h_.Restart();
  Stop(1);
  EXPECT_THAT(Asked(Retry::kMostRefusals, Call::Kind::kFence), Not(Contains("delete a-0 n0")));
  EXPECT_THAT(Asked(1, Call::Kind::kFence), Contains("delete a-0 n0"));
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(StopTest, APodThatCannotBeMarkedAsDisruptedIsDeletedAllTheSame) {
  Workload(1).set_controlled(true);
  Run();
  Stop(1);
  const auto disrupts = [this] {
    const std::vector<Call> calls = Round(Call::Kind::kDelete);
    EXPECT_THAT(Describe(calls), ElementsAre("delete a-0 n0"));
    return calls.at(0).disruption.has_value();
  };
  for (int i = 0; i < Retry::kMostRefusals; ++i) EXPECT_TRUE(disrupts()) << i;
  EXPECT_FALSE(disrupts());
}

// As Slurm's KillWait: told to go at once, killed when its time for that is over.
TEST_F(StopTest, AGraceOfAYearEndsWithTheWait) {
  for (const int64_t grace_ms : {0, 900'000}) {
    SCOPED_TRACE(grace_ms);
    h_.Restart();
    const uint32_t attempt = grace_ms == 0 ? 1 : 2;
    const std::string pod = fmt::format("a-{}", attempt);
    h_.cluster.suspended["a"] = false;
    h_.cluster.AddPod("a", pod);
    Allocate(1, attempt);
    h_.Settle();
    h_.cluster.Delete(pod);  // by its user, and it goes on
    JobFact fact = Fact(JOB_STATE_STOPPING, 1, attempt);
    fact.set_grace_ms(grace_ms);
    h_.log.push_back(fact);
    h_.Settle();
    h_.now += std::max(h_.options.kill_wait, Millis(grace_ms)) - Millis(10'000);
    h_.Settle();
    ASSERT_NE(h_.cluster.Pod(pod), nullptr);
    h_.now += Millis(10'000);
    const std::vector<Call> calls = h_.Batch();
    ASSERT_THAT(Describe(calls), ElementsAre(fmt::format("kill {} n0", pod)));
    EXPECT_EQ(calls[0].grace_s, 1);
    h_.Execute(calls);
    h_.Settle();
    EXPECT_THAT(h_.Said("job_stopped"), Contains(fmt::format("a/{}", attempt)));
  }
}

// Its user resumes the Job before its controller comes to it, each time.
TEST_F(StopTest, AJobThatIsResumedAgainAndAgainKeepsNoSlots) {
  Run();
  Stop(1);
  const Millis until = h_.now + h_.options.kill_wait;
  while (h_.now < until) {
    h_.Settle();
    EXPECT_FALSE(h_.cluster.Pod("a-0")->deleting);
    h_.cluster.suspended["a"] = false;
    h_.now += h_.options.node_check_interval;
  }
  EXPECT_THAT(Describe(h_.Batch()), Contains("delete a-0 n0"));
}

TEST_F(StopTest, APodThatSurvivesItsKillKeepsItsSlot) {
  Run();
  h_.cluster.Delete("a-0");
  Stop(1);
  h_.Settle();
  h_.now += h_.options.kill_wait;
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("kill a-0 n0"));
  h_.planner->Answer({.call = calls[0], .pod = {}, .message = {}});
  EXPECT_THAT(Asked(3, Call::Kind::kKill), Not(Contains("kill a-0 n0")));
  EXPECT_THAT(h_.Said("job_stopped"), IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::binder
