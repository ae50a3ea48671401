#include "tools/fluxqueue/load/load_tracker.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fluxqueue::load {
namespace {

constexpr int64_t kNoon = 1769860800000;  // 2026-01-31T12:00:00Z

Plan TwoJobs() {
  trace::Trace trace;
  trace.jobs = {{"a", 0, 1, 1, {{"cpu", 1000}}, {}}, {"b", 0, 1, 1, {{"cpu", 1000}}, {}}};
  return MakePlan(trace, ProcessorNodes("p", 2), 1);
}

std::string Job(const std::string& name, const std::string& status) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{}},"status":{{{}}}}})", name, status);
}

const char kComplete[] = R"("succeeded":1,"conditions":[{"type":"Complete","status":"True"}])";
const char kFailed[] = R"("failed":7,"conditions":[{"type":"Failed","status":"True",
    "reason":"BackoffLimitExceeded","message":"too often"}])";

std::string FluxJob(const std::string& name,
                    const std::string& state,
                    const std::string& transitions) {
  return fmt::format(
      R"({{"spec":{{"workload":{{"kind":"Job","name":"{}"}}}},
          "status":{{"state":"{}","reason":"Why","message":"so","transitions":[{}]}}}})",
      name,
      state,
      transitions);
}

std::string At(const std::string& state, const std::string& time) {
  return fmt::format(R"({{"state":"{}","time":"2026-01-31T12:00:{}Z"}})", state, time);
}

class LoadTrackerTest : public ::testing::Test {
 protected:
  const JobRecord& record(size_t i) const { return tracker_.records()[i]; }

  const Plan plan_ = TwoJobs();
  LoadTracker tracker_{plan_, /*managed=*/true};
};

TEST_F(LoadTrackerTest, TimesComeFromTheFluxJobAndTheEndFromTheJob) {
  tracker_.Submitted(0, kNoon);
  ASSERT_TRUE(
      tracker_
          .SawFluxJob(FluxJob("a",
                              "Running",
                              At("Pending", "00.100") + "," + At("Allocated", "00.200") + "," +
                                  At("Bound", "00.300") + "," + At("Running", "01.000")))
          .ok());
  EXPECT_EQ(record(0).allocated_ms, kNoon + 200);
  EXPECT_EQ(record(0).bound_ms, kNoon + 300);
  EXPECT_EQ(record(0).started_ms, kNoon + 1000);
  EXPECT_EQ(tracker_.counts().running, 1);
  ASSERT_TRUE(tracker_.SawJob(Job("a", kComplete), kNoon + 2500).ok());
  EXPECT_EQ(record(0).ending, Ending::kNotYet);  // Fluxqueue has not said so
  ASSERT_TRUE(tracker_.SawFluxJob(FluxJob("a", "Succeeded", At("Succeeded", "02.700"))).ok());
  EXPECT_EQ(record(0).ending, Ending::kSucceeded);
  EXPECT_EQ(record(0).ended_ms, kNoon + 2500);
  EXPECT_EQ(tracker_.counts().running, 0);
  EXPECT_FALSE(tracker_.Finished());
}

TEST_F(LoadTrackerTest, SuccessNeedsTheJobsWordToo) {
  tracker_.Submitted(0, kNoon);
  ASSERT_TRUE(tracker_.SawFluxJob(FluxJob("a", "Succeeded", At("Succeeded", "02.700"))).ok());
  EXPECT_EQ(record(0).ending, Ending::kNotYet);
  ASSERT_TRUE(tracker_.SawJob(Job("a", kComplete), kNoon + 3000).ok());
  EXPECT_EQ(record(0).ending, Ending::kSucceeded);
  EXPECT_EQ(record(0).ended_ms, kNoon + 2700);
}

TEST_F(LoadTrackerTest, ARejectedOneEndsWithoutItsJob) {
  tracker_.Submitted(0, kNoon);
  ASSERT_TRUE(tracker_.SawFluxJob(FluxJob("a", "Rejected", At("Rejected", "06.000"))).ok());
  EXPECT_EQ(record(0).ending, Ending::kRejected);
  EXPECT_EQ(record(0).message, "so");
  EXPECT_EQ(tracker_.counts().rejected, 1);
}

