#include "services/binder/domain/provisioning.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Millis kNow{1'769'860'800'000};  // 2026-01-31T12:00:00Z
const ProvisioningClasses kClasses = {{"gpu", "atomic.example.com"}};

JobFact Lacking(const std::string& uid) {
  JobFact fact;
  fact.set_job_id(uid);
  fact.set_pool("gpu");
  fact.set_slots(16);
  fact.set_revision(2);
  events::v1::Workload& job = *fact.mutable_workload();
  job.set_api_version("batch/v1");
  job.set_kind("Job");
  job.set_namespace_("lab");
  job.set_name("train");
  job.set_uid(uid);
  job.set_suspended(true);
  return fact;
}

Provision There(const std::string& name, bool over = false, Millis age = Millis(0)) {
  return {.space = "lab",
          .name = name,
          .uid = "u-" + name,
          .provisioning_class = "atomic.example.com",
          .over = over,
          .created_ms = (kNow - age).count()};
}

// The first comparison since the start.
ProvisionPlan Plan(const std::vector<JobFact>& lacking, const std::vector<Provision>& there) {
  std::map<std::string, Millis> unwanted;
  return PlanProvisions(kClasses, lacking, there, kNow, &unwanted);
}

auto Names(const std::vector<Provision>& requests) {
  std::vector<std::string> names;
  for (const Provision& request : requests) names.push_back(request.name);
  return names;
}

TEST(ProvisioningTest, JobsThatLackNodesAreAskedForOnce) {
  const std::vector<JobFact> lacking = {Lacking("a")};
  const ProvisionPlan first = Plan(lacking, {});
  EXPECT_THAT(first.ask, ElementsAre(&lacking[0]));
  EXPECT_EQ(ProvisionName(lacking[0]), "fluxqueue-a-2");
  const ProvisionPlan then = Plan(lacking, {There("fluxqueue-a-2")});
  EXPECT_THAT(then.ask, IsEmpty());
  EXPECT_THAT(then.remove, IsEmpty());
}

TEST(ProvisioningTest, OtherKindsAndOtherPoolsAreNot) {
  JobFact pod = Lacking("pod");
  pod.mutable_workload()->set_kind("Pod");
  JobFact other = Lacking("other");
  other.set_pool("cpu");
  // Of these there are pods, which say so themselves.
  JobFact held_by_gate = Lacking("few");
  held_by_gate.mutable_workload()->set_suspended(false);
  JobFact controlled = Lacking("set");
  controlled.mutable_workload()->set_controlled(true);
  EXPECT_THAT(Plan({pod, other, held_by_gate, controlled}, {}).ask, IsEmpty());
}

TEST(ProvisioningTest, WhatIsNotAskedForAnyMoreIsRemovedAfterAWhile) {
  const std::vector<JobFact> lacking = {Lacking("a")};
  // Of the same Job before it was of another size, of one that has started, and of somebody else.
  const std::vector<Provision> there = {
      There("fluxqueue-a-1"), There("fluxqueue-a-2"), There("fluxqueue-b-1"), There("mine")};
  std::map<std::string, Millis> unwanted;
  const auto removed = [&](Millis at) {
    return Names(PlanProvisions(kClasses, lacking, there, at, &unwanted).remove);
  };
  EXPECT_THAT(removed(kNow), IsEmpty());
  EXPECT_THAT(removed(kNow + kUnwantedFor - Millis(1)), IsEmpty());
  EXPECT_THAT(removed(kNow + kUnwantedFor), ElementsAre("fluxqueue-a-1", "fluxqueue-b-1"));
  // What was wanted in between waits from the start.
  JobFact b = Lacking("b");
  b.set_revision(1);
  EXPECT_THAT(PlanProvisions(kClasses, {b}, {There("fluxqueue-b-1")}, kNow, &unwanted).remove,
              IsEmpty());
  EXPECT_THAT(PlanProvisions(
                  kClasses, lacking, {There("fluxqueue-b-1")}, kNow + 2 * kUnwantedFor, &unwanted)
                  .remove,
              IsEmpty());
}

TEST(ProvisioningTest, WhatIsOfAnotherClassOrOfNoneIsRemovedAtOnce) {
  Provision other = There("fluxqueue-a-2");
  other.provisioning_class = "wrong";
  EXPECT_THAT(Names(Plan({Lacking("a")}, {other}).remove), ElementsAre("fluxqueue-a-2"));
  std::map<std::string, Millis> unwanted;
  EXPECT_THAT(
      Names(PlanProvisions({}, {Lacking("a")}, {There("fluxqueue-a-2")}, kNow, &unwanted).remove),
      ElementsAre("fluxqueue-a-2"));
}

