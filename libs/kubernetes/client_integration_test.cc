// What the real API server accepts and answers.
#include <condition_variable>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/jobspec.h"
#include "libs/kubernetes/node.h"
#include "libs/kubernetes/watch.h"
#include "libs/testing/mini_cluster.h"

namespace fluxqueue::kubernetes {
namespace {

using ::testing::HasSubstr;

class ApiServer : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto cluster = testing::MiniCluster::Start({.nodes = 2});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = cluster->release();
    auto config = LoadClusterConfig(cluster_->kubeconfig());
    ASSERT_TRUE(config.ok()) << config.status();
    client_ = new Client(*config);
  }
  static void TearDownTestSuite() {
    delete client_;
    delete cluster_;
  }
  void SetUp() override { ASSERT_NE(client_, nullptr) << "the cluster did not start"; }

  static Pod MakePod(const std::string& name, const std::string& more = "") {
    const auto text = client_->Create(
        kPods,
        "default",
        fmt::format(
            R"({{"metadata":{{"name":"{}","labels":{{"test":"{}"}}}},"spec":{{)"
            R"("schedulerName":"fluxqueue"{},"containers":[{{"name":"c","image":"i"}}]}}}})",
            name,
            ::testing::UnitTest::GetInstance()->current_test_info()->name(),
            more));
    EXPECT_TRUE(text.ok()) << text.status();
    return *ParsePod(text.ok() ? *text : "{}");
  }
  static Pod GetPod(const std::string& name) {
    const auto text = client_->Get(kPods, "default", name);
    EXPECT_TRUE(text.ok()) << text.status();
    return *ParsePod(text.ok() ? *text : "{}");
  }
  static std::string SomeNode() {
    std::string name;
    EXPECT_TRUE(client_
                    ->List(kNodes,
                           {},
                           [&](std::string_view text) {
                             name = ParseNode(text)->meta.name;
                             return absl::OkStatus();
                           })
                    .ok());
    return name;
  }

  static testing::MiniCluster* cluster_;
  static Client* client_;
};

testing::MiniCluster* ApiServer::cluster_ = nullptr;
Client* ApiServer::client_ = nullptr;

TEST_F(ApiServer, ABindingCarriesAnnotationsAndPreconditions) {
  const Pod pod = MakePod("bind");
  Binding binding{
      .space = "default",
      .pod = "bind",
      .node = SomeNode(),
      .annotations = {{"fluxqueue.io/job-id", "j1"}, {"fluxqueue.io/allocation", "1.0.0/1"}}};
  binding.preconditions = {"00000000-0000-0000-0000-000000000000", ""};
  const absl::Status other_uid = client_->Bind(binding);
  EXPECT_TRUE(absl::IsAborted(other_uid)) << other_uid;
  binding.preconditions = {pod.meta.uid, "1"};
  const absl::Status stale = client_->Bind(binding);
  EXPECT_TRUE(absl::IsAborted(stale)) << stale;
  EXPECT_FALSE(GetPod("bind").Bound());

  binding.preconditions = {pod.meta.uid, pod.meta.resource_version};
  const absl::Status bound = client_->Bind(binding);
  ASSERT_TRUE(bound.ok()) << bound;
  const Pod after = GetPod("bind");
  EXPECT_EQ(after.spec.node_name, binding.node);
  EXPECT_EQ(after.meta.annotations.at("fluxqueue.io/job-id"), "j1");
  EXPECT_EQ(after.meta.annotations.at("fluxqueue.io/allocation"), "1.0.0/1");

  binding.preconditions = {pod.meta.uid, ""};
  EXPECT_TRUE(absl::IsAborted(client_->Bind(binding))) << "bound already, to the same node";
  binding.pod = "none";
  EXPECT_TRUE(absl::IsNotFound(client_->Bind(binding)));
}

