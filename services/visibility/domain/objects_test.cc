#include "services/visibility/domain/objects.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "services/visibility/domain/discovery.h"

namespace fluxqueue::visibility {
namespace {

using nlohmann::json;

constexpr int64_t kNowMs = 1'000'000'000;

queue::v1::Job Hello() {
  queue::v1::Job job;
  job.set_id("8d4");
  job.set_kind("Job");
  job.set_namespace_("team");
  job.set_name("hello");
  job.set_queue("default");
  job.set_state(queue::v1::STATE_PENDING);
  job.set_slots(4);
  job.mutable_created()->set_seconds(kNowMs / 1000 - 300);
  return job;
}

TEST(Objects, AJobIsAnObjectOfItsNamespace) {
  queue::v1::GetJobResponse answer;
  *answer.mutable_job() = Hello();
  answer.add_history()->set_reason("Busy");
  const json object = json::parse(JobText(answer, false, kNowMs));
  EXPECT_EQ(object["kind"], "Job");
  EXPECT_EQ(object["metadata"]["name"], "job-hello");
  EXPECT_EQ(object["metadata"]["namespace"], "team");
  EXPECT_EQ(object["metadata"]["creationTimestamp"], "1970-01-12T13:41:40Z");
  EXPECT_EQ(object["status"]["state"], "Pending");
  EXPECT_EQ(object["history"][0]["reason"], "Busy");
}

TEST(Objects, AListSaysHowItGoesOn) {
  queue::v1::ListJobsResponse answer;
  *answer.add_jobs() = Hello();
  answer.set_next_page_token("next");
  const json list = json::parse(JobListText(answer, false, kNowMs));
  EXPECT_EQ(list["kind"], "JobList");
  EXPECT_EQ(list["metadata"]["continue"], "next");
  EXPECT_EQ(list["items"][0]["metadata"]["uid"], "8d4");
}

TEST(Objects, ATableHasACellForEachColumn) {
  queue::v1::ListJobsResponse jobs;
  *jobs.add_jobs() = Hello();
  queue::v1::ListQueuesResponse queues;
  queue::v1::QueueInfo* queue = queues.add_queues();
  queue->set_queue("default");
  queue::v1::QueueInfo::Count* count = queue->add_live();
  count->set_state(queue::v1::STATE_RUNNING);
  count->set_jobs(3);
  for (const std::string& text : {JobListText(jobs, true, kNowMs), QueueListText(queues, true)}) {
    const json table = json::parse(text);
    EXPECT_EQ(table["kind"], "Table");
    EXPECT_EQ(table["rows"][0]["cells"].size(), table["columnDefinitions"].size());
  }
  const json row = json::parse(JobListText(jobs, true, kNowMs))["rows"][0];
  EXPECT_EQ(row["cells"][0], "job-hello");
  EXPECT_EQ(row["cells"][6], "5m");
  EXPECT_EQ(json::parse(QueueListText(queues, true))["rows"][0]["cells"][4], 3);
}

TEST(Objects, ATableIsWantedByTheFirstThingAccepted) {
  EXPECT_TRUE(WantsTable("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"));
  EXPECT_FALSE(WantsTable("application/json,application/json;as=Table;v=v1;g=meta.k8s.io"));
  EXPECT_FALSE(WantsTable(""));
}

TEST(Objects, FailuresAreThoseOfKubernetes) {
  const Failure away = FailureOf(Unavailable("the queue is away"));
  EXPECT_EQ(away.code, 503);
  EXPECT_EQ(json::parse(away.text)["details"]["retryAfterSeconds"], 1);
  EXPECT_EQ(FailureOf(MakeStatus(absl::StatusCode::kNotFound, "no")).code, 404);
  EXPECT_EQ(FailureOf(MakeStatus(absl::StatusCode::kPermissionDenied, "no")).code, 403);
  EXPECT_EQ(json::parse(FailureOf(InvalidArgument("bad \x01")).text)["reason"], "BadRequest");
}

TEST(Discovery, SaysWhatThereIs) {
  const json resources = json::parse(*DiscoveryDocument("/apis/visibility.fluxqueue.io/v1alpha1"));
  EXPECT_EQ(resources["groupVersion"], "visibility.fluxqueue.io/v1alpha1");
  EXPECT_EQ(resources["resources"][0]["name"], "jobs");
  EXPECT_TRUE(DiscoveryDocument("/apis").has_value());
  EXPECT_TRUE(DiscoveryDocument("/openapi/v3").has_value());
  EXPECT_FALSE(DiscoveryDocument("/apis/visibility.fluxqueue.io/v2").has_value());
}

// What a namespace controller would delete has the verb delete: nothing here does, so that a
// namespace ends without us.
TEST(Discovery, NothingIsDeletedWithANamespace) {
  const json document = json::parse(*DiscoveryDocument("/apis/visibility.fluxqueue.io/v1alpha1"));
  for (const json& resource : document["resources"]) {
    for (const json& verb : resource["verbs"]) EXPECT_NE(verb, "delete");
  }
}

}  // namespace
}  // namespace fluxqueue::visibility
