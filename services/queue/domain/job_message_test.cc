#include "services/queue/domain/job_message.h"

#include <limits>

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "libs/model/job_state.h"

namespace fluxqueue::queue {
namespace {

TEST(JobMessageTest, SaysAllThatTheFactSays) {
  events::v1::JobFact fact;
  fact.set_job_id("id");
  fact.set_pool("main");
  fact.set_queue("batch");
  fact.mutable_workload()->set_kind("Claim");
  fact.mutable_workload()->set_name("mine");
  fact.mutable_workload()->set_owner("ann");
  fact.set_state(events::v1::JOB_STATE_RUNNING);
  fact.set_version(3);
  fact.set_attempt(2);
  fact.set_slots(4);
  fact.set_priority(-5);
  fact.set_duration_ms(1500);
  fact.set_created_ms(1'000'000'001);
  fact.set_time_ms(1'000'000'002);
  v1::Job job = ToMessage(fact);
  EXPECT_EQ(job.kind(), "Claim");
  EXPECT_EQ(job.owner(), "ann");
  EXPECT_EQ(job.state(), v1::STATE_RUNNING);
  EXPECT_EQ(job.priority(), -5);
  EXPECT_EQ(job.duration().seconds(), 1);
  EXPECT_EQ(job.duration().nanos(), 500'000'000);
  EXPECT_EQ(job.created().seconds(), 1'000'000);
  EXPECT_EQ(job.updated().nanos(), 2'000'000);
  EXPECT_FALSE(job.has_start());
  fact.set_start_ms(5000);
  EXPECT_EQ(ToMessage(fact).start().seconds(), 5);
}

TEST(JobMessageTest, EveryStateHasItsName) {
  for (int i = 1; i < model::kJobStates; ++i) {
    std::string name = v1::State_Name(static_cast<v1::State>(i)).substr(6);
    std::string known(model::Name(static_cast<model::JobState>(i)));
    for (char& letter : known) letter = static_cast<char>(std::toupper(letter));
    EXPECT_EQ(name, known);
  }
}

// A line of jobs that say they last a century ends after the year 9999, which protobuf aborts on.
TEST(JobMessageTest, BoundsTimesWhereTheyAreMade) {
  events::v1::JobFact fact;
  for (const int64_t ms : {int64_t{400'000'000'000'000},
                           std::numeric_limits<int64_t>::max(),
                           int64_t{-1},
                           std::numeric_limits<int64_t>::min()}) {
    fact.set_start_ms(ms);
    fact.set_created_ms(ms);
    fact.set_duration_ms(ms);
    std::string text;
    const auto written = google::protobuf::util::MessageToJsonString(ToMessage(fact), &text);
    EXPECT_TRUE(written.ok()) << written.ToString();
  }
}

TEST(JobMessageTest, DecidedIsWhatItsCycleHasAnswered) {
  const auto decided = [](events::v1::JobState state, const char* reason) {
    events::v1::JobFact fact;
    fact.set_state(state);
    fact.set_reason(reason);
    return IsDecided(fact);
  };
  EXPECT_FALSE(decided(events::v1::JOB_STATE_PENDING, "Queued"));
  EXPECT_FALSE(decided(events::v1::JOB_STATE_ALLOCATED, ""));  // runs in a moment
  EXPECT_TRUE(decided(events::v1::JOB_STATE_RUNNING, ""));
  for (const char* reason : {"Busy", "Reserved", "Unsatisfiable", "Held"}) {
    EXPECT_TRUE(decided(events::v1::JOB_STATE_PENDING, reason)) << reason;
  }
  EXPECT_TRUE(decided(events::v1::JOB_STATE_SUBMITTED, "NoQueue"));
  EXPECT_TRUE(decided(events::v1::JOB_STATE_REJECTED, "Invalid"));
  EXPECT_TRUE(decided(events::v1::JOB_STATE_CANCELLED, "Cancelled"));
}

}  // namespace
}  // namespace fluxqueue::queue
