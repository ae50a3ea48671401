#include "services/binder/adapters/pod_teller.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/clock.h"
#include "libs/http/server.h"
#include "libs/kubernetes/config.h"

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
class Patched {
 public:
  Patched() {
    auto server = http::Server::Start({}, [this](const http::Request& r) { return Answer(r); });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  kubernetes::ClusterConfig config() const {
    return {.server = fmt::format("http://127.0.0.1:{}", server_->port())};
  }
  std::vector<std::string> WaitFor(size_t many) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(done_.wait_for(lock, std::chrono::seconds(20), [&] {
      return paths_.size() >= many;
    })) << many;
    return paths_;
  }

 private:
  http::Response Answer(const http::Request& request) {
    const std::lock_guard lock(mutex_);
    paths_.push_back(request.path);
    done_.notify_all();
    return {.status = paths_.size() == 1 ? 403 : 200, .body = "{}"};
  }

  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<std::string> paths_;
  std::unique_ptr<http::Server> server_;
};

TEST(PodTellerTest, TheSameWordsAreTheSameBytes) {
  EXPECT_EQ(json::parse(WaitingPatch(Waits("a"))), json::parse(R"({
    "metadata": {"uid": "uid-a"},
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Busy",
      "message": "cpu is in use", "lastTransitionTime": "2026-01-31T12:00:00.000Z"}]}})"));
}

TEST(PodTellerTest, OneThatIsRefusedStopsNoOther) {
  Patched cluster;
  kubernetes::Client client{cluster.config()};
  PodTeller teller(client);
  EXPECT_TRUE(teller.idle());
  teller.Tell({Waits("a"), Waits("b")});
  EXPECT_FALSE(teller.idle());
  std::jthread thread([&](const std::stop_token& stop) { EXPECT_TRUE(teller.Run(stop).ok()); });
  EXPECT_THAT(
      cluster.WaitFor(2),
      ElementsAre("/api/v1/namespaces/lab/pods/a/status", "/api/v1/namespaces/lab/pods/b/status"));
}

TEST(PodTellerTest, WhatIsNotWrittenYetCanBeForgotten) {
  Patched cluster;
  kubernetes::Client client{cluster.config()};
  PodTeller teller(client);
  teller.Tell({Waits("a"), Waits("b")});
  teller.Clear();
  EXPECT_TRUE(teller.idle());
  EXPECT_TRUE(teller.mailbox().empty());
}

}  // namespace
}  // namespace fluxqueue::binder
