// Pods of which another object says of how many their gang is, and Jobs whose pods are of a gang.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "services/admission/domain/objects_for_test.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Review Asks(const json& object) {
  Review review = ReviewOf(object);
  review.user = "ann";
  return review;
}

Verdict DecideOn(const Review& review) {
  return Decide(review, SmallCluster(), {});
}

json PodOfGroup() {
  json pod = PodJson("w-0");
  pod["metadata"]["labels"] = {{"scheduling.x-k8s.io/pod-group", "train"}};
  return pod;
}

// A Job as JobSet makes it.
json JobOfSet() {
  json job = JobJson("set-workers-0", 2);
  job["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                                                     {"kind", "JobSet"},
                                                     {"name", "set"},
                                                     {"uid", "uid-set"},
                                                     {"controller", true}}});
  job["spec"]["template"]["metadata"]["labels"] = {{"jobset.sigs.k8s.io/jobset-name", "set"},
                                                   {"jobset.sigs.k8s.io/restart-attempt", "0"}};
  return job;
}

std::string RecordOf(const json& meta) {
  return meta.value("annotations", json::object()).value("fluxqueue.io/group", "none");
}

TEST(WebhookGroupsTest, TheObjectThatHasTheSizeIsLookedUp) {
  const Verdict first = DecideOn(Asks(PodOfGroup()));
  EXPECT_EQ(first.kind, Verdict::Kind::kRefuse) << "nothing passes without the look";
  ASSERT_TRUE(first.absent.has_value());
  EXPECT_EQ(first.absent->kind, Absent::Kind::kGroup);
  EXPECT_EQ(first.absent->name, "train");
  EXPECT_EQ(first.absent->group->plural, "podgroups");
}

TEST(WebhookGroupsTest, ThePodIsOfAGroupOfThatSize) {
  Review review = Asks(PodOfGroup());
  review.group_size = 5U;
  const Verdict verdict = DecideOn(review);
  ASSERT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
  EXPECT_EQ(RecordOf(Patched(PodOfGroup(), verdict)["metadata"]), "train/5");
}

TEST(WebhookGroupsTest, APodWhoseObjectIsNoGangIsAJobOfItsOwn) {
  for (const uint32_t size : {0U, 1U}) {
    Review review = Asks(PodOfGroup());
    review.group_size = size;
    const Verdict verdict = DecideOn(review);
    ASSERT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
    EXPECT_EQ(RecordOf(Patched(PodOfGroup(), verdict)["metadata"]), "none") << size;
  }
}

TEST(WebhookGroupsTest, WhatTheLookFoundWrongIsSaid) {
  Review review = Asks(PodOfGroup());
  review.group_size = InvalidArgument("podgroups 'train': it is not there: make it first");
  const Verdict verdict = DecideOn(review);
  EXPECT_EQ(verdict.kind, Verdict::Kind::kRefuse);
  EXPECT_THAT(verdict.message, HasSubstr("make it first"));
  EXPECT_FALSE(verdict.absent.has_value()) << "it was looked up";
}

// Who makes them is said by the account that does, and by no owner that a pod names.
TEST(WebhookGroupsTest, PodsThatTheStatefulSetsControllerMakesAreOneGangAtFirst) {
  json pod = PodJson("db-0");
  pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "apps/v1"},
                                                     {"kind", "StatefulSet"},
                                                     {"name", "db"},
                                                     {"uid", "uid-db"},
                                                     {"controller", true}}});
  Review review = Asks(pod);
  review.user = "system:serviceaccount:kube-system:statefulset-controller";
  const Verdict unseen = DecideOn(review);
  EXPECT_EQ(unseen.kind, Verdict::Kind::kHold) << "without the look it is a job of its own";
  ASSERT_TRUE(unseen.absent.has_value());
  EXPECT_EQ(unseen.absent->group->plural, "statefulsets");
  review.user = "ann";
  review.group_size = 3U;
  const auto record = [&] {
    const Verdict verdict = DecideOn(review);
    return verdict.kind == Verdict::Kind::kHold
               ? RecordOf(Patched(json::parse(review.object), verdict)["metadata"])
               : verdict.message;
  };
  EXPECT_EQ(record(), "none");
  review.user = "system:serviceaccount:kube-system:statefulset-controller";
  EXPECT_EQ(record(), "db/3^");
  pod["metadata"]["annotations"] = {{"fluxqueue.io/growth", "each"}};
  review.object = pod.dump();
  EXPECT_EQ(record(), "none");
  pod["metadata"]["annotations"] = {{"fluxqueue.io/growth", "slowly"}};
  review.object = pod.dump();
  EXPECT_EQ(record(), "fluxqueue.io/growth: \"slowly\": allowed are each and all");
}

