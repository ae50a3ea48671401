#include "services/binder/adapters/provisioner.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/http/server.h"
#include "libs/kubernetes/testing_scripted_api.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;
using ::testing::ElementsAre;

// Has one Job, and the ProvisioningRequests that are made.
class Autoscaled {
 public:
  explicit Autoscaled(bool requested = false) : requested_(requested) {
    auto server = http::Server::Start({}, [this](const http::Request& r) { return Answer(r); });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  kubernetes::ClusterConfig config() const {
    return {.server = fmt::format("http://127.0.0.1:{}", server_->port())};
  }
  // "POST podtemplates", "DELETE name" and so on so far, when there are as many.
  std::vector<std::string> WaitFor(size_t many) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(done_.wait_for(lock, std::chrono::seconds(20), [&] {
      return acts_.size() >= many;
    })) << many;
    return acts_;
  }

 private:
  http::Response Answer(const http::Request& request) {
    const std::lock_guard lock(mutex_);
    const std::string last = request.path.substr(request.path.rfind('/') + 1);
    if (request.method == "GET" && last == "train") {
      return {.body = R"({"spec": {"template": {"spec": {"containers": []}}}})"};
    }
    acts_.push_back(request.method + " " + last);
    done_.notify_all();
    if (request.method == "GET") {
      return {.body = kubernetes::scripted::List(1, requested_ ? kRequest : "")};
    }
    if (request.method == "POST" && last == "provisioningrequests") requested_ = true;
    if (request.method == "DELETE") requested_ = false;
    return {.status = request.method == "POST" ? 201 : 200, .body = "{}"};
  }

  static constexpr const char* kRequest =
      R"({"metadata": {"name": "fluxqueue-a-0", "namespace": "lab", "uid": "u"}})";
  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<std::string> acts_;
  bool requested_;
  std::unique_ptr<http::Server> server_;
};

TEST(ProvisionerTest, AsksForWhatLacksNodes) {
  Autoscaled cluster;
  kubernetes::Client client{cluster.config()};
  const RealClock clock;
  Provisioner provisioner(client, clock, {{"gpu", "atomic.example.com"}});
  std::jthread thread(
      [&](const std::stop_token& stop) { EXPECT_TRUE(provisioner.Run(stop).ok()); });
  JobFact fact;
  fact.set_pool("gpu");
  fact.mutable_workload()->set_kind("Job");
  fact.mutable_workload()->set_suspended(true);
  fact.mutable_workload()->set_uid("a");
  fact.mutable_workload()->set_namespace_("lab");
  fact.mutable_workload()->set_name("train");
  provisioner.Lack({fact});
  EXPECT_THAT(
      cluster.WaitFor(3),
      ElementsAre("GET provisioningrequests", "POST podtemplates", "POST provisioningrequests"));
}

TEST(ProvisionerTest, WithoutClassesItTakesBackOnceWhatWasAskedForBefore) {
  Autoscaled cluster(/*requested=*/true);
  kubernetes::Client client{cluster.config()};
  const RealClock clock;
  Provisioner provisioner(client, clock, {});
  std::jthread thread(
      [&](const std::stop_token& stop) { EXPECT_TRUE(provisioner.Run(stop).ok()); });
  provisioner.Lack({JobFact()});
  EXPECT_THAT(
      cluster.WaitFor(3),
      ElementsAre("GET provisioningrequests", "DELETE fluxqueue-a-0", "DELETE fluxqueue-a-0"));
}

}  // namespace
}  // namespace fluxqueue::binder
