// Whose jobs a FluxQueue takes, as the webhook says it.
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/objects_for_test.h"
#include "services/admission/domain/webhook.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Kind = Verdict::Kind;

json InQueue(const char* queue) {
  json job = JobJson();
  job["metadata"]["annotations"] = {{"fluxqueue.io/queue", queue}};
  return job;
}

TEST(QueueAccessTest, AQueueTakesJobsOfTheNamespacesThatItSelects) {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "lab";
  queue.namespace_selector = kubernetes::LabelSelector{.labels = {{"team", "lab"}}};
  facts.Upsert(queue);
  queue = {};
  queue.meta.name = "below";
  queue.parent = "lab";
  facts.Upsert(queue);
  const Verdict verdict = Judge(InQueue("below"), facts);
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_THAT(verdict.message,
              HasSubstr("FluxQueue 'lab' takes jobs of namespaces with the labels team=lab"));
  EXPECT_FALSE(verdict.absent);
  facts.Upsert(kubernetes::Namespace{"work", {{"fluxqueue.io/managed", "true"}, {"team", "lab"}}});
  EXPECT_EQ(Judge(InQueue("below"), facts).kind, Kind::kHold);
  // Its labels have not come yet: they are looked up.
  facts.RemoveNamespace("work");
  EXPECT_EQ(Judge(InQueue("below"), facts).absent, (Absent{Absent::Kind::kNamespace, "work"}));
}

TEST(QueueAccessTest, AQueueTakesJobsOfThoseWhoMaySubmit) {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "lab";
  queue.subjects = {
      {.kind = "Group", .name = "physics", .verbs = {"view", "submit"}},
      {.kind = "ServiceAccount", .name = "ci", .space = "build", .verbs = {"submit"}},
      {.kind = "User", .name = "eve", .verbs = {"view"}},
  };
  facts.Upsert(queue);
  Review review = ReviewOf(InQueue("lab"));
  review.user = "eve";
  EXPECT_THAT(
      Decide(review, facts, {}).message,
      HasSubstr("FluxQueue 'lab' says who may submit (spec.subjects), and user 'eve' is not "
                "among them"));
  review.groups = {"physics"};
  const Verdict held = Decide(review, facts, {});
  ASSERT_EQ(held.kind, Kind::kHold) << held.message;
  EXPECT_EQ(Patched(InQueue("lab"), held)["metadata"]["annotations"]["fluxqueue.io/admitted-to"],
            "lab");
  review.groups = {};
  review.user = "system:serviceaccount:build:ci";
  EXPECT_EQ(Decide(review, facts, {}).kind, Kind::kHold);
  // The groups of a controller are not those of whom it makes the Job for.
  json made = InQueue("lab");
  made["metadata"]["ownerReferences"] =
      json::array({{{"kind", "CronJob"}, {"name", "other"}, {"uid", "u"}, {"controller", true}}});
  review = ReviewOf(made);
  review.user = "system:serviceaccount:kube-system:cronjob-controller";
  review.groups = {"physics"};
  EXPECT_EQ(Decide(review, facts, {}).kind, Kind::kRefuse);
  queue.subjects.push_back({.kind = "User", .name = "namespace:work", .verbs = {"submit"}});
  facts.Upsert(queue);
  EXPECT_EQ(Decide(review, facts, {}).kind, Kind::kHold);
}

TEST(QueueAccessTest, WhereAQueueIsForAllNothingSaysWhoMaySubmit) {
  json job = InQueue("default");
  job["metadata"]["annotations"]["fluxqueue.io/admitted-to"] = "lab";
  const Verdict held = Judge(job);
  ASSERT_EQ(held.kind, Kind::kHold) << held.message;
  EXPECT_FALSE(Patched(job, held)["metadata"]["annotations"].contains("fluxqueue.io/admitted-to"));
}

TEST(QueueAccessTest, ANamespaceHasAQuotaInAQueueAndThoseBelow) {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "lab";
  queue.namespace_quota = {.jobs = 3, .jobspec_bytes = 2000};
  facts.Upsert(queue);
  queue = {};
  queue.meta.name = "below";
  queue.parent = "lab";
  facts.Upsert(queue);
  facts.SetUsage({{{"work", "lab"}, {.jobs = 1, .jobspec_bytes = 400}},
                  {{"work", "below"}, {.jobs = 1, .jobspec_bytes = 400}},
                  {{"work", "night"}, {.jobs = 9, .jobspec_bytes = 9000}},
                  {{"other", "lab"}, {.jobs = 9, .jobspec_bytes = 9000}}});
  EXPECT_EQ(Judge(InQueue("below"), facts).kind, Kind::kHold);
  facts.SetUsage({{{"work", "lab"}, {.jobs = 2, .jobspec_bytes = 400}},
                  {{"work", "below"}, {.jobs = 1, .jobspec_bytes = 400}}});
  EXPECT_THAT(Judge(InQueue("below"), facts).message,
              HasSubstr("namespace 'work' has 3 jobs in FluxQueue 'lab' that have not ended, and "
                        "may have 3 (spec.namespaceQuota.jobs)"));
  facts.SetUsage({{{"work", "below"}, {.jobs = 1, .jobspec_bytes = 1900}}});
  EXPECT_THAT(Judge(InQueue("below"), facts).message,
              HasSubstr("and may have 2000 (spec.namespaceQuota.jobspecBytes)"));
}

}  // namespace
}  // namespace fluxqueue::admission
