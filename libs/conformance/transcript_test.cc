#include "libs/conformance/transcript.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::conformance {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Gives what it was told, call by call; then failures.
class FakeLibrary : public CallTarget {
 public:
  explicit FakeLibrary(std::vector<json> answers) : answers_(std::move(answers)) {}

  absl::Status Begin(const std::string& graph, const std::string& options) override {
    begun_with = graph + options;
    return absl::OkStatus();
  }
  json Call(const json& call) override {
    calls.push_back(call);
    return calls.size() <= answers_.size() ? answers_[calls.size() - 1] : json{{"rc", -1}};
  }

  std::string begun_with;
  std::vector<json> calls;

 private:
  std::vector<json> answers_;
};

json Failed(const std::string& error) {
  return {{"rc", -1}, {"errno", error}};
}

json Found(json resources) {
  return {{"rc", 0}, {"errno", "ok"}, {"reserved", false}, {"at", 0}, {"R", std::move(resources)}};
}

json Rlite(const std::string& rank, const std::string& cores) {
  return {{"rank", rank}, {"children", {{"core", cores}}}};
}

json MatchCall(json out, const std::string& jobspec = "{}", const std::string& ctx = "c0") {
  return {{"fn", "match_with_jobid"},
          {"ctx", ctx},
          {"args", {{"op", 1}, {"jobid", 7}, {"jobspec", jobspec}}},
          {"out", std::move(out)}};
}

json CallOf(const std::string& function, json args, json out, const std::string& ctx = "c0") {
  return {{"fn", function}, {"ctx", ctx}, {"args", std::move(args)}, {"out", std::move(out)}};
}

class TranscriptTest : public ::testing::Test {
 protected:
  TranscriptResult Play(const std::vector<json>& calls, std::vector<json> answers) {
    library_ = FakeLibrary(std::move(answers));
    const json transcript = {{"graph", "G"}, {"options", options_}, {"calls", calls}};
    const auto result = PlayTranscript(transcript.dump(), &library_);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(library_.begun_with, "\"G\"" + options_.dump());
    return result.value_or(TranscriptResult{});
  }

  // The rule by which the answer to the last call is the better one.
  std::string Better(const std::vector<json>& calls, const json& answer) {
    std::vector<json> answers;
    for (const json& call : calls) answers.push_back(call.at("out"));
    answers.back() = answer;
    const TranscriptResult result = Play(calls, answers);
    EXPECT_EQ(result.equal, calls.size() - 1);
    return result.better.empty() ? "" : std::string(result.better.front().better);
  }

  json options_ = {{"match_format", "rv1"}, {"matcher_policy", "low"}};
  FakeLibrary library_{{}};
};

TEST_F(TranscriptTest, ListsWithoutAnOrderAreEqualInAnyOrder) {
  const json graph = {{"graph", {{"nodes", {1, 2}}, {"edges", {3, 4}}}}};
  const json turned = {{"graph", {{"nodes", {2, 1}}, {"edges", {4, 3}}}}};
  const json both = {{"execution", {{"R_lite", {Rlite("0", "1"), Rlite("1", "0")}}}},
                     {"scheduling", graph}};
  const json both_turned = {{"execution", {{"R_lite", {Rlite("1", "0"), Rlite("0", "1")}}}},
                            {"scheduling", turned}};
  const TranscriptResult result =
      Play({MatchCall(Found(both)), MatchCall(Found(graph))}, {Found(both_turned), Found(turned)});
  EXPECT_EQ(result.calls, 2u);
  EXPECT_EQ(result.equal, 2u);
}

TEST_F(TranscriptTest, ADifferenceShowsBothAnswers) {
  const TranscriptResult result =
      Play({MatchCall(Found("")), MatchCall(Failed("EBUSY"))}, {Found(""), Failed("ENODEV")});
  EXPECT_EQ(result.equal, 1u);
  ASSERT_THAT(result.different, SizeIs(1));
  EXPECT_EQ(result.different[0].call, 2u);
  EXPECT_EQ(result.different[0].function, "match_with_jobid");
  EXPECT_THAT(result.different[0].expected, HasSubstr("EBUSY"));
  EXPECT_THAT(result.different[0].given, HasSubstr("ENODEV"));
}

