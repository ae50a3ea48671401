#include "services/binder/adapters/call_workers.h"

#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"

namespace fluxqueue::binder {
namespace {

using ::testing::UnorderedElementsAre;

Call ReadOf(const std::string& name) {
  Call call;
  call.kind = Call::Kind::kReadPod;
  call.job_id = call.name = call.uid = name;
  call.space = "lab";
  return call;
}

// There are no pods.
class CallWorkersTest : public ::testing::Test {
 protected:
  kubernetes::scripted::NotedApi api_{[this](const http::Request& request) {
    api_.Note(request.path.substr(request.path.rfind('/') + 1));
    return http::Response{.status = 404, .body = "{}"};
  }};
  kubernetes::Client client_{api_.config()};
  const SlotProofs proofs_{std::string(SlotProofs::kLeastKeyBytes, 'k')};
  RealClock clock_;
  metrics::Registry registry_;
  BinderMetrics metrics_{registry_};
  Inbox inbox_;
  ClusterCalls calls_{client_, proofs_, clock_, Millis(1000)};
  CallWorkers workers_{2, client_.threads(), calls_, inbox_, metrics_, clock_};
};

TEST_F(CallWorkersTest, EachCallIsMadeAndAnswered) {
  ASSERT_TRUE(workers_.Start().ok());
  workers_.Submit({ReadOf("a"), ReadOf("b"), ReadOf("c")});
  EXPECT_THAT(api_.WaitFor(3), UnorderedElementsAre("a", "b", "c"));
  workers_.Submit({ReadOf("d")});
  EXPECT_THAT(api_.WaitFor(4), UnorderedElementsAre("a", "b", "c", "d"));
  workers_.Stop();
  std::set<std::string> answered;
  for (const News& news : inbox_.Take()) {
    const auto& result = std::get<CallResult>(news);
    EXPECT_EQ(result.outcome, CallResult::Outcome::kGone);
    answered.insert(result.call.name);
  }
  EXPECT_THAT(answered, UnorderedElementsAre("a", "b", "c", "d"));
}

TEST_F(CallWorkersTest, WhatWaitsWhenTheyStopIsDropped) {
  workers_.Submit({ReadOf("a")});
  workers_.Stop();
  ASSERT_TRUE(workers_.Start().ok());
  workers_.Submit({ReadOf("b")});
  EXPECT_THAT(api_.WaitFor(1), UnorderedElementsAre("b"));
}

}  // namespace
}  // namespace fluxqueue::binder
