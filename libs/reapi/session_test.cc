#include "libs/reapi/session.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::reapi {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Three nodes of two cores and a gpu each.
const char kMachine[] = R"({"version": 1, "execution": {
    "R_lite": [{"rank": "0-2", "children": {"core": "0-1", "gpu": "0"}}],
    "nodelist": ["n[0-2]"], "starttime": 0, "expiration": 0}})";

std::string Jobspec(int nodes, int duration_s, const std::string& type = "core") {
  return json({{"version", 9999},
               {"resources",
                {{{"type", "node"},
                  {"count", nodes},
                  {"with",
                   {{{"type", "slot"},
                     {"count", 1},
                     {"label", "a"},
                     {"with", {{{"type", type}, {"count", 1}}}}}}}}}},
               {"tasks", {{{"command", {"app"}}, {"slot", "a"}, {"count", {{"per_slot", 1}}}}}},
               {"attributes", {{"system", {{"duration", duration_s}}}}}})
      .dump();
}

std::string RanksOf(const std::string& ranks,
                    const std::string& cores,
                    int starttime = 0,
                    int expiration = 60) {
  return json({{"version", 1},
               {"execution",
                {{"R_lite", {{{"rank", ranks}, {"children", {{"core", cores}}}}}},
                 {"starttime", starttime},
                 {"expiration", expiration}}}})
      .dump();
}

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override { Begin("lonodex", "rv1_nosched"); }

  void Begin(const std::string& policy, const std::string& format) {
    const json options = {
        {"load_format", "rv1exec"}, {"matcher_policy", policy}, {"match_format", format}};
    auto session = Session::Make(kMachine, options.dump());
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }

  absl::StatusCode Allocate(JobNumber job, int nodes) {
    return session_->Match(1, Jobspec(nodes, 60), job).status().code();
  }

  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, EveryOutcomeHasItsCode) {
  EXPECT_EQ(Allocate(1, 2), absl::StatusCode::kOk);
  EXPECT_EQ(Allocate(2, 2), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Allocate(1, 1), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(session_->Match(4, Jobspec(4, 60), 3).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session_->Match(1, "not: [a jobspec", 3).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(session_->Match(1, Jobspec(1, 60, "quark"), 3).status()),
              HasSubstr("no resources of type \"quark\""));
  // Not in this graph either, but Fluxion knows it.
  EXPECT_EQ(session_->Match(1, Jobspec(1, 60, "socket"), 3).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(SessionTest, WhatIsOnlyLookedForIsNeitherHeldNorReserved) {
  EXPECT_EQ(Allocate(1, 3), absl::StatusCode::kOk);
  const auto later = session_->Match(6, Jobspec(1, 60), 2);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->at_s, 60);
  EXPECT_FALSE(later->reserved);
  EXPECT_EQ(session_->Info(2).status().code(), absl::StatusCode::kNotFound);
  const auto ever = session_->Match(4, Jobspec(1, 60), 2);
  ASSERT_TRUE(ever.ok());
  EXPECT_EQ(ever->resources, "");
}

TEST_F(SessionTest, AReservationIsRestoredAsOne) {
  ASSERT_TRUE(session_->Restore(1, RanksOf("0", "0", 30, 90)).ok());
  EXPECT_EQ(session_->Info(1)->mode, JobMode::kReserved);
  EXPECT_EQ(session_->Info(1)->at_s, 30);
  EXPECT_THAT(Message(session_->Restore(2, RanksOf("0", "0-1", 89, 100)).status()),
              HasSubstr("\"/cluster0/n0/core0\" is held by job 1 at that time"));
  EXPECT_TRUE(session_->Restore(2, RanksOf("0", "0-1", 90, 100)).ok());
  EXPECT_EQ(session_->CancelPart(2, RanksOf("0", "0-1")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SessionTest, WhatWasGivenIsRestoredOnAnotherSession) {
  Begin("lonodex", "rv1");
  const auto given = session_->Match(1, Jobspec(2, 60), 1);
  ASSERT_TRUE(given.ok());
  Begin("lonodex", "rv1");
  const auto restored = session_->Restore(1, given->resources);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->resources, given->resources);
  EXPECT_EQ(Allocate(2, 2), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Allocate(2, 1), absl::StatusCode::kOk);
}

TEST_F(SessionTest, ARankIsGivenBackAsAWhole) {
  // Node-exclusive: both cores and the gpu of each node.
  ASSERT_EQ(Allocate(1, 2), absl::StatusCode::kOk);
  EXPECT_THAT(Message(session_->CancelPart(1, RanksOf("0", "0-1")).status()),
              HasSubstr("\"/cluster0/n0/gpu0\" of rank 0 is not named"));
  EXPECT_THAT(Message(session_->CancelPart(1, RanksOf("2", "0-1")).status()),
              HasSubstr("job 1 does not hold"));
  json whole = json::parse(RanksOf("0", "0-1"));
  whole["execution"]["R_lite"][0]["children"]["gpu"] = "0";
  const auto part = session_->CancelPart(1, whole.dump());
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_FALSE(*part);
  EXPECT_EQ(Allocate(2, 2), absl::StatusCode::kOk);
  whole["execution"]["R_lite"][0]["rank"] = "1";
  const auto rest = session_->CancelPart(1, whole.dump());
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_TRUE(*rest);
  EXPECT_EQ(session_->Info(1)->mode, JobMode::kCanceled);
}

TEST_F(SessionTest, WithTheSchedulingKeyVerticesAreGivenBack) {
  Begin("low", "jgf");
  const auto given = session_->Match(1, Jobspec(2, 60), 1);
  ASSERT_TRUE(given.ok());
  json part = json::parse(given->resources);
  json& nodes = part["graph"]["nodes"];
  nodes = json::array({nodes.front()});
  ASSERT_EQ(nodes[0]["metadata"]["paths"]["containment"], "/cluster0/n0/core0");
  const auto all = session_->CancelPart(1, part.dump());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_FALSE(*all);
  const auto rest = session_->CancelPart(
      1, R"({"graph": {"nodes": [{"id": "5", "metadata": {"type": "core", "id": 0, "rank": 1,
           "exclusive": true, "paths": {"containment": "/cluster0/n1/core0"}}}]}})");
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_TRUE(*rest);
}

