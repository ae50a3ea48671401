// Who may have more pods made of what another has made.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/webhook.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Kind = Verdict::Kind;

json DeploymentOf(const std::string& user) {
  json made = {{"metadata", {{"labels", {{"app", "web"}}}}}, {"spec", {{"hostname", "web"}}}};
  if (!user.empty()) made["metadata"]["annotations"] = {{"fluxqueue.io/user", user}};
  return {{"metadata", {{"name", "web"}}}, {"spec", {{"template", made}}}};
}

Review ScaleOf(const std::string& group, const std::string& resource) {
  Review review;
  review.uid = "review-1";
  review.operation = "UPDATE";
  review.group = group;
  review.resource = resource;
  review.subresource = "scale";
  review.space = "work";
  review.name = "web";
  review.user = "ann";
  review.object = R"({"kind": "Scale", "spec": {"replicas": 9}})";
  return review;
}

Review AutoscalerOf(const json& target) {
  Review review = ScaleOf("autoscaling", "horizontalpodautoscalers");
  review.operation = "CREATE";
  review.subresource.clear();
  review.object = json{{"spec", {{"scaleTargetRef", target}}}}.dump();
  return review;
}

Verdict Judge(Review review, const std::string& scaled) {
  review.scaled = scaled;
  return Decide(review, {}, {});
}

TEST(ScaleRulesTest, FirstItAsksForWhatIsScaled) {
  const Verdict of_scale = Decide(ScaleOf("apps", "statefulsets"), {}, {});
  ASSERT_TRUE(of_scale.absent.has_value());
  EXPECT_EQ(of_scale.absent->kind, Absent::Kind::kScaled);
  EXPECT_EQ(of_scale.absent->name, "web");
  EXPECT_EQ(of_scale.absent->scaled, kubernetes::FindKind("apps", "statefulsets"));
  // Should it not be looked up.
  EXPECT_EQ(of_scale.kind, Kind::kRefuse);
  EXPECT_THAT(of_scale.message, HasSubstr("statefulsets 'web' makes could not be looked up"));
  const Verdict of_autoscaler = Decide(
      AutoscalerOf({{"apiVersion", "v1"}, {"kind", "ReplicationController"}, {"name", "old"}}),
      {},
      {});
  ASSERT_TRUE(of_autoscaler.absent.has_value());
  EXPECT_EQ(of_autoscaler.absent->name, "old");
  EXPECT_EQ(of_autoscaler.absent->scaled, kubernetes::FindKind("", "replicationcontrollers"));
}

TEST(ScaleRulesTest, MoreOfAnothersIsRefused) {
  for (const Review& review :
       {ScaleOf("apps", "deployments"),
        AutoscalerOf({{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "web"}}),
        AutoscalerOf({{"apiVersion", "apps/v2"}, {"kind", "Deployment"}, {"name", "web"}})}) {
    const Verdict verdict = Judge(review, DeploymentOf("bob").dump());
    EXPECT_EQ(verdict.kind, Kind::kRefuse);
    EXPECT_THAT(verdict.message, HasSubstr("asks for these in his name"));
    EXPECT_FALSE(verdict.absent.has_value());
    for (const char* user : {"ann", "namespace:work", ""}) {
      EXPECT_EQ(Judge(review, DeploymentOf(user).dump()).kind, Kind::kLeave) << user;
    }
    EXPECT_EQ(Judge(review, DeploymentOf("namespace:other").dump()).kind, Kind::kRefuse);
  }
}

TEST(ScaleRulesTest, MoreOfWhatGoesPastTheQueueIsRefused) {
  const json out = {{"fluxqueue.io/managed", "false"}};
  json itself = DeploymentOf("ann");
  itself["metadata"]["labels"] = out;
  json pods = DeploymentOf("ann");
  pods["spec"]["template"]["metadata"]["labels"] = out;
  json pinned = DeploymentOf("ann");
  pinned["spec"]["template"]["spec"]["nodeName"] = "n1";
  for (const json& object : {itself, pods, pinned}) {
    const Verdict verdict = Judge(ScaleOf("apps", "deployments"), object.dump());
    EXPECT_EQ(verdict.kind, Kind::kRefuse) << object;
    EXPECT_THAT(verdict.message, HasSubstr("go past the queue"));
  }
}

TEST(ScaleRulesTest, WhatMakesNoPodsOfOursIsLeftAlone) {
  for (const json& target :
       {json{{"apiVersion", "example.com/v1"}, {"kind", "Deployment"}, {"name", "web"}},
        json{{"apiVersion", "batch/v1"}, {"kind", "CronJob"}, {"name", "web"}},
        json{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "../pods?x="}},
        json{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}},
        json{{"apiVersion", 1}, {"kind", json::array()}, {"name", nullptr}},
        json("text")}) {
    const Verdict verdict = Decide(AutoscalerOf(target), {}, {});
    EXPECT_EQ(verdict.kind, Kind::kLeave) << target;
    EXPECT_FALSE(verdict.absent.has_value()) << target;
  }
  EXPECT_EQ(Decide(ScaleOf("example.com", "gangs"), {}, {}).kind, Kind::kLeave);
}

// It is gone, or has another form than the API server gives.
TEST(ScaleRulesTest, WhatCannotBeReadIsNobodys) {
  for (const char* text : {"",
                           "{",
                           "[]",
                           R"({"spec": {"template": 1}})",
                           R"({"spec": {"template": {"metadata": {"annotations": []}}}})"}) {
    EXPECT_EQ(Judge(ScaleOf("apps", "deployments"), text).kind, Kind::kLeave) << text;
  }
}

}  // namespace
}  // namespace fluxqueue::admission
