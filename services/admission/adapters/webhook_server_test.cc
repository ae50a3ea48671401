// The webhook with a played API server: what it looks up there, and that no review waits for it
// that need not.
#include "services/admission/adapters/webhook_server.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/http/client.h"
#include "libs/kubernetes/client.h"
#include "services/admission/adapters/second_looks.h"

namespace fluxqueue::admission {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kLong = std::chrono::seconds(20);
// What is asked for by this name is of a kind that the cluster does not have.
constexpr const char* kOfNoKind = "of-no-kind";

// Lists one managed namespace and the queue "default"; watches tell nothing. Looks for other
// objects wait until they are let go.
class PlayedApi {
 public:
  PlayedApi() {
    auto server = http::Server::Start(
        {}, http::AsyncHandler([this](const http::Request& request, http::Respond respond) {
          Answer(request, std::move(respond));
        }));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~PlayedApi() {
    Release();
    server_->Stop(Millis(0));
  }

  kubernetes::ClusterConfig config() const {
    return {.server = fmt::format("http://127.0.0.1:{}", server_->port())};
  }
  void Hold() {
    const std::lock_guard lock(mutex_);
    holds_ = true;
  }
  // Those that wait, and those to come.
  void Release() {
    std::vector<std::pair<std::string, http::Respond>> held;
    {
      const std::lock_guard lock(mutex_);
      holds_ = false;
      held.swap(held_);
    }
    for (const auto& [name, respond] : held) respond(Look(name));
  }
  void Make(const std::string& queue) {
    Make(queue, fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{}}}})", queue));
  }
  void Make(const std::string& name, const std::string& object) {
    const std::lock_guard lock(mutex_);
    objects_[name] = object;
  }
  std::vector<std::string> looks() const {
    const std::lock_guard lock(mutex_);
    return looks_;
  }
  void WaitForLooks(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(looked_.wait_for(lock, kLong, [&] { return looks_.size() >= count; }));
  }

 private:
  static http::Response Json(std::string body, int status = 200) {
    return {.status = status, .content_type = "application/json", .body = std::move(body)};
  }

  void Answer(const http::Request& request, http::Respond respond) {
    const std::string last = request.path.substr(request.path.rfind('/') + 1);
    static const std::map<std::string, std::string> kLists = {
        {"namespaces",
         R"({"metadata":{"name":"work","uid":"u1","labels":{"fluxqueue.io/managed":"true"}}})"},
        {"fluxqueues", R"({"metadata":{"name":"default","uid":"u2"},"spec":{}})"},
        {"fluxwindows", ""},
        {"limitranges", ""},
        {"runtimeclasses", ""},
        {"priorityclasses", ""}};
    const auto list = kLists.find(last);
    if (list == kLists.end()) {
      {
        const std::lock_guard lock(mutex_);
        looks_.push_back(last);
        looked_.notify_all();
        if (holds_) {
          held_.emplace_back(last, std::move(respond));
          return;
        }
      }
      return respond(Look(last));
    }
    if (request.query.find("watch=true") != std::string::npos) {
      const std::lock_guard lock(mutex_);
      watches_.push_back(std::move(respond));
      return;
    }
    respond(Json(fmt::format(
        R"({{"kind":"List","metadata":{{"resourceVersion":"1"}},"items":[{}]}})", list->second)));
  }

  http::Response Look(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(name);
    if (found == objects_.end()) {
      if (name == kOfNoKind) return {.status = 404, .body = "404 page not found\n"};
      return Json(fmt::format(R"({{"kind":"Status","code":404,"reason":"NotFound",
                                   "message":"things \"{}\" not found"}})",
                              name),
                  404);
    }
    return Json(found->second);
  }

  mutable std::mutex mutex_;
  std::condition_variable looked_;
  bool holds_ = false;
  std::map<std::string, std::string> objects_;
  std::vector<std::string> looks_;
  std::vector<std::pair<std::string, http::Respond>> held_;
  std::vector<http::Respond> watches_;  // never answered
  std::unique_ptr<http::Server> server_;
};

class WebhookServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(facts_.Start().ok());
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(synced_.wait_for(lock, kLong, [this] { return facts_.synced(); }));
    lock.unlock();
    ASSERT_TRUE(webhook_.Start().ok());
  }
  void TearDown() override {
    api_.Release();
    webhook_.Stop();
    facts_.Stop();
  }

  // Until `count` reviews wait for the look that is under way.
  void AwaitWaiting(size_t count) const {
    const std::string line = fmt::format("fluxqueue_webhook_lookups_waiting {}\n", count);
    while (registry_.Text().find(line) == std::string::npos) std::this_thread::yield();
  }

  // The answer to a Pod of this queue; empty: it names none.
  http::Response Ask(const std::string& queue, const std::string& space = "work") {
    return Send(fmt::format(
        R"("operation":"CREATE","namespace":"{}","resource":{{"group":"","resource":"pods"}},
          "userInfo":{{"username":"ann"}},"object":{{"metadata":{{"name":"p",
          "labels":{{{}}}}},"spec":{{"containers":[{{"name":"c","resources":
          {{"requests":{{"cpu":"1"}}}}}}]}}}})",
        space,
        queue.empty() ? "" : fmt::format(R"("fluxqueue.io/queue":"{}")", queue)));
  }
  // The answer to a Pod of this PodGroup.
  http::Response AskInGroup(const std::string& group) {
    return Send(fmt::format(
        R"("operation":"CREATE","namespace":"work","resource":{{"group":"","resource":"pods"}},
          "userInfo":{{"username":"ann"}},"object":{{"metadata":{{"name":"p",
          "labels":{{"scheduling.x-k8s.io/pod-group":"{}"}}}},"spec":{{"containers":[{{"name":"c",
          "resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
        group));
  }
  // The answer to the driver of this SparkApplication.
  http::Response AskAsDriver(const std::string& application) {
    return Send(fmt::format(
        R"("operation":"CREATE","namespace":"work","resource":{{"group":"","resource":"pods"}},
          "userInfo":{{"username":"ann"}},"object":{{"metadata":{{"name":"p",
          "labels":{{"sparkoperator.k8s.io/app-name":"{}","spark-role":"driver"}}}},
          "spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
        application));
  }
  // The answer to a Pod that the controller of this StatefulSet makes.
  http::Response AskOfSet(const std::string& name) {
    return Send(fmt::format(
        R"("operation":"CREATE","namespace":"work","resource":{{"group":"","resource":"pods"}},
          "userInfo":{{"username":"system:serviceaccount:kube-system:statefulset-controller"}},
          "object":{{"metadata":{{"name":"p","labels":{{"fluxqueue.io/queue":"default"}},
          "ownerReferences":[{{"apiVersion":"apps/v1","kind":"StatefulSet","name":"{}","uid":"u",
          "controller":true}}]}},"spec":{{"containers":[{{"name":"c",
          "resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
        name));
  }
  // The answer to ann's `kubectl scale` of a Deployment.
  http::Response Scale(const std::string& name) {
    return Send(fmt::format(
        R"("operation":"UPDATE","namespace":"work","name":"{}","resource":{{"group":"apps",
          "resource":"deployments"}},"subResource":"scale","userInfo":{{"username":"ann"}},
          "object":{{"kind":"Scale","spec":{{"replicas":9}}}})",
        name));
  }
  http::Response Send(const std::string& request) {
    const std::string body = fmt::format(
        R"({{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"u",{}}}}})",
        request);
    http::Client client({.base_url = fmt::format("http://127.0.0.1:{}", webhook_.port())});
    auto answer = client.Do({.method = "POST",
                             .target = "/mutate",
                             .content_type = "application/json",
                             .body = body,
                             .timeout = Millis(20'000)});
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : http::Response{.status = 0};
  }

  PlayedApi api_;
  FakeClock clock_;
  metrics::Registry registry_;
  AdmissionMetrics metrics_{registry_};
  tracing::Tracer tracer_{{}, registry_};
  kubernetes::Client client_{api_.config()};
  std::mutex mutex_;
  std::condition_variable synced_;
  FactsCache facts_{client_, metrics_, [this] {
                      const std::lock_guard lock(mutex_);
                      synced_.notify_all();
                    }};
  // One thread: who holds it up holds up all.
  WebhookServer webhook_{{.threads = 1}, {}, facts_, client_, clock_, metrics_, tracer_};
};

constexpr const char* kHeld = R"("patchType":"JSONPatch")";
constexpr const char* kUnseen = "was not looked up";

TEST_F(WebhookServerTest, ALookHoldsUpItsOwnReviewOnly) {
  api_.Hold();
  api_.Make("late");
  std::string late;
  std::jthread waiting([&] { late = Ask("late").body; });
  api_.WaitForLooks(1);
  EXPECT_THAT(Ask("default").body, HasSubstr(kHeld));
  EXPECT_EQ(late, "");
  api_.Release();
  waiting.join();
  EXPECT_THAT(late, HasSubstr(kHeld));
  EXPECT_THAT(api_.looks(), ElementsAre("late"));
}

TEST_F(WebhookServerTest, WhatWasAbsentIsNotLookedUpAgainForASecond) {
  EXPECT_THAT(Ask("none").body, HasSubstr("there is no such FluxQueue"));
  EXPECT_THAT(Ask("none").body, HasSubstr("there is no such FluxQueue"));
  EXPECT_THAT(api_.looks(), ElementsAre("none"));
  api_.Make("none");
  clock_.Advance(SecondLooks::kAbsentFor);
  EXPECT_THAT(Ask("none").body, HasSubstr(kHeld));
  EXPECT_THAT(api_.looks(), ElementsAre("none", "none"));
}

TEST_F(WebhookServerTest, OnlySoManyWaitForALook) {
  api_.Hold();
  std::vector<std::string> answers(SecondLooks::kMostWaiting + 1);
  std::vector<std::jthread> clients;
  clients.emplace_back([&] { answers[0] = Ask("q0").body; });
  api_.WaitForLooks(1);
  for (size_t i = 1; i < answers.size(); ++i) {
    clients.emplace_back([&, i] { answers[i] = Ask(fmt::format("q{}", i)).body; });
  }
  AwaitWaiting(SecondLooks::kMostWaiting);
  EXPECT_THAT(Ask("more").body, AllOf(HasSubstr("there is no such FluxQueue"), HasSubstr(kUnseen)));
  // What a look might have held is not let past the queue.
  const http::Response left = Ask("", "new");
  EXPECT_EQ(left.status, 503);
  EXPECT_THAT(left.body, HasSubstr(kUnseen));
  EXPECT_THAT(registry_.Text(), HasSubstr("fluxqueue_webhook_lookups_refused_total 2"));
  api_.Release();
  clients.clear();
  for (const std::string& answer : answers) {
    EXPECT_THAT(answer, AllOf(HasSubstr("there is no such FluxQueue"), Not(HasSubstr(kUnseen))));
  }
}

// Or who scales in a loop would take the places of all others.
TEST_F(WebhookServerTest, OfANamespaceFewScalesWait) {
  api_.Hold();
  std::vector<std::jthread> clients;
  for (size_t i = 0; i <= SecondLooks::kMostUnwatchedInANamespace; ++i) {
    clients.emplace_back([this] { Scale("web"); });
    api_.WaitForLooks(1);
    AwaitWaiting(i);
  }
  EXPECT_THAT(Scale("web").body, AllOf(HasSubstr("could not be looked up"), HasSubstr(kUnseen)));
  EXPECT_THAT(AskOfSet("db").body, AllOf(HasSubstr(kHeld), Not(HasSubstr(kUnseen))))
      << "whether it is of a gang is not known, and it is held all the same";
  api_.Make("late");
  std::string late;
  clients.emplace_back([&] { late = Ask("late").body; });
  AwaitWaiting(SecondLooks::kMostUnwatchedInANamespace + 1);
  api_.Release();
  clients.clear();
  EXPECT_THAT(late, HasSubstr(kHeld));
}

TEST_F(WebhookServerTest, WhoHasWaitedForTooLongIsAnsweredWithoutALook) {
  api_.Hold();
  std::string first;
  std::string second;
  std::jthread one([&] { first = Ask("q1").body; });
  api_.WaitForLooks(1);
  std::jthread two([&] { second = Ask("q2").body; });
  AwaitWaiting(1);
  clock_.Advance(SecondLooks::kPatience + Millis(1));
  api_.Release();
  one.join();
  two.join();
  EXPECT_THAT(first, Not(HasSubstr(kUnseen)));
  EXPECT_THAT(second, HasSubstr(kUnseen));
  EXPECT_THAT(api_.looks(), ElementsAre("q1"));
}

TEST_F(WebhookServerTest, AnApiServerThatIsSlowEndsTheLook) {
  api_.Hold();
  EXPECT_THAT(Ask("q").body, HasSubstr("there is no such FluxQueue"));  // it is not let go
  // No answer is no absence.
  api_.Release();
  api_.Make("q");
  EXPECT_THAT(Ask("q").body, HasSubstr(kHeld));
}

TEST_F(WebhookServerTest, WhatIsScaledIsLookedUpEachTime) {
  constexpr const char* kAllowed = R"("allowed":true)";
  EXPECT_THAT(Scale("web").body, HasSubstr(kAllowed));  // there is none
  const auto of = [](const char* user) {
    return fmt::format(R"({{"metadata":{{"name":"web"}},"spec":{{"template":{{"metadata":
        {{"annotations":{{"fluxqueue.io/user":"{}"}}}}}}}}}})",
                       user);
  };
  api_.Make("web", of("bob"));
  EXPECT_THAT(Scale("web").body, HasSubstr("the pods are another's"));
  api_.Make("web", of("ann"));
  EXPECT_THAT(Scale("web").body, HasSubstr(kAllowed));
  // Whose it is must be known.
  api_.Hold();
  EXPECT_THAT(Scale("web").body, HasSubstr("could not be looked up"));
  EXPECT_THAT(api_.looks(), ElementsAre("web", "web", "web", "web"));
}

TEST_F(WebhookServerTest, OfHowManyPodsAGroupIsIsLookedUpOnceForMany) {
  EXPECT_THAT(AskInGroup("train").body, HasSubstr("podgroups 'train': it says of how many pods"));
  api_.Make("train", R"({"spec":{"minMember":3}})");
  EXPECT_THAT(AskInGroup("train").body, HasSubstr("is not there")) << "as a moment ago";
  clock_.Advance(SecondLooks::kAbsentFor);
  for (int pod = 0; pod < 20; ++pod) EXPECT_THAT(AskInGroup("train").body, HasSubstr(kHeld));
  EXPECT_THAT(api_.looks(), ElementsAre("train", "train"));
  api_.Make("bad", R"({"spec":{"minMember":"many"}})");
  EXPECT_THAT(AskInGroup("bad").body, AllOf(HasSubstr("podgroups 'bad'"), HasSubstr("minMember")));
  EXPECT_THAT(AskInGroup(kOfNoKind).body, HasSubstr(kHeld)) << "placed by itself";
  api_.Hold();
  EXPECT_THAT(AskInGroup("slow").body, HasSubstr("could not be looked up"));
}

TEST_F(WebhookServerTest, WhatSaysWhichPlacesADriverHasIsLookedUpEachTime) {
  const http::Response without = AskAsDriver("pi");
  EXPECT_THAT(without.body, HasSubstr(kHeld));
  api_.Make("pi", R"({"spec":{"executor":{"instances":3}}})");
  const http::Response with = AskAsDriver("pi");
  EXPECT_THAT(with.body, HasSubstr(kHeld));
  EXPECT_GT(with.body.size(), without.body.size()) << "the record is in its patch";
  EXPECT_THAT(AskAsDriver(kOfNoKind).body, HasSubstr(kHeld));
  api_.Hold();
  EXPECT_THAT(AskAsDriver("pi").body, HasSubstr("could not be looked up"));
  EXPECT_THAT(api_.looks(), ElementsAre("pi", "pi", kOfNoKind, "pi"));
}

TEST_F(WebhookServerTest, CountsWhatItsServerTurnsAway) {
  http::Client client({.base_url = fmt::format("http://127.0.0.1:{}", webhook_.port())});
  EXPECT_EQ(client.Do({.method = "POST", .body = std::string(5 << 20, 'x')})->status, 413);
  EXPECT_THAT(registry_.Text(),
              HasSubstr("fluxqueue_webhook_refusals_total{reason=\"too_large\"} 1"));
}

}  // namespace
}  // namespace fluxqueue::admission
