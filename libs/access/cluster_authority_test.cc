// Against a scripted API server; services/queue/queue_access_integration_test.cc has the real one.
#include "libs/access/cluster_authority.h"

#include <functional>
#include <memory>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/http/server.h"

namespace fluxqueue::access {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClusterAuthorityTest : public ::testing::Test {
 protected:
  ClusterAuthorityTest() {
    auto server = http::Server::Start({}, [this](const http::Request& request) {
      asked_.push_back(request.path);
      return answer_(request);
    });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = std::make_unique<kubernetes::Client>(
        kubernetes::ClusterConfig{.server = fmt::format("http://127.0.0.1:{}", server_->port())});
    authority_ = std::make_unique<ClusterAuthority>(*client_, clock_);
  }

  // Each question is answered so, one at a time.
  void Answers(const std::string& body, int status = 200) {
    answer_ = [=](const http::Request&) { return http::Response{.status = status, .body = body}; };
  }
  static std::string Known(const std::string& user, const std::string& audience) {
    return json{{"status",
                 {{"authenticated", true},
                  {"user",
                   {{"username", user},
                    {"uid", "7"},
                    {"groups", {"staff"}},
                    {"extra", {{"scopes", {"view"}}}}}},
                  {"audiences", {audience}}}}}
        .dump();
  }

  FakeClock clock_;
  std::vector<std::string> asked_;
  std::function<http::Response(const http::Request&)> answer_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<kubernetes::Client> client_;
  std::unique_ptr<ClusterAuthority> authority_;
};

TEST_F(ClusterAuthorityTest, ATokenIsAskedAboutOnceInAWhile) {
  Answers(Known("ann", "fluxqueue"));
  const User ann{.name = "ann", .groups = {"staff"}, .uid = "7", .extra = {{"scopes", {"view"}}}};
  EXPECT_EQ(*authority_->WhoseIs("t"), ann);
  Answers(R"({"status": {"authenticated": false}})");
  EXPECT_EQ(*authority_->WhoseIs("t"), ann);
  EXPECT_THAT(asked_, ElementsAre("/apis/authentication.k8s.io/v1/tokenreviews"));
  EXPECT_TRUE(absl::IsUnauthenticated(authority_->WhoseIs("u").status()));
  clock_.Advance(Millis(5000));
  EXPECT_TRUE(absl::IsUnauthenticated(authority_->WhoseIs("t").status()));
  EXPECT_EQ(asked_.size(), 3U);
  // A no is remembered, too.
  Answers(Known("ann", "fluxqueue"));
  EXPECT_TRUE(absl::IsUnauthenticated(authority_->WhoseIs("t").status()));
  clock_.Advance(Millis(5000));
  EXPECT_TRUE(authority_->WhoseIs("t").ok());
}

TEST_F(ClusterAuthorityTest, ATokenIsForTheAudienceAndSaysWhose) {
  Answers(Known("ann", "https://kubernetes.default.svc"));
  EXPECT_THAT(Message(authority_->WhoseIs("a").status()),
              HasSubstr("not made for the audience fluxqueue"));
  Answers(R"({"status": {"authenticated": true, "user": {"username": "ann"}}})");
  EXPECT_TRUE(absl::IsUnauthenticated(authority_->WhoseIs("b").status()));
  Answers(R"({"status": {"authenticated": false, "user": {"username": "ann"},
                          "audiences": ["fluxqueue"]}})");
  EXPECT_TRUE(absl::IsUnauthenticated(authority_->WhoseIs("d").status()));
  Answers(Known("", "fluxqueue"));
  EXPECT_TRUE(absl::IsUnauthenticated(authority_->WhoseIs("c").status()));
}

TEST_F(ClusterAuthorityTest, ARightIsRememberedForOneUserInHisGroups) {
  Answers(R"({"status": {"allowed": true}})");
  const Right right{.verb = "get", .resource = "jobs", .space = "lab", .name = "x"};
  EXPECT_TRUE(*authority_->Allows({.name = "ann", .groups = {"a", "b"}}, right));
  Answers(R"({"status": {"allowed": false}})");
  EXPECT_TRUE(*authority_->Allows({.name = "ann", .groups = {"a", "b"}}, right));
  EXPECT_FALSE(*authority_->Allows({.name = "ann", .groups = {"ab"}}, right));
  EXPECT_FALSE(*authority_->Allows({.name = "eve", .groups = {"a", "b"}}, right));
  for (std::string Right::*field :
       {&Right::verb, &Right::resource, &Right::subresource, &Right::space, &Right::name}) {
    Right other = right;
    other.*field = "other";
    EXPECT_FALSE(*authority_->Allows({.name = "ann", .groups = {"a", "b"}}, other));
  }
  clock_.Advance(Millis(5000));
  EXPECT_FALSE(*authority_->Allows({.name = "ann", .groups = {"a", "b"}}, right));
}