TEST_F(ApiServer, AGatedPodCannotBeBound) {
  const Pod pod = MakePod("gated", R"(,"schedulingGates":[{"name":"fluxqueue.io/gate"}])");
  const absl::Status status =
      client_->Bind({.space = "default", .pod = "gated", .node = SomeNode()});
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  // The pinned patch: node affinity and the gate's removal in one.
  const auto patched = client_->Patch(
      kPods,
      "default",
      "gated",
      PatchType::kMerge,
      fmt::format(
          R"({{"metadata":{{"uid":"{}","resourceVersion":"{}"}},"spec":{{"schedulingGates":null,)"
          R"("affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":)"
          R"({{"nodeSelectorTerms":[{{"matchFields":[{{"key":"metadata.name","operator":"In",)"
          R"("values":["n"]}}]}}]}}}}}}}}}})",
          pod.meta.uid,
          pod.meta.resource_version));
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_TRUE(ParsePod(*patched)->spec.gates.empty());
}

TEST_F(ApiServer, PatchesAndDeletesHavePreconditions) {
  const Pod pod = MakePod("fence");
  const auto fence = [&](const std::string& uid, const std::string& version) {
    return client_
        ->Patch(kPods,
                "default",
                "fence",
                PatchType::kMerge,
                fmt::format(R"({{"metadata":{{"uid":"{}","resourceVersion":"{}",)"
                            R"("annotations":{{"fluxqueue.io/fenced":"1"}}}}}})",
                            uid,
                            version))
        .status();
  };
  EXPECT_TRUE(absl::IsAborted(fence(pod.meta.uid, "1"))) << fence(pod.meta.uid, "1");
  const absl::Status other =
      fence("00000000-0000-0000-0000-000000000000", pod.meta.resource_version);
  EXPECT_TRUE(absl::IsAborted(other)) << other;
  EXPECT_TRUE(fence(pod.meta.uid, pod.meta.resource_version).ok());
  // The fence works: a Binding with the version of before is late.
  EXPECT_TRUE(
      absl::IsAborted(client_->Bind({.space = "default",
                                     .pod = "fence",
                                     .node = "n",
                                     .preconditions = {pod.meta.uid, pod.meta.resource_version}})));
  const absl::Status test_failed =
      client_
          ->Patch(kPods,
                  "default",
                  "fence",
                  PatchType::kJson,
                  R"([{"op":"test","path":"/metadata/uid","value":"x"}])")
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(test_failed)) << test_failed;
  EXPECT_TRUE(
      absl::IsAborted(client_->Delete(kPods, "default", "fence", {.preconditions = {"x", ""}})));
  EXPECT_TRUE(
      client_
          ->Delete(
              kPods, "default", "fence", {.preconditions = {pod.meta.uid, ""}, .grace_period_s = 0})
          .ok());
  EXPECT_TRUE(absl::IsNotFound(client_->Delete(kPods, "default", "fence")));
}