TEST(ProvisioningTest, WhatFailedIsAskedForAgainAfterAWhile) {
  const std::vector<JobFact> lacking = {Lacking("a")};
  const Provision young = There("fluxqueue-a-2", true, kAskAgain - Millis(1));
  EXPECT_THAT(Plan(lacking, {young}).remove, IsEmpty());
  const Provision old = There("fluxqueue-a-2", true, kAskAgain);
  const ProvisionPlan plan = Plan(lacking, {old});
  EXPECT_THAT(Names(plan.remove), ElementsAre("fluxqueue-a-2"));
  EXPECT_THAT(plan.ask, IsEmpty()) << "its name is taken until it is gone";
  const Provision waits = There("fluxqueue-a-2", false, 10 * kAskAgain);
  EXPECT_THAT(Plan(lacking, {waits}).remove, IsEmpty());
}

TEST(ProvisioningTest, ATemplateIsWhatThePodsAskForWithoutWhatHoldsThem) {
  const auto text = ProvisionTemplate(Lacking("a"), R"({"spec": {"template": {
    "metadata": {"labels": {"app": "x"}, "annotations": {"fluxqueue.io/run-seconds": "1"}},
    "spec": {"schedulerName": "fluxqueue", "schedulingGates": [{"name": "fluxqueue.io/gate"}],
             "nodeSelector": {"gpu": "h100"}, "containers": [{"name": "main"}]}}}})");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(json::parse(*text), json::parse(R"({"apiVersion": "v1", "kind": "PodTemplate",
    "metadata": {"name": "fluxqueue-a-2", "namespace": "lab",
      "labels": {"app.kubernetes.io/managed-by": "fluxqueue"},
      "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "a"}]},
    "template": {"metadata": {"labels": {"app": "x"}},
      "spec": {"nodeSelector": {"gpu": "h100"}, "containers": [{"name": "main"}]}}})"));
  for (const char* bad : {"[]", "{", R"({"spec": {"template": {"spec": 1}}})"}) {
    EXPECT_THAT(ProvisionTemplate(Lacking("a"), bad).status().message(),
                HasSubstr("Job lab/train has no template"))
        << bad;
  }
}

TEST(ProvisioningTest, ARequestIsForAllPodsThatItStartsWith) {
  JobFact fact = Lacking("a");
  const json request = json::parse(ProvisionRequest(fact, "atomic.example.com"));
  EXPECT_EQ(request["kind"], "ProvisioningRequest");
  EXPECT_EQ(request["spec"], json::parse(R"({"provisioningClassName": "atomic.example.com",
    "podSets": [{"count": 16, "podTemplateRef": {"name": "fluxqueue-a-2"}}]})"));
  fact.set_min_slots(4);
  EXPECT_EQ(json::parse(ProvisionRequest(fact, "x"))["spec"]["podSets"][0]["count"], 4);
}

TEST(ProvisioningTest, OfARequestItIsReadWhetherMoreComesOfIt) {
  const auto read = [](const std::string& status) {
    return ParseProvision(R"({"metadata": {"name": "fluxqueue-a-2", "namespace": "lab",
      "uid": "u", "creationTimestamp": "2026-01-31T12:00:00Z"})" +
                          status + "}");
  };
  const auto fresh = read("");
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_EQ(fresh->name, "fluxqueue-a-2");
  EXPECT_EQ(fresh->created_ms, kNow.count());
  EXPECT_FALSE(fresh->over);
  const auto with = [&](const char* type, const char* status) {
    return read(fmt::format(R"(, "status": {{"conditions": [{{"type": "{}", "status": "{}"}}]}})",
                            type,
                            status))
        .value_or(Provision{})
        .over;
  };
  EXPECT_FALSE(with("Provisioned", "True"));
  EXPECT_FALSE(with("Failed", "False"));
  for (const char* over : {"Failed", "BookingExpired", "CapacityRevoked"}) {
    EXPECT_TRUE(with(over, "True")) << over;
  }
  EXPECT_FALSE(read(R"(, "status": {"conditions": [{"type": 7, "status": "True"}]})").ok());
}

TEST(ProvisioningTest, ClassesAreNamedByPool) {
  const auto classes = ParseProvisioningClasses({"gpu=a.example.com", "cpu=b"});
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_EQ(*classes, (ProvisioningClasses{{"gpu", "a.example.com"}, {"cpu", "b"}}));
  for (const char* bad : {"", "gpu", "=a", "gpu="}) {
    EXPECT_THAT(ParseProvisioningClasses({bad}).status().message(), HasSubstr("POOL=CLASS")) << bad;
  }
  EXPECT_THAT(ParseProvisioningClasses({"gpu=a", "gpu=b"}).status().message(),
              HasSubstr("pool 'gpu' has two classes"));
}

}  // namespace
}  // namespace fluxqueue::binder
