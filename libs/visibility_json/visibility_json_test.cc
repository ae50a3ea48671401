#include "libs/visibility_json/visibility_json.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::visibility {
namespace {

using google::protobuf::util::MessageDifferencer;

queue::v1::GetJobResponse Answer() {
  queue::v1::GetJobResponse answer;
  queue::v1::Job* job = answer.mutable_job();
  job->set_id("8d4");
  job->set_kind("Job");
  job->set_namespace_("team");
  job->set_name("hello");
  job->set_state(queue::v1::STATE_RUNNING);
  job->set_priority(-5);
  answer.add_history()->set_state(queue::v1::STATE_PENDING);
  return answer;
}

TEST(VisibilityJson, ShowsStatesAsPeopleKnowThem) {
  const nlohmann::json value = ToJson(Answer());
  EXPECT_EQ(value["job"]["state"], "Running");
  EXPECT_EQ(value["history"][0]["state"], "Pending");
}

TEST(VisibilityJson, IsReadAsItWasWritten) {
  queue::v1::GetJobResponse read;
  ASSERT_TRUE(FromJson(ToJson(Answer()), &read).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(read, Answer()));
}

TEST(VisibilityJson, LeavesOutWhatItDoesNotKnow) {
  nlohmann::json value = ToJson(Answer());
  value["later"] = 1;
  queue::v1::GetJobResponse read;
  ASSERT_TRUE(FromJson(value, &read).ok());
  value["job"]["priority"] = "high";
  EXPECT_EQ(FromJson(value, &read).code(), absl::StatusCode::kInvalidArgument);
}

TEST(VisibilityJson, NamesJobsAsTheirFluxJobs) {
  queue::v1::Job job = Answer().job();
  EXPECT_EQ(ObjectName(job), "job-hello");
  job.clear_namespace_();
  EXPECT_EQ(ObjectName(job), "8d4");
}

}  // namespace
}  // namespace fluxqueue::visibility
