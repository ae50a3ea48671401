#include "libs/kubernetes/reviews.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::kubernetes {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

TEST(ReviewsTest, ATokenIsAskedAboutForAnAudience) {
  EXPECT_EQ(json::parse(TokenReviewText("a\"b", "fluxqueue"))["spec"],
            json::parse(R"({"token": "a\"b", "audiences": ["fluxqueue"]})"));
}

TEST(ReviewsTest, AnAnswerAboutAToken) {
  const auto known = ParseTokenReview(R"({"status": {"authenticated": true,
      "user": {"username": "ann", "uid": "u", "groups": ["staff", "system:authenticated"],
               "extra": {"scopes": ["view", "list"], "none": []}},
      "audiences": ["fluxqueue"]}})");
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_TRUE(known->authenticated);
  EXPECT_EQ(known->user, "ann");
  EXPECT_THAT(known->groups, ElementsAre("staff", "system:authenticated"));
  EXPECT_EQ(known->uid, "u");
  EXPECT_EQ(known->extra,
            (std::map<std::string, std::vector<std::string>>{{"scopes", {"view", "list"}},
                                                             {"none", {}}}));
  EXPECT_THAT(known->audiences, ElementsAre("fluxqueue"));
  const auto unknown = ParseTokenReview(R"({"status": {"user": {}, "error": "expired"}})");
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  EXPECT_FALSE(unknown->authenticated);
  EXPECT_FALSE(ParseTokenReview(R"({"status": {"authenticated": "yes"}})").ok());
}

TEST(ReviewsTest, ARightIsAskedAbout) {
  const json spec = json::parse(SubjectAccessReviewText({.user = "ann",
                                                         .groups = {"staff"},
                                                         .group = "g.io",
                                                         .verb = "create",
                                                         .resource = "jobs",
                                                         .subresource = "cancel",
                                                         .space = "lab",
                                                         .name = "night"}))["spec"];
  EXPECT_EQ(spec, json::parse(R"({"user": "ann", "groups": ["staff"], "resourceAttributes": {
      "group": "g.io", "verb": "create", "resource": "jobs", "subresource": "cancel",
      "namespace": "lab", "name": "night"}})"));
}

TEST(ReviewsTest, AllThatIsKnownOfHimIsAsked) {
  const json spec = json::parse(SubjectAccessReviewText(
      {.user = "ann", .uid = "7", .extra = {{"scopes", {"view", "list"}}}}))["spec"];
  EXPECT_EQ(spec["uid"], "7");
  EXPECT_EQ(spec["extra"], json::parse(R"({"scopes": ["view", "list"]})"));
}

TEST(ReviewsTest, ARightIsAllowedOrDeniedOrNeither) {
  const auto read = [](const char* status) {
    const auto review = ParseSubjectAccessReview(status);
    EXPECT_TRUE(review.ok()) << review.status();
    return std::pair(review->allowed, review->denied);
  };
  EXPECT_EQ(read(R"({"status": {"allowed": true}})"), std::pair(true, false));
  EXPECT_EQ(read(R"({"status": {"allowed": false}})"), std::pair(false, false));
  EXPECT_EQ(read(R"({"status": {"allowed": false, "denied": true}})"), std::pair(false, true));
  EXPECT_EQ(read("{}"), std::pair(false, false));
  EXPECT_FALSE(ParseSubjectAccessReview("no").ok());
}

}  // namespace
}  // namespace fluxqueue::kubernetes