// Else whoever has a token without scopes would give what he may to those with them, for a while.
TEST_F(ClusterAuthorityTest, ARightIsRememberedForOneUserAsHeIsKnown) {
  const Right right{.verb = "get", .resource = "jobs"};
  const User ann{.name = "ann", .groups = {"a"}, .uid = "7", .extra = {{"k", {"v", "w"}}}};
  Answers(R"({"status": {"allowed": true}})");
  EXPECT_EQ(*authority_->Judge(ann, right), Verdict::kAllowed);
  Answers(R"({"status": {"allowed": false, "denied": true}})");
  EXPECT_EQ(*authority_->Judge(ann, right), Verdict::kAllowed);
  for (const User& other : std::vector<User>{
           {.name = "ann", .groups = {"a"}, .uid = "7"},
           {.name = "ann", .groups = {"a"}, .uid = "8", .extra = {{"k", {"v", "w"}}}},
           {.name = "ann", .groups = {"a"}, .uid = "7", .extra = {{"k", {"v"}}}},
           {.name = "ann", .groups = {"a"}, .uid = "7", .extra = {{"k", {"vw"}}}},
           {.name = "ann", .groups = {"a"}, .uid = "7", .extra = {{"k", {"v"}}, {"w", {}}}},
           {.name = "ann", .groups = {"a"}, .uid = "7", .extra = {{"l", {"v", "w"}}}},
           {.name = "ann", .groups = {"a", "k"}, .uid = "7", .extra = {{"v", {"w"}}}},
           {.name = "ann", .groups = {"a", "k", "v", "w"}, .uid = "7"},
       }) {
    EXPECT_EQ(*authority_->Judge(other, right), Verdict::kDenied);
  }
}

TEST_F(ClusterAuthorityTest, WhereNobodyCanBeAskedTheAnswerIsNeverYes) {
  Answers("away", 503);
  EXPECT_TRUE(absl::IsUnavailable(authority_->WhoseIs("t").status()));
  EXPECT_TRUE(absl::IsUnavailable(authority_->Allows({.name = "ann"}, {}).status()));
  EXPECT_TRUE(absl::IsUnavailable(authority_->QueueAndAbove("q").status()));
  EXPECT_EQ(asked_.size(), 1U) << "the others do not wait for it";
  Answers(Known("ann", "fluxqueue"));
  clock_.Advance(Millis(1000));
  EXPECT_TRUE(authority_->WhoseIs("t").ok());
  // A right to ask that is missing is no answer either; nor is what cannot be read.
  Answers(R"({"message": "may not create"})", 403);
  EXPECT_TRUE(absl::IsUnavailable(authority_->Allows({.name = "ann"}, {}).status()));
  clock_.Advance(Millis(1000));
  Answers("{");
  EXPECT_TRUE(absl::IsUnavailable(authority_->LabelsOf("lab").status()));
  clock_.Advance(Millis(1000));
  server_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(authority_->WhoseIs("u").status()));
}

TEST_F(ClusterAuthorityTest, AQueueComesWithThoseAboveIt) {
  answer_ = [](const http::Request& request) -> http::Response {
    const std::string name = request.path.substr(request.path.rfind('/') + 1);
    const std::map<std::string, std::string> parents = {
        {"lab", "account"}, {"account", ""}, {"round", "about"}, {"about", "round"}};
    const auto found = parents.find(name);
    if (found == parents.end()) return {.status = 404, .body = "{}"};
    return {.body =
                json{{"metadata", {{"name", name}}}, {"spec", {{"parent", found->second}}}}.dump()};
  };
  EXPECT_EQ(authority_->QueueAndAbove("lab")->size(), 2U);
  EXPECT_EQ(authority_->QueueAndAbove("round")->size(), 2U);
  EXPECT_TRUE(authority_->QueueAndAbove("none")->empty());
  EXPECT_TRUE(authority_->QueueAndAbove("none")->empty());
  EXPECT_EQ(asked_.size(), 5U);
}

TEST_F(ClusterAuthorityTest, LabelsOfANamespace) {
  Answers(R"({"metadata": {"name": "lab", "labels": {"team": "x"}}})");
  EXPECT_EQ(authority_->LabelsOf("lab")->value().at("team"), "x");
  Answers("{}", 404);
  EXPECT_FALSE(authority_->LabelsOf("none")->has_value());
}

}  // namespace
}  // namespace fluxqueue::access
