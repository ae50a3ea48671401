// What of Deployments and the like the webhook stamps, and whom what comes of them is charged to.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/objects_for_test.h"
#include "services/admission/domain/webhook.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Verdict::Kind;

constexpr const char* kUser = "fluxqueue.io/user";
constexpr const char* kAdmittedTo = "fluxqueue.io/admitted-to";

// An object with the pod's or the Job's metadata and spec as its template.
json RootJson(const char* kind, json made) {
  json metadata = made["metadata"];
  for (const char* key : {"name", "namespace", "uid", "resourceVersion"}) metadata.erase(key);
  const json inner = {{"metadata", metadata}, {"spec", made["spec"]}};
  return {{"kind", kind},
          {"metadata", {{"name", "r"}, {"namespace", "work"}}},
          {"spec", {{std::string(kind) == "CronJob" ? "jobTemplate" : "template", inner}}}};
}

Verdict JudgeRoot(const json& root,
                  const std::string& user,
                  const std::vector<std::string>& groups = {},
                  const ClusterFacts& facts = SmallCluster()) {
  Review review;
  review.uid = "review-1";
  review.operation = "CREATE";
  const std::string kind = root["kind"];
  review.group = kind == "CronJob" ? "batch" : kind == "ReplicationController" ? "" : "apps";
  review.resource = kind == "CronJob"       ? "cronjobs"
                    : kind == "Deployment"  ? "deployments"
                    : kind == "StatefulSet" ? "statefulsets"
                    : kind == "ReplicaSet"  ? "replicasets"
                                            : "replicationcontrollers";
  review.space = root["metadata"]["namespace"];
  review.object = root.dump();
  review.user = user;
  review.groups = groups;
  return Decide(review, facts, {});
}

Verdict JudgeMade(json made,
                  const char* kind,
                  const char* version,
                  const char* user,
                  const ClusterFacts& facts = SmallCluster()) {
  made["metadata"]["ownerReferences"] = json::array({{{"apiVersion", version},
                                                      {"kind", kind},
                                                      {"name", "r"},
                                                      {"uid", "u"},
                                                      {"controller", true}}});
  Review review = ReviewOf(made);
  review.user = user;
  review.group_size = 1U;
  return Decide(review, facts, {});
}

json With(json object, const char* key, const char* value) {
  object["metadata"]["annotations"][key] = value;
  return object;
}

TEST(WebhookRootsTest, TheTemplateIsStampedWithWhoMakesIt) {
  for (const char* kind : {"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"}) {
    const json root = RootJson(kind, PodJson());
    const Verdict verdict = JudgeRoot(root, "ann");
    ASSERT_EQ(verdict.kind, Kind::kHold) << kind << verdict.message;
    json want = root;
    want["spec"]["template"]["metadata"]["annotations"] = {{kUser, "ann"}};
    EXPECT_EQ(Patched(root, verdict), want);
    EXPECT_EQ(JudgeRoot(want, "ann").patch, "");
  }
  const json cron = RootJson("CronJob", JobJson());
  const json stamped = Patched(cron, JudgeRoot(cron, "ann"));
  json want = cron;
  want["spec"]["jobTemplate"]["metadata"]["annotations"] = {{kUser, "ann"}};
  EXPECT_EQ(stamped, want);
}

TEST(WebhookRootsTest, AForgedStampIsReplacedWithAWarning) {
  const json root =
      RootJson("Deployment", With(With(PodJson(), kUser, "bob"), kAdmittedTo, "secret"));
  const Verdict verdict = JudgeRoot(root, "ann");
  EXPECT_EQ(Patched(root, verdict)["spec"]["template"]["metadata"]["annotations"],
            (json{{kUser, "ann"}}));
  EXPECT_THAT(verdict.warnings,
              ElementsAre(HasSubstr("'bob' does not apply"), HasSubstr("taken out: admitted-to")));
  EXPECT_THAT(JudgeRoot(RootJson("Deployment", With(PodJson(), kUser, "ann")), "ann").warnings,
              IsEmpty());
}

TEST(WebhookRootsTest, WhatCannotBeQueuedIsRefusedToWhoMakesTheRoot) {
  const Verdict verdict =
      JudgeRoot(RootJson("Deployment", With(PodJson(), "fluxqueue.io/queue", "nowhere")), "ann");
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_THAT(verdict.message, HasSubstr("/spec/template: "));
  EXPECT_THAT(verdict.message, HasSubstr("nowhere"));
  EXPECT_EQ(verdict.absent, (Absent{Absent::Kind::kQueue, "nowhere"}));
}

TEST(WebhookRootsTest, AFullNamespaceMayMakeRoots) {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "default";
  queue.namespace_quota = {.jobs = 1};
  facts.Upsert(queue);
  facts.SetUsage({{{"work", "default"}, {.jobs = 1, .jobspec_bytes = 1}}});
  EXPECT_EQ(Judge(PodJson(), facts).kind, Kind::kRefuse);
  EXPECT_EQ(JudgeRoot(RootJson("Deployment", PodJson()), "ann", {}, facts).kind, Kind::kHold);
}