TEST_F(ApiServer, ErrorsAreMapped) {
  MakePod("twice");
  const auto again = client_->Create(
      kPods,
      "default",
      R"({"metadata":{"name":"twice"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists) << again.status();
  EXPECT_THAT(Message(again.status()),
              HasSubstr("create pods default: pods \"twice\" already exists"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      client_->Create(kPods, "default", R"({"metadata":{"name":"a"},"spec":{}})").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Create(kPods, "default", "nonsense").status()));
  EXPECT_TRUE(absl::IsNotFound(client_->Get(kPods, "default", "none").status()));
  EXPECT_TRUE(absl::IsNotFound(client_->Get(kFluxJobs, "default", "none").status()));
  EXPECT_TRUE(client_->Ready().ok());
  auto config = LoadClusterConfig(cluster_->kubeconfig());
  ASSERT_TRUE(config.ok());
  config->tls.certificate.clear();
  config->tls.key.clear();
  config->token = "wrong";
  Client stranger(*config);
  EXPECT_EQ(stranger.Get(kPods, "default", "a").status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(ApiServer, ListsComeInPagesAndRealObjectsParse) {
  for (int i = 0; i < 7; ++i) MakePod(fmt::format("page-{}", i));
  std::vector<std::string> names;
  const auto version = client_->List(
      kPods,
      {.space = "default", .labels = "test=ListsComeInPagesAndRealObjectsParse"},
      [&](std::string_view text) {
        const auto pod = ParsePod(text);
        EXPECT_TRUE(pod.ok()) << pod.status();
        EXPECT_EQ(DemandOfPod(pod->spec, pod->meta.namespace_name, {})->requests,
                  (Amounts{{"pods", 1}}));
        names.push_back(pod->meta.name);
        return absl::OkStatus();
      },
      2);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_GT(std::stoll(*version), 0);
  EXPECT_EQ(names.size(), 7U);
  int nodes = 0;
  EXPECT_TRUE(client_
                  ->List(kNodes,
                         {},
                         [&](std::string_view text) {
                           const auto node = ParseNode(text);
                           EXPECT_TRUE(node.ok()) << node.status();
                           EXPECT_GT(ToAmounts(ToEvent(*node, {}).allocatable()).at("cpu"), 0);
                           ++nodes;
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(nodes, 2);
}

// What a watcher has told: name → uid of what exists.
class View {
 public:
  void operator()(const WatchEvent& event) {
    const std::lock_guard lock(mutex_);
    const std::string name(event.name);
    if (event.kind == WatchEvent::Kind::kSynced) ++syncs_;
    if (event.kind == WatchEvent::Kind::kAdded) {
      EXPECT_FALSE(objects_.contains(name)) << name << " was there already";
    }
    if (event.kind == WatchEvent::Kind::kAdded || event.kind == WatchEvent::Kind::kModified) {
      EXPECT_EQ(ParseMeta(event.object)->uid, event.uid);
      objects_[name] = event.uid;
    }
    if (event.kind == WatchEvent::Kind::kDeleted) {
      EXPECT_EQ(objects_[name], event.uid);
      objects_.erase(name);
    }
    changed_.notify_all();
  }
  // Waits until this is so; true if it came so far.
  bool Becomes(const std::map<std::string, std::string>& objects, int syncs) {
    std::unique_lock lock(mutex_);
    const auto so = [&] { return objects_ == objects && syncs_ >= syncs; };
    if (changed_.wait_for(lock, std::chrono::seconds(40), so)) return true;
    for (const auto& [name, uid] : objects_) ADD_FAILURE() << "seen: " << name << " " << uid;
    ADD_FAILURE() << "synced " << syncs_ << " times";
    return false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> objects_;
  int syncs_ = 0;
};

TEST_F(ApiServer, AWatchSurvivesTheApiServersRestart) {
  const std::string a = MakePod("watch-a").meta.uid;
  View view;
  Watcher watcher(
      *client_,
      {.resource = kPods,
       .selector = {.space = "default", .labels = "test=AWatchSurvivesTheApiServersRestart"}},
      [&](const WatchEvent& event) { view(event); });
  ASSERT_TRUE(view.Becomes({{"watch-a", a}}, 1));
  const std::string b = MakePod("watch-b").meta.uid;
  ASSERT_TRUE(view.Becomes({{"watch-a", a}, {"watch-b", b}}, 1));
  ASSERT_TRUE(client_->Delete(kPods, "default", "watch-a", {.grace_period_s = 0}).ok());
  ASSERT_TRUE(view.Becomes({{"watch-b", b}}, 1));
  EXPECT_TRUE(watcher.Health().ok()) << watcher.Health();

  ASSERT_TRUE(cluster_->KillApiServer().ok());
  const absl::Status down = client_->Ready();
  EXPECT_TRUE(absl::IsUnavailable(down)) << down;
  ASSERT_TRUE(cluster_->StartApiServer().ok());
  ASSERT_TRUE(client_->Delete(kPods, "default", "watch-b", {.grace_period_s = 0}).ok());
  const std::string again = MakePod("watch-b").meta.uid;
  const std::string c = MakePod("watch-c").meta.uid;
  ASSERT_TRUE(view.Becomes({{"watch-b", again}, {"watch-c", c}}, 1));
}

TEST_F(ApiServer, AnExpiredVersionIsSaid) {
  std::string line;
  const absl::Status status = client_->Watch(kPods,
                                             {.space = "default"},
                                             "1",
                                             Millis(5'000),
                                             [&](std::string_view piece) {
                                               line += piece;
                                               return line.find('\n') == std::string::npos;
                                             },
                                             {});
  // By status or by an ERROR event, as the API server likes.
  EXPECT_TRUE(absl::IsOutOfRange(status) || line.find("\"code\":410") != std::string::npos)
      << status << line;
}

}  // namespace
}  // namespace fluxqueue::kubernetes
