#include "services/admission/adapters/review_codec.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "absl/strings/escaping.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kReview = R"({
  "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
  "request": {"uid": "u-1", "kind": {"group": "batch", "version": "v1", "kind": "Job"},
    "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
    "requestResource": {"group": "x", "version": "v1", "resource": "y"},
    "name": "j", "namespace": "work", "operation": "CREATE", "userInfo": {"username": "me"},
    "object": {"metadata": {"name": "j", "labels": {"a": "\u00e4\"}"}}}, "oldObject": null,
    "dryRun": true, "options": null}})";

TEST(ReviewCodecTest, ReadsAReview) {
  const auto review = ParseReview(kReview);
  ASSERT_TRUE(review.ok()) << review.status();
  EXPECT_EQ(review->uid, "u-1");
  EXPECT_EQ(review->operation, "CREATE");
  EXPECT_EQ(review->group, "batch");
  EXPECT_EQ(review->resource, "jobs");
  EXPECT_EQ(review->space, "work");
  EXPECT_EQ(review->name, "j");
  EXPECT_EQ(review->user, "me");
  EXPECT_EQ(json::parse(review->object), json::parse(kReview)["request"]["object"]);
}

TEST(ReviewCodecTest, ReadsTheGroupsOfWhoAsks) {
  json text = json::parse(kReview);
  json& groups = text["request"]["userInfo"]["groups"];
  groups = {"system:authenticated", "system:nodes"};
  EXPECT_THAT(ParseReview(text.dump())->groups,
              ElementsAre("system:authenticated", "system:nodes"));
  groups = nullptr;
  EXPECT_THAT(ParseReview(text.dump())->groups, IsEmpty());
}

TEST(ReviewCodecTest, ReadsWhosePodsTokenItIs) {
  json text = json::parse(kReview);
  EXPECT_EQ(ParseReview(text.dump())->user_pod, "");
  json& extra = text["request"]["userInfo"]["extra"];
  extra = {{"authentication.kubernetes.io/node-uid", {"n"}},
           {"authentication.kubernetes.io/pod-uid", {"p"}}};
  EXPECT_EQ(ParseReview(text.dump())->user_pod, "p");
  extra = nullptr;
  EXPECT_EQ(ParseReview(text.dump())->user_pod, "");
}

TEST(ReviewCodecTest, NamesWhatIsNotAReview) {
  json deployment = json::parse(kReview);
  deployment["kind"] = "Deployment";
  deployment["apiVersion"] = "apps/v1";
  json old = json::parse(kReview);
  old["apiVersion"] = "admission.k8s.io/v1beta1";
  json response = json::parse(kReview);
  response.erase("request");
  json nameless = json::parse(kReview);
  nameless["request"].erase("uid");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not the JSON"},
      {"hello", "not the JSON"},
      {"[1, 2]", "not the JSON"},
      {"{\"kind\": \"AdmissionReview\", \"request\": {", "not the JSON"},
      {"{\"kind\": 3}", "not the JSON"},
      {std::string(kReview) + "x", "not the JSON"},
      {std::string(kReview) + " {}", "after its JSON"},
      {"{}", "kind ''"},
      {deployment.dump(), "kind 'Deployment' of apiVersion 'apps/v1'"},
      {old.dump(), "v1beta1"},
      {response.dump(), "no request"},
      {nameless.dump(), "no request with a uid"},
      {std::string(20000, '['), "not the JSON"},
      {"\xff\xfe", "not the JSON"},
  };
  for (const auto& [body, words] : cases) {
    const auto review = ParseReview(body);
    ASSERT_FALSE(review.ok()) << body.substr(0, 80);
    EXPECT_TRUE(absl::IsInvalidArgument(review.status()));
    EXPECT_THAT(Message(review.status()), HasSubstr(words)) << body.substr(0, 80);
  }
}

TEST(ReviewCodecTest, AnswersWithAPatch) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kHold;
  verdict.patch = R"([{"op":"add"}])";
  verdict.warnings = {"mind"};
  const json answer = json::parse(FormatAnswer("u-1", verdict));
  EXPECT_EQ(answer["apiVersion"], "admission.k8s.io/v1");
  EXPECT_EQ(answer["kind"], "AdmissionReview");
  EXPECT_EQ(answer["response"]["uid"], "u-1");
  EXPECT_EQ(answer["response"]["allowed"], true);
  EXPECT_EQ(answer["response"]["patchType"], "JSONPatch");
  EXPECT_EQ(answer["response"]["warnings"], json::array({"mind"}));
  std::string patch;
  ASSERT_TRUE(absl::Base64Unescape(answer["response"]["patch"].get<std::string>(), &patch));
  EXPECT_EQ(patch, verdict.patch);
}

TEST(ReviewCodecTest, AnswersWithoutAPatch) {
  const json answer = json::parse(FormatAnswer("u-1", {}));
  EXPECT_EQ(answer["response"], (json{{"uid", "u-1"}, {"allowed", true}}));
}

TEST(ReviewCodecTest, AnswersWithARefusal) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefuse;
  verdict.message = "no \xff";
  const json answer = json::parse(FormatAnswer("u-1", verdict));
  EXPECT_EQ(answer["response"]["allowed"], false);
  EXPECT_EQ(answer["response"]["status"]["code"], 422);
  EXPECT_FALSE(answer["response"].contains("patch"));
}

}  // namespace
}  // namespace fluxqueue::admission