TEST(WebhookGroupsTest, AJobHasNoGrowth) {
  json job = JobJson();
  job["spec"]["template"]["metadata"]["labels"] = {{"fluxqueue.io/growth", "all"}};
  const Verdict verdict = DecideOn(Asks(job));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kRefuse);
  EXPECT_THAT(verdict.message, HasSubstr("a Job is a gang, and grows by fluxqueue.io/min-slots"));
}

TEST(WebhookGroupsTest, ATemplateOfPodsIsNotLookedUp) {
  json deployment = json::parse(R"({"apiVersion": "apps/v1", "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "work"}, "spec": {"replicas": 2}})");
  deployment["spec"]["template"] = PodOfGroup();
  deployment["spec"]["template"]["metadata"].erase("name");
  Review review = Asks(deployment);
  review.group = "apps";
  review.resource = "deployments";
  const Verdict verdict = DecideOn(review);
  EXPECT_FALSE(verdict.absent.has_value());
  EXPECT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
}

TEST(WebhookGroupsTest, WhatCannotBeTheNameOfAnObjectIsNotLookedUp) {
  json pod = PodJson();
  pod["metadata"]["annotations"] = {{"scheduling.k8s.io/group-name", std::string(200'000, 'x')}};
  const Verdict verdict = DecideOn(Asks(pod));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kRefuse);
  EXPECT_THAT(verdict.message, HasSubstr("not the name of an object"));
  EXPECT_LE(verdict.message.size(), 1024U);
  EXPECT_FALSE(verdict.absent.has_value());
}

TEST(WebhookGroupsTest, ABadKeyInATemplateOfJobsIsRefusedAtOnce) {
  json cron = json::parse(R"({"apiVersion": "batch/v1", "kind": "CronJob",
    "metadata": {"name": "c", "namespace": "work"}, "spec": {"schedule": "* * * * *"}})");
  cron["spec"]["jobTemplate"] = {{"spec", JobJson()["spec"]}};
  cron["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"] = {
      {"fluxqueue.io/group-name", "train"}};
  Review review = Asks(cron);
  review.resource = "cronjobs";
  const Verdict verdict = DecideOn(review);
  EXPECT_EQ(verdict.kind, Verdict::Kind::kRefuse);
  EXPECT_THAT(verdict.message, HasSubstr("fluxqueue.io/group-size"));
}

TEST(WebhookGroupsTest, TheJobsOfASetAreHeldByTheirPodsWhichAreOneGang) {
  EXPECT_TRUE(DecideOn(Asks(JobOfSet())).absent.has_value()) << "of how many pods is it?";
  Review review = Asks(JobOfSet());
  review.group_size = 40U;
  const Verdict verdict = DecideOn(review);
  ASSERT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
  const json job = Patched(JobOfSet(), verdict);
  EXPECT_EQ(RecordOf(job["metadata"]), "set-0/40+");
  EXPECT_EQ(job["spec"]["suspend"], false);
  const json& pods = job["spec"]["template"];
  EXPECT_EQ(RecordOf(pods["metadata"]), "set-0/40+");
  EXPECT_EQ(pods["metadata"]["labels"].value("fluxqueue.io/held", ""), "direct");
  EXPECT_FALSE(pods["metadata"]["annotations"].contains("fluxqueue.io/user"))
      << "whose they are, their Job says: a template may be written past the webhook";
  EXPECT_EQ(pods["spec"]["schedulerName"], "fluxqueue");
}

TEST(WebhookGroupsTest, ThePodsOfAJobOfASetStandInTheQueueOfTheirNamespace) {
  ClusterFacts facts = SmallCluster();
  facts.Upsert(kubernetes::Namespace{
      "work", {{"fluxqueue.io/managed", "true"}, {"fluxqueue.io/queue", "night"}}});
  Review review = Asks(JobOfSet());
  review.group_size = 40U;
  const json job = Patched(JobOfSet(), Decide(review, facts, {}));
  EXPECT_EQ(job["metadata"]["annotations"].value("fluxqueue.io/queue", ""), "night");
  EXPECT_EQ(job["spec"]["template"]["metadata"]["annotations"].value("fluxqueue.io/queue", ""),
            "night");
}

TEST(WebhookGroupsTest, ALargeJobOfAGroupIsNotSuspendedEither) {
  json job = JobJson("big", 100);
  job["spec"]["activeDeadlineSeconds"] = 60;
  job["spec"]["template"]["metadata"]["labels"] = {{"fluxqueue.io/group-name", "train"},
                                                   {"fluxqueue.io/group-size", "101"}};
  const Verdict verdict = DecideOn(Asks(job));
  ASSERT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
  const json held = Patched(job, verdict);
  EXPECT_EQ(held["spec"]["suspend"], false) << "its pods would never be there";
  EXPECT_FALSE(held["metadata"]["annotations"].contains("fluxqueue.io/suspended-by"));
  EXPECT_THAT(verdict.warnings, Contains(HasSubstr("activeDeadlineSeconds")));
}

TEST(WebhookGroupsTest, WhatTheJobAsksForItsPodsAsk) {
  json job = JobOfSet();
  job["metadata"]["labels"] = {{"fluxqueue.io/queue", "night"}};
  job["metadata"]["annotations"] = {{"fluxqueue.io/duration", "10m"}};
  Review review = Asks(job);
  review.group_size = 4U;
  const Verdict verdict = DecideOn(review);
  ASSERT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
  const json pods = Patched(job, verdict)["spec"]["template"]["metadata"]["annotations"];
  EXPECT_EQ(pods.value("fluxqueue.io/queue", ""), "night");
  EXPECT_EQ(pods.value("fluxqueue.io/duration", ""), "10m");
}

TEST(WebhookGroupsTest, AForgedRecordInATemplateIsTakenOut) {
  json job = JobJson();
  job["spec"]["template"]["metadata"]["annotations"] = {{"fluxqueue.io/group", "theirs/2"}};
  const Verdict verdict = DecideOn(Asks(job));
  ASSERT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
  const json held = Patched(job, verdict);
  EXPECT_EQ(RecordOf(held["spec"]["template"]["metadata"]), "none");
  EXPECT_EQ(RecordOf(held["metadata"]), "none");
}

TEST(WebhookGroupsTest, AJobOfAGroupHasNoSizeOfItsOwn) {
  json job = JobJson();
  job["spec"]["template"]["metadata"]["labels"] = {{"fluxqueue.io/group-name", "train"},
                                                   {"fluxqueue.io/group-size", "8"}};
  job["metadata"]["annotations"] = {{"fluxqueue.io/min-slots", "1"}};
  const Verdict verdict = DecideOn(Asks(job));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kRefuse);
  EXPECT_THAT(verdict.message, AllOf(HasSubstr("fluxqueue.io/min-slots"), HasSubstr("a group")));
}

TEST(WebhookGroupsTest, AnElasticJobOfASetIsAJobOfItsOwn) {
  json job = JobOfSet();
  job["metadata"]["annotations"] = {{"fluxqueue.io/min-slots", "1"}};
  Review review = Asks(job);
  review.group_size = 4U;
  const Verdict verdict = DecideOn(review);
  ASSERT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
  EXPECT_EQ(RecordOf(Patched(job, verdict)["metadata"]), "none");
}

TEST(WebhookGroupsTest, ASetWhoseJobsStartOneAfterTheOtherHasJobsOfTheirOwn) {
  Review review = Asks(JobOfSet());
  review.group_size = 0U;
  const Verdict verdict = DecideOn(review);
  ASSERT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
  EXPECT_EQ(RecordOf(Patched(JobOfSet(), verdict)["spec"]["template"]["metadata"]), "none");
  EXPECT_THAT(verdict.warnings, IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::admission