TEST_F(LoadTrackerTest, OneThatWaitsForOtherNodesHasItsAnswer) {
  tracker_.Submitted(0, kNoon);
  std::string waits = FluxJob("a", "Pending", At("Pending", "01.000"));
  const std::string other = "\"reason\":\"";
  ASSERT_TRUE(tracker_.SawFluxJob(waits).ok());
  EXPECT_EQ(record(0).ending, Ending::kNotYet);
  const size_t at = waits.find(other) + other.size();
  waits.replace(at, waits.find('"', at) - at, "Unsatisfiable");
  ASSERT_TRUE(tracker_.SawFluxJob(waits).ok());
  EXPECT_EQ(record(0).ending, Ending::kRejected);
}

TEST_F(LoadTrackerTest, ARequeuedOneWaitedForItsFirstStart) {
  tracker_.Submitted(0, kNoon);
  ASSERT_TRUE(
      tracker_
          .SawFluxJob(FluxJob("a",
                              "Running",
                              At("Allocated", "01.000") + "," + At("Running", "02.000") + "," +
                                  At("Stopping", "03.000") + "," + At("Pending", "04.000") + "," +
                                  At("Allocated", "05.000") + "," + At("Running", "06.000")))
          .ok());
  EXPECT_EQ(record(0).allocated_ms, kNoon + 1000);
  EXPECT_EQ(record(0).started_ms, kNoon + 2000);
  EXPECT_EQ(tracker_.counts().running, 1);
}

TEST_F(LoadTrackerTest, OthersAreIgnoredAndEndsAreFinal) {
  ASSERT_TRUE(tracker_.SawJob(Job("stranger", kComplete), kNoon).ok());
  ASSERT_TRUE(tracker_
                  .SawFluxJob(R"({"spec":{"workload":{"kind":"Pod","name":"a"}},
      "status":{"state":"Failed"}})")
                  .ok());
  EXPECT_EQ(tracker_.counts().ended, 0);
  tracker_.Refused(0, "no such queue", kNoon);
  tracker_.SawJobGone("a", kNoon);
  tracker_.SawJobGone("b", kNoon);
  tracker_.SawJobGone("b", kNoon);
  EXPECT_EQ(record(0).ending, Ending::kRefused);
  EXPECT_EQ(record(1).ending, Ending::kCancelled);
  EXPECT_EQ(tracker_.counts().ended, 2);
  EXPECT_TRUE(tracker_.Finished());
}

TEST_F(LoadTrackerTest, WhatCannotBeReadIsAnError) {
  EXPECT_FALSE(tracker_.SawFluxJob("[]").ok());
  EXPECT_FALSE(tracker_.SawJob("{", kNoon).ok());
}

TEST(UnmanagedLoadTrackerTest, TheJobAloneSaysIt) {
  const Plan plan = TwoJobs();
  LoadTracker tracker(plan, /*managed=*/false);
  tracker.Submitted(0, kNoon);
  tracker.Submitted(1, kNoon);
  ASSERT_TRUE(tracker.SawJob(Job("a", R"("active":1,"ready":0)"), kNoon + 100).ok());
  EXPECT_EQ(tracker.counts().running, 0);
  ASSERT_TRUE(tracker.SawJob(Job("a", R"("active":1,"ready":1)"), kNoon + 200).ok());
  EXPECT_EQ(tracker.records()[0].started_ms, kNoon + 200);
  ASSERT_TRUE(tracker.SawJob(Job("a", kComplete), kNoon + 900).ok());
  ASSERT_TRUE(tracker.SawJob(Job("b", kFailed), kNoon + 900).ok());
  EXPECT_EQ(tracker.records()[0].ending, Ending::kSucceeded);
  EXPECT_EQ(tracker.records()[1].ending, Ending::kFailed);
  EXPECT_EQ(tracker.records()[1].message, "too often");
  EXPECT_TRUE(tracker.Finished());
}

}  // namespace
}  // namespace fluxqueue::load