TEST_F(SessionTest, AJobThatLostAllToARemovedSubgraphIsStillToBeCancelled) {
  ASSERT_EQ(Allocate(1, 1), absl::StatusCode::kOk);
  ASSERT_TRUE(session_->RemoveSubgraph("/cluster0/n0").ok());
  EXPECT_EQ(session_->Info(1)->mode, JobMode::kAllocated);
  EXPECT_EQ(session_->CancelPart(1, RanksOf("1", "0")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(session_->Cancel(1).ok());
  EXPECT_EQ(session_->Cancel(1).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session_->RemoveSubgraph("/cluster0/n0").code(), absl::StatusCode::kNotFound);
}

TEST_F(SessionTest, ACloneGoesItsOwnWay) {
  ASSERT_EQ(Allocate(1, 2), absl::StatusCode::kOk);
  const std::unique_ptr<Session> clone = session_->Clone();
  ASSERT_TRUE(clone->Cancel(1).ok());
  ASSERT_TRUE(clone->Match(1, Jobspec(3, 60), 2).ok());
  EXPECT_EQ(session_->Info(1)->mode, JobMode::kAllocated);
  EXPECT_EQ(session_->Info(2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Allocate(2, 1), absl::StatusCode::kOk);
}

TEST_F(SessionTest, NumbersAreGivenOnceAndNotWhereOneWasTaken) {
  ASSERT_EQ(Allocate(2, 1), absl::StatusCode::kOk);
  EXPECT_EQ(session_->NextJob(), 1u);
  EXPECT_EQ(session_->NextJob(), 3u);
}

}  // namespace
}  // namespace fluxqueue::reapi
