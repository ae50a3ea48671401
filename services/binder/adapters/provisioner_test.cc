#include "services/binder/adapters/provisioner.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;
using ::testing::ElementsAre;

// Its cluster has one Job, and the ProvisioningRequests that are made. Noted is "POST
// podtemplates", "DELETE name" and so on.
class ProvisionerTest : public ::testing::Test {
 protected:
  http::Response Answer(const http::Request& request) {
    const std::string last = request.path.substr(request.path.rfind('/') + 1);
    if (request.method == "GET" && last == "train") {
      return {.body = R"({"spec": {"template": {"spec": {"containers": []}}}})"};
    }
    api_.Note(request.method + " " + last);
    if (request.method == "GET") {
      return {.body = kubernetes::scripted::List(1, requested_ ? kRequest : "")};
    }
    return {.status = request.method == "POST" ? 201 : 200, .body = "{}"};
  }

  static constexpr const char* kRequest =
      R"({"metadata": {"name": "fluxqueue-a-0", "namespace": "lab", "uid": "u"}})";
  std::atomic<bool> requested_ = false;
  kubernetes::scripted::NotedApi api_{[this](const http::Request& r) { return Answer(r); }};
  kubernetes::Client client_{api_.config()};
  const RealClock clock_;
};

TEST_F(ProvisionerTest, AsksForWhatLacksNodes) {
  Provisioner provisioner(client_, clock_, {{"gpu", "atomic.example.com"}});
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
      api_.WaitFor(3),
      ElementsAre("GET provisioningrequests", "POST podtemplates", "POST provisioningrequests"));
}

TEST_F(ProvisionerTest, WithoutClassesItTakesBackOnceWhatWasAskedForBefore) {
  requested_ = true;
  Provisioner provisioner(client_, clock_, {});
  std::jthread thread(
      [&](const std::stop_token& stop) { EXPECT_TRUE(provisioner.Run(stop).ok()); });
  provisioner.Lack({JobFact()});
  EXPECT_THAT(
      api_.WaitFor(3),
      ElementsAre("GET provisioningrequests", "DELETE fluxqueue-a-0", "DELETE fluxqueue-a-0"));
}

}  // namespace
}  // namespace fluxqueue::binder