TEST(WebhookRootsTest, WhatIsNotOursIsLeftAlone) {
  json free = RootJson("Deployment", PodJson());
  free["metadata"]["namespace"] = "free";
  json declined = RootJson("Deployment", PodJson());
  declined["spec"]["template"]["metadata"]["labels"] = {{"fluxqueue.io/managed", "false"}};
  json none = RootJson("Deployment", PodJson());
  none["spec"].erase("template");
  for (const json& root : {free, declined, none}) {
    EXPECT_EQ(JudgeRoot(root, "ann").kind, Kind::kLeave) << root.dump();
  }
  // Its controller would make another, without end, if it found it changed.
  EXPECT_EQ(JudgeRoot(RootJson("ReplicaSet", PodJson()),
                      "system:serviceaccount:kube-system:deployment-controller")
                .kind,
            Kind::kLeave);
}

TEST(WebhookRootsTest, WhatComesOfATemplateIsItsMakers) {
  struct Row {
    json made;
    const char* kind;
    const char* version;
    const char* user;
    const char* charged;
  };
  const json stamped = With(PodJson(), kUser, "ann");
  const std::vector<Row> rows = {
      {stamped, "ReplicaSet", "apps/v1", "system:kube-controller-manager", "ann"},
      {stamped,
       "StatefulSet",
       "apps/v1",
       "system:serviceaccount:kube-system:statefulset-controller",
       "ann"},
      {With(JobJson(), kUser, "ann"),
       "CronJob",
       "batch/v1",
       "system:serviceaccount:kube-system:cronjob-controller",
       "ann"},
      // Without a stamp, of a kind that is not stamped, by a controller that is not Kubernetes'
      // own.
      {PodJson(), "ReplicaSet", "apps/v1", "system:kube-controller-manager", "namespace:work"},
      {stamped, "Gang", "x/v1", "system:kube-controller-manager", "namespace:work"},
      {stamped, "ReplicaSet", "apps/v1", "system:serviceaccount:ops:agent", "namespace:work"},
      // Who may make pods here names any owner.
      {stamped,
       "ReplicaSet",
       "apps/v1",
       "system:serviceaccount:work:ci",
       "system:serviceaccount:work:ci"},
      {stamped, "ReplicaSet", "apps/v1", "eve", "eve"},
  };
  for (const Row& row : rows) {
    const Verdict verdict = JudgeMade(row.made, row.kind, row.version, row.user);
    ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
    EXPECT_EQ(Patched(row.made, verdict)["metadata"]["annotations"][kUser], row.charged)
        << row.kind << " by " << row.user;
  }
}

// By his groups, too, which nobody knows when the pods are made.
TEST(WebhookRootsTest, WhoMaySubmitMaySoByATemplate) {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "lab";
  queue.subjects = {{.kind = "Group", .name = "physics", .verbs = {"submit"}}};
  facts.Upsert(queue);
  const json pod = With(PodJson(), "fluxqueue.io/queue", "lab");
  const json root = RootJson("Deployment", pod);
  EXPECT_THAT(JudgeRoot(root, "eve", {}, facts).message, HasSubstr("may submit"));
  const Verdict verdict = JudgeRoot(root, "ann", {"physics"}, facts);
  ASSERT_EQ(verdict.kind, Kind::kHold) << verdict.message;
  EXPECT_EQ(Patched(root, verdict)["spec"]["template"]["metadata"]["annotations"],
            (json{{kUser, "ann"}, {kAdmittedTo, "lab"}, {"fluxqueue.io/queue", "lab"}}));
  const char* controller = "system:serviceaccount:kube-system:replicaset-controller";
  const json made = With(With(pod, kUser, "ann"), kAdmittedTo, "lab");
  EXPECT_EQ(JudgeMade(made, "ReplicaSet", "apps/v1", controller, facts).kind, Kind::kHold);
  EXPECT_EQ(JudgeMade(With(pod, kUser, "ann"), "ReplicaSet", "apps/v1", controller, facts).kind,
            Kind::kRefuse);
  // Stamped for another queue, or not by this controller.
  EXPECT_EQ(
      JudgeMade(With(made, kAdmittedTo, "night"), "ReplicaSet", "apps/v1", controller, facts).kind,
      Kind::kRefuse);
  EXPECT_EQ(JudgeMade(made, "ReplicaSet", "apps/v1", "eve", facts).kind, Kind::kRefuse);
}

