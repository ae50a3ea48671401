#include "services/binder/adapters/cluster_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"

namespace fluxqueue::binder {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

Call ReleaseCall() {
  Call call;
  call.kind = Call::Kind::kRelease;
  call.job_id = "job";
  call.attempt = 2;
  call.slot = 1;
  call.slots = 4;
  call.uid = "u";
  call.resource_version = 7;
  call.node = "n1";
  return call;
}

const char kTerms[] =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

TEST(ReleasePatch, TheGateGoesAndTheNodeIsNamed) {
  const json patch = json::parse(ReleasePatch(
      R"({"spec":{"schedulingGates":[{"name":"fluxqueue.io/gate"}]}})", ReleaseCall(), ""));
  EXPECT_EQ(patch, json::parse(R"({
    "metadata":{"uid":"u","resourceVersion":"7","annotations":{
      "fluxqueue.io/job-id":"job","fluxqueue.io/allocation":"2.0.1/4"}},
    "spec":{"schedulingGates":null,"affinity":{"nodeAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
        {"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}}}})"));
}

TEST(ReleasePatch, OtherGatesStayAndEachTermIsNarrowed) {
  const json patch = json::parse(ReleasePatch(R"({"spec":{
    "schedulingGates":[{"name":"a"},{"name":"fluxqueue.io/gate"}],
    "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{
      "nodeSelectorTerms":[
        {"matchExpressions":[{"key":"disk","operator":"Exists"}]},
        {"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n9"]}]}]}}}}})",
                                              ReleaseCall(),
                                              ""));
  EXPECT_EQ(patch["spec"]["schedulingGates"], json::parse(R"([{"name":"a"}])"));
  const json& terms = patch[json::json_pointer(kTerms)];
  ASSERT_EQ(terms.size(), 2);
  EXPECT_EQ(terms[0]["matchExpressions"].size(), 1);
  EXPECT_EQ(terms[0]["matchFields"].size(), 1);
  EXPECT_EQ(terms[1]["matchFields"].size(), 2);
}

// The API server takes additions to terms that say something only.
TEST(ReleasePatch, ATermThatNoNodeMeetsStaysSo) {
  const json patch = json::parse(ReleasePatch(R"({"spec":{
      "schedulingGates":[{"name":"fluxqueue.io/gate"}],
      "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{
        "nodeSelectorTerms":[{},{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}]}}}}})",
                                              ReleaseCall(),
                                              ""));
  const json& terms = patch[json::json_pointer(kTerms)];
  EXPECT_EQ(terms[0], json::object());
  EXPECT_EQ(terms[1]["matchFields"].size(), 1);
}

TEST(ReleasePatch, APodThatIsEndedInTimeIsToldItsDeadline) {
  Call call = ReleaseCall();
  call.ends_after_s = 90;
  const auto patch_of = [&call](const char* spec) {
    return json::parse(ReleasePatch(
        std::string(R"({"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":)") + spec + "}",
        call,
        ""));
  };
  const json set = patch_of("{}");
  EXPECT_EQ(set["spec"]["activeDeadlineSeconds"], 90);
  EXPECT_EQ(set["metadata"]["annotations"]["fluxqueue.io/deadline"], "90");
  EXPECT_EQ(patch_of(R"({"activeDeadlineSeconds":100})")["spec"]["activeDeadlineSeconds"], 90);
  EXPECT_FALSE(
      patch_of(R"({"activeDeadlineSeconds":60})")["spec"].contains("activeDeadlineSeconds"));
}

TEST(ReleasePatch, WhatIsNoPodGivesNone) {
  EXPECT_EQ(ReleasePatch("nonsense", ReleaseCall(), ""), "");
  EXPECT_EQ(ReleasePatch("{}", ReleaseCall(), ""), "");
}

TEST(DisruptionPatch, SaysWhyThePodIsDeleted) {
  Call call;
  call.kind = Call::Kind::kDelete;
  call.uid = "u";
  call.disruption = "stopped for job lab/b";
  const json patch = json::parse(DisruptionPatch(call, std::chrono::system_clock::time_point{}));
  EXPECT_EQ(patch, json::parse(R"({
    "metadata":{"uid":"u"},
    "status":{"conditions":[{"type":"DisruptionTarget","status":"True",
      "reason":"DeletionByFluxqueue","message":"stopped for job lab/b",
      "lastTransitionTime":"1970-01-01T00:00:00.000Z"}]}})"));
}

// There is a node n1, whose uid is "u1", and the pod of any Binding.
class BindCallTest : public ::testing::Test {
 protected:
  CallResult Bind(const std::string& node_uid, Millis sure_until) {
    Call call;
    call.kind = Call::Kind::kBind;
    call.job_id = "job";
    call.slot = 0;
    call.slots = 1;
    call.space = "lab";
    call.name = call.uid = "p";
    call.node = "n1";
    call.node_uid = node_uid;
    call.sure_until = sure_until;
    return calls_.Make(call);
  }

  kubernetes::scripted::NotedApi api_{[this](const http::Request& request) {
    api_.Note(request.method + " " + request.path.substr(request.path.rfind('/') + 1));
    return http::Response{.status = 200, .body = R"({"metadata":{"name":"n1","uid":"u1"}})"};
  }};
  kubernetes::Client client_{api_.config()};
  const SlotProofs proofs_{std::string(SlotProofs::kLeastKeyBytes, 'k')};
  RealClock clock_;
  ClusterCalls calls_{client_, proofs_, clock_, Millis(1000)};
};

TEST_F(BindCallTest, WhileTheNodeIsSureItIsNotLookedAt) {
  EXPECT_EQ(Bind("", Millis::max()).outcome, CallResult::Outcome::kDone);
  EXPECT_THAT(api_.WaitFor(1), ElementsAre("POST binding"));
}

TEST_F(BindCallTest, ThenItIsLookedAtFirst) {
  EXPECT_EQ(Bind("u1", Millis(0)).outcome, CallResult::Outcome::kDone);
  EXPECT_THAT(api_.WaitFor(2), ElementsAre("GET n1", "POST binding"));
}

TEST_F(BindCallTest, ToAnotherOfThatNameNothingIsBound) {
  const CallResult result = Bind("u0", Millis(0));
  EXPECT_EQ(result.outcome, CallResult::Outcome::kRetry);
  EXPECT_TRUE(result.unmade);
  EXPECT_EQ(result.message, "its node is another by now");
  EXPECT_THAT(api_.WaitFor(1), ElementsAre("GET n1"));
}

TEST_F(BindCallTest, OneOfWhichNothingIsKnownIsPlannedAgain) {
  const CallResult result = Bind("", Millis(0));
  EXPECT_EQ(result.outcome, CallResult::Outcome::kRetry);
  EXPECT_TRUE(result.unmade);
}

}  // namespace
}  // namespace fluxqueue::binder