TEST_F(TranscriptTest, DefectsOfFluxionAreKnownByRule) {
  const json clone = CallOf("clone", {{"as", "c1"}}, json::object());
  const json one = Found({Rlite("0", "0-1")});
  const json two = Found({Rlite("0-1", "0-3")});
  EXPECT_EQ(Better({MatchCall(Failed("EBUSY"), R"({"count": 0})")}, Failed("EINVAL")),
            "a count of 0");
  EXPECT_EQ(Better({MatchCall(Failed("0"))}, Failed("EBUSY")), "no errno");
  EXPECT_EQ(Better({CallOf("find", {}, Failed("ENOENT"))},
                   {{"rc", 0}, {"errno", "ok"}, {"R", {{"graph", {{"edges", json::array()}}}}}}),
            "one vertex");
  EXPECT_EQ(Better({clone, CallOf("info", {{"jobid", 7}}, Failed("ENOENT"), "c1")}, {{"rc", 0}}),
            "jobs of clones");
  EXPECT_EQ(Better({clone, MatchCall(two, "{}", "c1")}, one), "more than asked");
  EXPECT_EQ(Better({MatchCall(two)}, one), "");
  EXPECT_EQ(Better({MatchCall(Failed("EINVAL"), R"({"exclusive": true})"), MatchCall(two)}, one),
            "more than asked");
  EXPECT_EQ(Better({CallOf("add_subgraph", {}, {{"rc", 0}}), MatchCall(Failed("EBUSY"))}, one),
            "not counted");
  EXPECT_EQ(Better({MatchCall(Failed("EBUSY"))}, one), "");
  options_["match_format"] = "rlite";
  EXPECT_EQ(Better({MatchCall(Failed("EINVAL"))}, Failed("EBUSY")), "rlite of nothing");
  EXPECT_EQ(Better({MatchCall(Failed("EINVAL"))}, Found("")), "rlite of nothing");
  EXPECT_EQ(Better({MatchCall(Failed("EINVAL"))}, one), "");
}

TEST_F(TranscriptTest, AnEdgeToAVertexThatIsNotListed) {
  const json nodes = json::array({{{"id", "1"}, {"metadata", {{"paths", "/a"}}}}});
  const json edge = {{"source", "1"}, {"target", "2"}};
  EXPECT_EQ(Better({MatchCall(Found({{"graph", {{"nodes", nodes}, {"edges", {edge}}}}}))},
                   Found({{"graph", {{"nodes", nodes}, {"edges", json::array()}}}})),
            "edges to nowhere");
}

TEST_F(TranscriptTest, WhatIsRestoredOnlyHereIsGivenBack) {
  const json args = {{"jobid", 9}, {"R", "{}"}};
  const TranscriptResult result =
      Play({CallOf("update_allocate", args, Failed("0")), MatchCall(Found(""))},
           {{{"rc", 0}, {"errno", "ok"}}, {{"rc", 0}}, Found("")});
  ASSERT_THAT(result.better, SizeIs(1));
  EXPECT_EQ(result.better[0].better, "restore of rv1_nosched");
  EXPECT_THAT(result.different, IsEmpty());
  ASSERT_THAT(library_.calls, SizeIs(3));
  EXPECT_EQ(library_.calls[1],
            json({{"fn", "cancel"}, {"ctx", "c0"}, {"args", {{"jobid", 9}, {"noent_ok", true}}}}));
}

TEST_F(TranscriptTest, WhatFollowsABetterAnswerIsNoDifferenceOfItsOwn) {
  const json clone = CallOf("clone", {{"as", "c1"}}, json::object());
  const json wide = Found({Rlite("0-1", "0-3")});
  const json narrow = Found({Rlite("0", "0-1")});
  const json find = CallOf("find", {}, {{"rc", 0}, {"R", 1}}, "c1");
  const json elsewhere = CallOf("find", {}, {{"rc", 0}, {"R", 1}});
  const json other = {{"rc", 0}, {"R", 2}};
  const TranscriptResult result = Play({clone, MatchCall(wide, "{}", "c1"), find, elsewhere},
                                       {json::object(), narrow, other, other});
  EXPECT_THAT(result.better, SizeIs(1));
  EXPECT_EQ(result.following, 1u);
  ASSERT_THAT(result.different, SizeIs(1));
  EXPECT_EQ(result.different[0].call, 4u);
}

TEST(Transcript, ComplainsOfOtherForms) {
  FakeLibrary library({});
  for (const std::string line : {"", "[]", R"({"graph": {}, "options": {}})"}) {
    EXPECT_THAT(Message(PlayTranscript(line, &library).status()),
                HasSubstr("a transcript of another form than documented"));
  }
}

}  // namespace
}  // namespace fluxqueue::conformance
