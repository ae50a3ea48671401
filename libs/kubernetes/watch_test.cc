// The watcher and the client against a scripted API server; client_integration_test.cc has the real
// one.
#include "libs/kubernetes/watch.h"

#include <array>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"

namespace fluxqueue::kubernetes {
namespace {

using scripted::Line;
using scripted::List;
using scripted::Object;
using scripted::ScriptedApi;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Recorder {
 public:
  void operator()(const WatchEvent& event) {
    const std::lock_guard lock(mutex_);
    static constexpr std::array<const char*, 4> kNames = {"added", "modified", "deleted", "synced"};
    const std::string kind = kNames[static_cast<size_t>(event.kind)];
    events_.push_back(event.kind == WatchEvent::Kind::kSynced
                          ? kind
                          : fmt::format("{} {}/{} {}@{}{}",
                                        kind,
                                        event.space,
                                        event.name,
                                        event.uid,
                                        event.resource_version,
                                        event.object.empty() ? " gone" : ""));
    changed_.notify_all();
  }
  std::vector<std::string> WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return events_.size() >= count; });
    return events_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

TEST(Watcher, TellsChangesAndAfterANewListOnlyTheDifferences) {
  const std::string expired = R"({"kind":"Status","code":410,"message":"too old"})";
  ScriptedApi api({
      {.body = List(10, Object("a", "u1", 1), "more")},
      {.body = List(10, Object("b", "u2", 2))},
      {.body = Line("ADDED", Object("c", "u3", 11)) +
               Line("BOOKMARK", R"({"metadata":{"resourceVersion":"15"}})")},
      {.body = Line("ERROR", expired)},
      {.body = List(20, Object("a", "u1", 1) + "," + Object("b", "u9", 16))},
      {.body = Line("MODIFIED", Object("a", "u1", 21))},
      {.body = Line("DELETED", Object("a", "u1", 22))},
      {.status = 410, .body = expired},
      {.body = List(30, "")},
  });
  Client client(api.config());
  Recorder recorder;
  Watcher watcher(client,
                  {.resource = kPods, .retry_min = Millis(1), .retry_max = Millis(5)},
                  [&](const WatchEvent& event) { recorder(event); });
  EXPECT_THAT(recorder.WaitFor(12),
              ElementsAre("added lab/a u1@1",
                          "added lab/b u2@2",
                          "synced",
                          "added lab/c u3@11",
                          "deleted lab/b u2@ gone",
                          "added lab/b u9@16",
                          "deleted lab/c u3@ gone",
                          "synced",
                          "modified lab/a u1@21",
                          "deleted lab/a u1@22",
                          "deleted lab/b u9@ gone",
                          "synced"));
  watcher.Stop();
  EXPECT_TRUE(watcher.synced());
  std::vector<std::string> asked = api.asked();
  asked.resize(9);
  EXPECT_THAT(asked, ElementsAre("list", "list", "10", "15", "list", "20", "21", "22", "list"));
}

TEST(Watcher, TellsAllThatARestoredStoreShows) {
  ScriptedApi api({
      {.body = List(10, Object("a", "u1", 5) + "," + Object("b", "u2", 8))},
      {.body = Line("MODIFIED", Object("a", "u1", 11))},
      {.status = 410},
      {.body = List(9, Object("b", "u2", 8) + "," + Object("a", "u1", 5))},
      {.body = List(9, Object("b", "u2", 8) + "," + Object("a", "u1", 5))},
      {.body = Line("MODIFIED", Object("a", "u1", 10))},
  });
  Client client(api.config());
  Recorder recorder;
  std::mutex mutex;
  std::vector<uint64_t> histories;
  Watcher watcher(client,
                  {.resource = kPods, .retry_min = Millis(1), .retry_max = Millis(5)},
                  [&](const WatchEvent& event) {
                    {
                      const std::lock_guard lock(mutex);
                      histories.push_back(event.history);
                    }
                    recorder(event);
                  });
  EXPECT_THAT(recorder.WaitFor(8),
              ElementsAre("added lab/a u1@5",
                          "added lab/b u2@8",
                          "synced",
                          "modified lab/a u1@11",
                          "modified lab/b u2@8",
                          "modified lab/a u1@5",
                          "synced",
                          "modified lab/a u1@10"));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(histories, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
}

TEST(Watcher, KnowsTheUidThatWasTakenLast) {
  ScriptedApi api({
      {.body = List(10, Object("a", "u1", 1))},
      {.body = Line("ADDED", Object("a", "u2", 11)) +
               Line("ERROR", R"({"kind":"Status","code":410,"message":"too old"})")},
      {.body = List(20, "")},
  });
  Client client(api.config());
  Recorder recorder;
  Watcher watcher(client,
                  {.resource = kPods, .retry_min = Millis(1), .retry_max = Millis(5)},
                  [&](const WatchEvent& event) { recorder(event); });
  EXPECT_THAT(recorder.WaitFor(5),
              ElementsAre("added lab/a u1@1",
                          "synced",
                          "modified lab/a u2@11",
                          "deleted lab/a u2@ gone",
                          "synced"));
}

TEST(Watcher, SaysWhatIsBrokenAndSurvivesOddAnswers) {
  ScriptedApi api({
      {.status = 403, .body = R"({"reason":"Forbidden","message":"not yours"})"},
      {.body = "nonsense"},
      {.body = List(1, R"({"metadata":7})")},
      {.body = List(1, Object("a", "u1", 1))},
      {.body = "nonsense\n"},
      {.body = Line("MODIFIED", "{}") + "{\"type\":\"ADDED\"}\n"},
      {.body = "{\"type\":\"ADDED\",\"object\":{\"half\":"},
      {.body = List(9, Object("a", "u1", 2))},
  });
  Client client(api.config());
  Recorder recorder;
  Watcher watcher(client,
                  {.resource = kPods, .retry_min = Millis(1), .retry_max = Millis(5)},
                  [&](const WatchEvent& event) { recorder(event); });
  EXPECT_THAT(recorder.WaitFor(4),
              ElementsAre("added lab/a u1@1", "synced", "modified lab/a u1@2", "synced"));
  while (Message(watcher.Health()).find("script ended") == std::string::npos) {
    std::this_thread::yield();
  }
  EXPECT_THAT(Message(watcher.Health()), HasSubstr("watch of pods broken for"));
}

TEST(Client, ErrorsSayWhatToDo) {
  struct Row {
    http::Response answer;
    absl::StatusCode code;
  };
  const Row rows[] = {
      {{.status = 404}, absl::StatusCode::kNotFound},
      {{.status = 409, .body = R"({"reason":"AlreadyExists"})"}, absl::StatusCode::kAlreadyExists},
      {{.status = 409, .body = R"({"reason":"Conflict"})"}, absl::StatusCode::kAborted},
      {{.status = 410}, absl::StatusCode::kOutOfRange},
      {{.status = 422}, absl::StatusCode::kInvalidArgument},
      {{.status = 401}, absl::StatusCode::kUnauthenticated},
      {{.status = 403}, absl::StatusCode::kPermissionDenied},
      {{.status = 500}, absl::StatusCode::kUnavailable},
  };
  for (const Row& row : rows) {
    ScriptedApi api({row.answer});
    Client client(api.config());
    EXPECT_EQ(client.Get(kPods, "lab", "a").status().code(), row.code) << row.answer.status;
  }
  ScriptedApi busy({{.status = 429,
                     .body = R"({"reason":"TooManyRequests","message":"slow down"})",
                     .headers = {{"Retry-After", "3"}}}});
  Client client(busy.config());
  const absl::Status status = client.Get(kPods, "lab", "a").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(Message(status), "get pods lab/a: slow down (HTTP 429 TooManyRequests)");
  EXPECT_EQ(RetryAfter(status), Millis(3'000));
  const std::vector<CallCount> calls = client.Calls();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_TRUE(calls[0].verb == "get" && calls[0].resource == "pods" && calls[0].calls == 1 &&
              calls[0].code == 429);
}

class Kubeconfig : public ::testing::Test {
 protected:
  Kubeconfig() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fluxqueue-kubeconfig-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~Kubeconfig() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<ClusterConfig> Read(const std::string& text) {
    std::ofstream(folder_ + "/config") << text;
    return LoadClusterConfig(folder_ + "/config");
  }
  static std::string Text(const std::string& cluster, const std::string& user) {
    return fmt::format(
        "current-context: here\n"
        "contexts: [{{name: here, context: {{cluster: c, user: u}}}}]\n"
        "clusters: [{{name: c, cluster: {{{}}}}}]\nusers: [{{name: u, user: {{{}}}}}]\n",
        cluster,
        user);
  }

  std::string folder_;
};

TEST_F(Kubeconfig, GivesServerCertificatesAndToken) {
  std::ofstream(folder_ + "/key.pem") << "KEY";
  const auto config =
      Read(Text("server: 'https://h:6443/', certificate-authority-data: Q0E=",
                "client-certificate-data: Q1JU, client-key: key.pem, token: t, tokenFile: tok"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://h:6443");
  EXPECT_EQ(config->tls.ca, "CA");
  EXPECT_EQ(config->tls.certificate, "CRT");
  EXPECT_EQ(config->tls.key, "KEY");
  EXPECT_EQ(config->token, "t");
  EXPECT_EQ(config->token_file, folder_ + "/tok");
}

TEST_F(Kubeconfig, ErrorsNameFileAndKey) {
  const std::pair<std::string, std::string> rows[] = {
      {"{", "kubeconfig "},
      {"[]", "is not a kubeconfig"},
      {"a: b", "current-context: is missing"},
      {"current-context: x", "contexts: there is no \"x\""},
      {Text("a: b", ""), "cluster c: server: is missing"},
      {Text("server: h, certificate-authority: no.pem", ""), "no.pem: cannot be read"},
      {Text("server: h, certificate-authority-data: '%'", ""),
       "certificate-authority-data: is not base64"},
      {Text("server: h", "exec: {command: aws}"), "user u: exec: cannot be used here"},
  };
  for (const auto& [text, error] : rows) {
    const auto config = Read(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(Message(config.status()), HasSubstr(error));
    EXPECT_THAT(Message(config.status()), HasSubstr(folder_ + "/config"));
  }
  EXPECT_THAT(Message(LoadClusterConfig("/no/such").status()),
              HasSubstr("/no/such: cannot be read"));
}

}  // namespace
}  // namespace fluxqueue::kubernetes
