#include "tools/fluxqueue/release_run.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/http/server.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Pods and Jobs by path, in pages of two; patches are applied, with what they ask for first.
class SmallCluster {
 public:
  SmallCluster() {
    auto server = http::Server::Start({.threads = 12, .request_timeout = Millis(60'000)},
                                      [this](const http::Request& r) { return Answer(r); });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  kubernetes::ClusterConfig config() const {
    return {.server = fmt::format("http://127.0.0.1:{}", server_->port())};
  }
  void Add(const std::string& list, json object) {
    object["metadata"]["namespace"] = "lab";
    object["metadata"]["resourceVersion"] = "1";
    lists_[list].push_back(std::move(object));
  }
  json Find(const std::string& list, const std::string& name) {
    const std::lock_guard lock(mutex_);
    json* found = At(list, name);
    return found == nullptr ? json() : *found;
  }

  // What the first writes are answered, one each; then they are done.
  std::vector<http::Response> refusals{};
  // Done to an object just before the first write to it is judged.
  std::function<void(json*)> meanwhile{};
  std::atomic<int> most_at_once = 0;
  int writes = 0;

 private:
  http::Response Answer(const http::Request& request) {
    const std::string last = request.path.substr(request.path.rfind('/') + 1);
    if (request.method == "PATCH") {
      const int now = ++at_once_;
      if (now > most_at_once) most_at_once = now;
      std::this_thread::sleep_for(Millis(20));
      http::Response answer = Patch(request, last);
      --at_once_;
      return answer;
    }
    const std::lock_guard lock(mutex_);
    const bool is_list = lists_.contains(last) || last == "fluxjobs" || last == "jobs";
    if (is_list) return Page(last, request.query);
    json* found = At(request.path.find("/pods/") != std::string::npos ? "pods" : "jobs", last);
    return found == nullptr ? http::Response{.status = 404, .body = "{}"}
                            : http::Response{.body = found->dump()};
  }

  http::Response Page(const std::string& list, const std::string& query) {
    if (!lists_.contains(list)) return {.status = 404, .body = "{}"};
    // The second list of pods is of those without the label: here all have it.
    if (query.find("nodeName") != std::string::npos) return ListOf({}, "");
    const size_t at = query.find("continue=");
    const size_t begin = at == std::string::npos ? 0 : std::stoul(query.substr(at + 9));
    const auto& all = lists_[list];
    json items = json::array();
    for (size_t i = begin; i < std::min(begin + 2, all.size()); ++i) items.push_back(all[i]);
    return ListOf(items, begin + 2 < all.size() ? std::to_string(begin + 2) : "");
  }
  static http::Response ListOf(const json& items, const std::string& next) {
    return {.body = json{{"metadata", {{"resourceVersion", "1"}, {"continue", next}}},
                         {"items", items.is_null() ? json::array() : items}}
                        .dump()};
  }

  http::Response Patch(const http::Request& request, const std::string& name) {
    const std::lock_guard lock(mutex_);
    ++writes;
    if (!refusals.empty()) {
      http::Response refusal = refusals.front();
      refusals.erase(refusals.begin());
      return refusal;
    }
    json* found = At(request.path.find("/pods/") != std::string::npos ? "pods" : "jobs", name);
    if (found == nullptr) return {.status = 404, .body = "{}"};
    if (meanwhile) std::exchange(meanwhile, nullptr)(found);
    const json patch = json::parse(request.body);
    if (patch["metadata"]["resourceVersion"] != (*found)["metadata"]["resourceVersion"]) {
      return {.status = 409, .body = R"({"reason": "Conflict"})"};
    }
    found->merge_patch(patch);
    return {.body = found->dump()};
  }

  json* At(const std::string& list, const std::string& name) {
    for (json& object : lists_[list]) {
      if (object["metadata"]["name"] == name) return &object;
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::map<std::string, std::vector<json>> lists_;
  std::atomic<int> at_once_ = 0;
  std::unique_ptr<http::Server> server_;
};

json HeldJob(const std::string& name) {
  return {{"metadata",
           {{"name", name},
            {"uid", "uid-" + name},
            {"labels", {{"fluxqueue.io/held", "direct"}}},
            {"annotations", {{"fluxqueue.io/suspended-by", "fluxqueue"}}}}},
          {"spec",
           {{"suspend", true},
            {"template", {{"metadata", {{"labels", {{"fluxqueue.io/held", "direct"}}}}}}}}}};
}
json GatedPod(const std::string& name) {
  return {{"metadata",
           {{"name", name}, {"uid", "uid-" + name}, {"labels", {{"fluxqueue.io/held", "pinned"}}}}},
          {"spec", {{"schedulingGates", {{{"name", "fluxqueue.io/gate"}}}}}},
          {"status", {{"phase", "Pending"}}}};
}
json FluxJob(const std::string& kind, const std::string& name, const std::string& reason) {
  return {{"metadata", {{"name", kind + name}}},
          {"spec", {{"workload", {{"kind", kind}, {"name", name}, {"uid", "uid-" + name}}}}},
          {"status", {{"state", "Pending"}, {"reason", reason}}}};
}

class ReleaseRunTest : public ::testing::Test {
 protected:
  void AddJob(const std::string& name, const std::string& reason = "Busy") {
    cluster_.Add("jobs", HeldJob(name));
    cluster_.Add("fluxjobs", FluxJob("Job", name, reason));
  }
  // "Job a resume", and ": error" behind it.
  std::vector<std::string> Run(const ReleaseOptions& options) {
    cluster_.Add("pods", GatedPod("last"));
    cluster_.Add("fluxjobs", FluxJob("Pod", "last", "Busy"));
    kubernetes::Client client(cluster_.config());
    const auto all = ReleaseAll(client, options);
    EXPECT_TRUE(all.ok()) << all.status();
    std::vector<std::string> texts;
    if (!all.ok()) return texts;
    for (const Released& one : *all) {
      texts.push_back(fmt::format("{} {} {}{}{}",
                                  one.release.kind,
                                  one.release.name,
                                  Name(one.release.fate),
                                  one.error.empty() ? "" : ": ",
                                  one.error));
    }
    return texts;
  }
  bool Suspended(const std::string& name) {
    return cluster_.Find("jobs", name)["spec"]["suspend"].get<bool>();
  }

  SmallCluster cluster_;
};

TEST_F(ReleaseRunTest, APreviewWritesNothing) {
  AddJob("a");
  EXPECT_THAT(Run({}), ElementsAre("Job a resume", "Pod last ungate"));
  EXPECT_EQ(cluster_.writes, 0);
}

TEST_F(ReleaseRunTest, AllPagesAreLetGoOfSomeAtATime) {
  for (int i = 0; i < 31; ++i) AddJob(fmt::format("j{}", i));
  size_t told = 0;
  EXPECT_THAT(
      Run({.really = true, .at_once = 4, .progress = [&](size_t done, size_t) { told = done; }}),
      ::testing::SizeIs(32));
  for (int i = 0; i < 31; ++i) EXPECT_FALSE(Suspended(fmt::format("j{}", i))) << i;
  EXPECT_EQ(cluster_.Find("pods", "last")["spec"]["schedulingGates"], json::array());
  EXPECT_LE(cluster_.most_at_once, 4);
  EXPECT_GE(cluster_.most_at_once, 2);
  EXPECT_EQ(told, 1) << "of the pods";
}

TEST_F(ReleaseRunTest, ASecondRunFindsWhatTheFirstHasLeft) {
  AddJob("a");
  AddJob("held", "Held");
  cluster_.refusals = {{.status = 403, .body = R"({"message": "not you"})"}};
  EXPECT_THAT(Run({.really = true, .at_once = 1}),
              ElementsAre(HasSubstr("Job a resume: patch jobs lab/a: not you"),
                          "Job held keep",
                          "Pod last ungate"));
  EXPECT_TRUE(Suspended("a"));
  Run({.really = true});
  EXPECT_FALSE(Suspended("a"));
  EXPECT_TRUE(Suspended("held"));
}

TEST_F(ReleaseRunTest, WhatItsUserHoldsMeanwhileStays) {
  AddJob("a");
  cluster_.meanwhile = [](json* job) {
    (*job)["metadata"]["resourceVersion"] = "2";
    (*job)["metadata"]["annotations"]["fluxqueue.io/hold"] = "true";
  };
  EXPECT_THAT(Run({.really = true}), ElementsAre("Job a keep", "Pod last ungate"));
  EXPECT_TRUE(Suspended("a"));
}

TEST_F(ReleaseRunTest, AServerThatIsBusyOrKnowsAnOldPolicyIsAskedAgain) {
  AddJob("a");
  cluster_.refusals = {
      {.status = 429, .body = "{}"},
      {.status = 403,
       .body = R"({"message": "ValidatingAdmissionPolicy 'fluxqueue-keys' denied request"})"}};
  EXPECT_THAT(Run({.really = true, .at_once = 1}), ElementsAre("Job a resume", "Pod last ungate"));
  EXPECT_FALSE(Suspended("a"));
}

TEST_F(ReleaseRunTest, WithoutFluxJobsNothingIsStarted) {
  cluster_.Add("jobs", HeldJob("a"));
  kubernetes::Client client(cluster_.config());
  cluster_.Add("pods", GatedPod("b"));
  const auto all = ReleaseAll(client, {.really = true});
  ASSERT_TRUE(all.ok()) << all.status();
  for (const Released& one : *all) EXPECT_EQ(one.release.fate, Fate::kKeep);
  EXPECT_TRUE(Suspended("a"));
}

}  // namespace
}  // namespace fluxqueue::cli
