// Pods that another has changed, or bound, when they are to be started.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using ConflictsTest = BindPlannerTest;

TEST_F(ConflictsTest, AnotherSchedulersNodeIsAConflict) {
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/true);
  Allocate(1);
  h_.Settle();
  h_.cluster.Schedule("a-0", "n7");
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 Conflict"));
}

TEST_F(ConflictsTest, ABindingThatConflictsIsRepeatedWithTheNewerVersion) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  const std::vector<Call> calls = h_.Batch();
  h_.cluster.Touch(*h_.cluster.Pod("a-0"));  // somebody labels it
  h_.cluster.events.clear();                 // and the watch is late
  h_.Execute(calls);
  const std::vector<Call> again = h_.Batch();
  ASSERT_THAT(Describe(again), ElementsAre("bind a-0 n0"));
  EXPECT_EQ(again[0].resource_version, h_.cluster.Pod("a-0")->resource_version);
}

// When the API server is there again, the first thing it says may be that the pod has changed.
TEST_F(ConflictsTest, AConflictAfterAnOutageFailsNoJob) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  for (int i = 0; i < 20; ++i) {
    const std::vector<Call> calls = h_.Batch();
    ASSERT_THAT(Describe(calls), ElementsAre("bind a-0 n0"));
    h_.planner->Answer(
        {.call = calls[0], .outcome = CallResult::Outcome::kRetry, .pod = {}, .message = "away"});
    EXPECT_THAT(h_.Batch(), IsEmpty());
    h_.now += h_.options.retry_max;
  }
  const std::vector<Call> calls = h_.Batch();
  h_.cluster.Touch(*h_.cluster.Pod("a-0"));
  h_.cluster.events.clear();
  h_.Execute(calls);
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(ConflictsTest, ABindingThatConflictsForEverFails) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  for (int i = 0; i < 20 && h_.Said("bind_failed").empty(); ++i) {
    const std::vector<Call> calls = h_.Batch();
    h_.cluster.Touch(*h_.cluster.Pod("a-0"));
    h_.cluster.events.clear();
    h_.Execute(calls);
    h_.now += h_.options.retry_max;
  }
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 Conflict"));
}

}  // namespace
}  // namespace fluxqueue::binder
