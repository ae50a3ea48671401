#include "services/binder/adapters/pod_teller.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"

namespace fluxqueue::binder {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

PodCondition Waits(const std::string& name) {
  return {.space = "lab",
          .name = name,
          .uid = "uid-" + name,
          .reason = "Busy",
          .message = "cpu is in use",
          .since_ms = 1'769'860'800'000};
}

// Notes whose status is patched; refuses the first.
class PodTellerTest : public ::testing::Test {
 protected:
  kubernetes::scripted::NotedApi api_{[this](const http::Request& request) {
    const bool first = api_.Note(request.path) == 1;
    return http::Response{.status = first ? 403 : 200, .body = "{}"};
  }};
  kubernetes::Client client_{api_.config()};
  PodTeller teller_{client_};
};

TEST_F(PodTellerTest, TheSameWordsAreTheSameBytes) {
  EXPECT_EQ(json::parse(WaitingPatch(Waits("a"))), json::parse(R"({
    "metadata": {"uid": "uid-a"},
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Busy",
      "message": "cpu is in use", "lastTransitionTime": "2026-01-31T12:00:00.000Z"}]}})"));
}

TEST_F(PodTellerTest, OneThatIsRefusedStopsNoOther) {
  EXPECT_TRUE(teller_.idle());
  teller_.Tell({Waits("a"), Waits("b")});
  EXPECT_FALSE(teller_.idle());
  std::jthread thread([&](const std::stop_token& stop) { EXPECT_TRUE(teller_.Run(stop).ok()); });
  EXPECT_THAT(
      api_.WaitFor(2),
      ElementsAre("/api/v1/namespaces/lab/pods/a/status", "/api/v1/namespaces/lab/pods/b/status"));
}

TEST_F(PodTellerTest, WhatIsNotWrittenYetCanBeForgotten) {
  teller_.Tell({Waits("a"), Waits("b")});
  teller_.Clear();
  EXPECT_TRUE(teller_.idle());
  EXPECT_TRUE(teller_.mailbox().empty());
}

}  // namespace
}  // namespace fluxqueue::binder
