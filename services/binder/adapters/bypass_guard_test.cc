#include "services/binder/adapters/bypass_guard.h"

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"
#include "libs/metrics/metrics.h"

namespace fluxqueue::binder {
namespace {

using kubernetes::scripted::kQuiet;
using kubernetes::scripted::List;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Lists what is in it, has nothing to say to watches, and notes what it is asked to do.
class SmallCluster {
 public:
  kubernetes::ClusterConfig config() const { return api_.config(); }
  // Each "DELETE pod uid", "Event note" and "GET path" so far, when there are as many.
  std::vector<std::string> WaitFor(size_t many) { return api_.WaitFor(many); }

  std::string spaces{};                            // of a list
  std::string pods{};                              // the same
  std::map<std::string, http::Response> owners{};  // by path
  // Of a list of the namespace lab alone: pods that wait, and Jobs.
  std::string waiting{};
  std::string jobs{};
  std::vector<std::string> waiting_asked{};  // the queries; the first one is not answered

 private:
  http::Response Answer(const http::Request& request) {
    if (request.query.find("watch=true") != std::string::npos) {
      std::this_thread::sleep_for(kQuiet);
      return {};
    }
    if (request.method == "GET" && request.path == "/api/v1/pods") return {.body = List(1, pods)};
    if (request.method == "GET" && request.path == "/api/v1/namespaces") {
      return {.body = List(1, spaces)};
    }
    if (request.method == "GET" && request.path == "/api/v1/namespaces/lab/pods") {
      waiting_asked.push_back(request.query);
      return waiting_asked.size() > 1 ? http::Response{.body = List(1, waiting)}
                                      : http::Response{.status = 503, .body = "{}"};
    }
    if (request.method == "GET" && request.path == "/apis/batch/v1/namespaces/lab/jobs") {
      return {.body = List(1, jobs)};
    }
    if (request.method == "POST") {
      api_.Note("Event " + json::parse(request.body)["note"].get<std::string>());
      return {.status = 201, .body = "{}"};
    }
    if (request.method == "DELETE") {
      api_.Note(fmt::format("DELETE {} {}",
                            request.path,
                            json::parse(request.body)["preconditions"]["uid"].get<std::string>()));
      return {.body = "{}"};
    }
    api_.Note("GET " + request.path);
    const auto owner = owners.find(request.path);
    return owner == owners.end() ? http::Response{.status = 404, .body = "{}"} : owner->second;
  }

  kubernetes::scripted::NotedApi api_{[this](const http::Request& r) { return Answer(r); }};
};

std::string Space(const std::string& enforce) {
  return fmt::format(R"({{"metadata":{{"name":"lab","uid":"lab","resourceVersion":"1","labels":)"
                     R"({{"fluxqueue.io/managed":"true","fluxqueue.io/enforce":"{}"}}}}}})",
                     enforce);
}

// `more`: of its metadata.
std::string Pod(const std::string& name, const std::string& more = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"lab","uid":"uid-{0}","resourceVersion":"1"{1}}}}})",
      name,
      more);
}

std::string OfDaemonSet(const std::string& uid) {
  return fmt::format(
      R"(,"ownerReferences":[{{"apiVersion":"apps/v1","kind":"DaemonSet","name":"agent",)"
      R"("uid":"{}","controller":true}}])",
      uid);
}

class BypassGuardTest : public ::testing::Test {
 protected:
  void Start() {
    client_ = std::make_unique<kubernetes::Client>(cluster_.config());
    guard_ = std::make_unique<BypassGuard>(
        *client_, metrics_, clock_, "binder-1", [](const delivery::QuarantineRow&) {});
    run_ =
        std::jthread([this](const std::stop_token& stop) { EXPECT_TRUE(guard_->Run(stop).ok()); });
  }

  SmallCluster cluster_;
  metrics::Registry registry_;
  BinderMetrics metrics_{registry_};
  FakeClock clock_;
  std::unique_ptr<kubernetes::Client> client_;
  std::unique_ptr<BypassGuard> guard_;
  std::jthread run_;
};

constexpr char kDaemonSet[] = "/apis/apps/v1/namespaces/lab/daemonsets/agent";

TEST_F(BypassGuardTest, APodOfADaemonSetIsLeftAloneWhereThereIsOne) {
  cluster_.spaces = Space("strict");
  cluster_.pods = Pod("real", OfDaemonSet("d-1")) + "," + Pod("forged", OfDaemonSet("d-2"));
  cluster_.owners[kDaemonSet] = {
      .body = R"({"metadata":{"name":"agent","namespace":"lab","uid":"d-1"}})"};
  Start();
  const std::vector<std::string> acts = cluster_.WaitFor(4);
  const std::string look = std::string("GET ") + kDaemonSet;
  EXPECT_THAT(acts,
              ElementsAre(look,
                          look,
                          "DELETE /api/v1/namespaces/lab/pods/forged uid-forged",
                          HasSubstr("Event forged is stopped")));
}

TEST_F(BypassGuardTest, OneThatSaysSoOfNoneIsStopped) {
  cluster_.spaces = Space("strict");
  cluster_.pods = Pod("forged", OfDaemonSet("d-1"));
  Start();
  EXPECT_EQ(cluster_.WaitFor(2)[1], "DELETE /api/v1/namespaces/lab/pods/forged uid-forged");
}

TEST_F(BypassGuardTest, WhatCannotBeLookedUpIsAskedForAgain) {
  cluster_.spaces = Space("strict");
  cluster_.pods = Pod("forged", OfDaemonSet("d-1"));
  cluster_.owners[kDaemonSet] = {.status = 403, .body = R"({"message":"no"})"};
  Start();
  const std::string look = std::string("GET ") + kDaemonSet;
  EXPECT_THAT(cluster_.WaitFor(1), ElementsAre(look));
  clock_.Advance(BypassBook::kCheckAgain);
  EXPECT_THAT(cluster_.WaitFor(2), ElementsAre(look, look));
}

TEST_F(BypassGuardTest, APodThatCannotBeReadMayBeAnybodys) {
  cluster_.spaces = Space("");
  cluster_.pods = Pod("odd", R"(,"ownerReferences":"x")");
  Start();
  EXPECT_THAT(cluster_.WaitFor(1), ElementsAre(HasSubstr("Event odd runs in a managed namespace")));
  EXPECT_NE(registry_.Text().find("fluxqueue_unreadable_objects_total{component=\"binder\"} 1\n"),
            std::string::npos);
}

TEST_F(BypassGuardTest, WhatWaitsInANamespaceThatBecomesManagedIsNamed) {
  cluster_.spaces = Space("");
  cluster_.waiting = Pod("early");
  cluster_.jobs = Pod("old");
  Start();
  std::jthread time([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      clock_.Advance(BypassBook::kCheckAgain);
      std::this_thread::sleep_for(Millis(100));
    }
  });
  EXPECT_THAT(cluster_.WaitFor(2),
              ElementsAre(HasSubstr("Event old is not in the queue of its namespace"),
                          HasSubstr("Event early is not in the queue of its namespace")));
  ASSERT_EQ(cluster_.waiting_asked.size(), 2) << "what was not answered is asked for again";
  EXPECT_THAT(cluster_.waiting_asked[1], HasSubstr("labelSelector=%21fluxqueue.io%2Fheld"));
  EXPECT_THAT(cluster_.waiting_asked[1], HasSubstr("fieldSelector=spec.nodeName%3D%2C"));
}

}  // namespace
}  // namespace fluxqueue::binder