TEST(WebhookRootsTest, WhereNobodyIsKnownTheTemplateStaysAsItIs) {
  json root = RootJson("StatefulSet", PodJson());
  root["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "x/v1"},
                                                      {"kind", "Cluster"},
                                                      {"name", "c"},
                                                      {"uid", "u"},
                                                      {"controller", true}}});
  EXPECT_EQ(JudgeRoot(root, "system:serviceaccount:ops:operator").patch, "");
  root["spec"]["template"]["metadata"]["annotations"] = {{kUser, "ann"}};
  const Verdict verdict = JudgeRoot(root, "system:serviceaccount:ops:operator");
  EXPECT_EQ(Patched(root, verdict)["spec"]["template"]["metadata"]["annotations"][kUser],
            "namespace:work");
}

// The policy takes such a record only where nothing is made while the webhook is away.
TEST(WebhookRootsTest, OnlyAManagedNamespaceHasTheRecordOfAQueue) {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "lab";
  queue.subjects = {{.kind = "User", .name = "ann", .verbs = {"submit"}}};
  facts.Upsert(queue);
  json pod = PodJson();
  pod["metadata"]["labels"] = {{"fluxqueue.io/queue", "lab"}};
  json root = RootJson("Deployment", pod);
  root["metadata"]["namespace"] = "free";
  const Verdict verdict = JudgeRoot(root, "ann", {}, facts);
  EXPECT_EQ(Patched(root, verdict)["spec"]["template"]["metadata"]["annotations"],
            (json{{kUser, "ann"}}));
}

// Two queues of a team below one quota: what serves stands beside what ends.
ClusterFacts TeamCluster() {
  ClusterFacts facts = SmallCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "serving";
  facts.Upsert(queue);
  facts.Upsert(kubernetes::Namespace{"work",
                                     {{"fluxqueue.io/managed", "true"},
                                      {"fluxqueue.io/queue", "night"},
                                      {"fluxqueue.io/serving-queue", "serving"}}});
  return facts;
}

TEST(WebhookRootsTest, WhatNamesNoQueueHasThatOfItsNamespace) {
  const ClusterFacts facts = TeamCluster();
  const auto queue_of = [](const json& metadata) {
    return metadata.value("annotations", json::object()).value("fluxqueue.io/queue", "");
  };
  const char* kController = "system:serviceaccount:kube-system:replicaset-controller";
  const Verdict replica = JudgeMade(PodJson(), "ReplicaSet", "apps/v1", kController, facts);
  EXPECT_EQ(queue_of(Patched(PodJson(), replica)["metadata"]), "serving");
  const char* kCron = "system:serviceaccount:kube-system:cronjob-controller";
  const Verdict of_cron = JudgeMade(JobJson(), "CronJob", "batch/v1", kCron, facts);
  EXPECT_EQ(queue_of(Patched(JobJson(), of_cron)["metadata"]), "night");
  // Templates stay as they are: the label may change, or their users name a queue.
  const json root = RootJson("Deployment", PodJson());
  EXPECT_EQ(
      queue_of(Patched(root, JudgeRoot(root, "ann", {}, facts))["spec"]["template"]["metadata"]),
      "");
  for (const json& object : {PodJson(), JobJson()}) {
    Review review = ReviewOf(object);
    review.user = "ann";
    EXPECT_EQ(queue_of(Patched(object, Decide(review, facts, {}))["metadata"]), "night");
    const json named = With(object, "fluxqueue.io/queue", "default");
    review = ReviewOf(named);
    EXPECT_EQ(queue_of(Patched(named, Decide(review, facts, {}))["metadata"]), "default");
  }
}

// Its pods would not be made any more.
TEST(WebhookRootsTest, WhatHasAControllerGoesOnAsBeforeWhereTheQueueIsNotForIt) {
  ClusterFacts facts = TeamCluster();
  kubernetes::FluxQueue queue;
  queue.meta.name = "serving";
  queue.subjects = {{.kind = "User", .name = "kim", .verbs = {"submit"}}};
  facts.Upsert(queue);
  const Verdict verdict = JudgeMade(PodJson(),
                                    "ReplicaSet",
                                    "apps/v1",
                                    "system:serviceaccount:kube-system:replicaset-controller",
                                    facts);
  EXPECT_EQ(verdict.kind, Kind::kHold) << verdict.message;
  EXPECT_FALSE(Patched(PodJson(), verdict)["metadata"]
                   .value("annotations", json::object())
                   .contains("fluxqueue.io/queue"));
}

TEST(WebhookRootsTest, AQueueOfANamespaceThatIsNotThereIsNamed) {
  ClusterFacts facts = SmallCluster();
  facts.Upsert(kubernetes::Namespace{
      "work", {{"fluxqueue.io/managed", "true"}, {"fluxqueue.io/queue", "nigth"}}});
  const Verdict verdict = Decide(ReviewOf(PodJson()), facts, {});
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_THAT(verdict.message,
              HasSubstr("label of the namespace: fluxqueue.io/queue: 'nigth': there is no such "
                        "FluxQueue; existing: default, night"));
}

}  // namespace
}  // namespace fluxqueue::admission
