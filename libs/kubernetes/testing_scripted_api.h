// For tests: an API server that says what it is told to, and the texts that it says.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "libs/http/server.h"
#include "libs/kubernetes/config.h"

namespace fluxqueue::kubernetes::scripted {

inline std::string Object(std::string_view name, std::string_view uid, int version) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}","namespace":"lab","uid":"{}","resourceVersion":"{}"}}}})",
      name,
      uid,
      version);
}

inline std::string Line(std::string_view type, std::string_view object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

inline std::string List(int version, std::string_view items, std::string_view next = "") {
  return fmt::format(
      R"({{"kind":"PodList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
      version,
      next,
      items);
}

// A watch that says nothing for less counts as broken.
inline constexpr Millis kQuiet{1'100};

// Gives its answers in order, each to one request; afterwards 503. Notes what was asked.
class ScriptedApi {
 public:
  explicit ScriptedApi(std::deque<http::Response> answers) : answers_(std::move(answers)) {
    auto server = http::Server::Start({}, [this](const http::Request& r) { return Answer(r); });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  ClusterConfig config() const {
    return {.server = fmt::format("http://127.0.0.1:{}", server_->port())};
  }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  http::Response Answer(const http::Request& request) {
    const std::lock_guard lock(mutex_);
    const size_t from = request.query.find("resourceVersion=");
    asked_.push_back(
        from == std::string::npos
            ? "list"
            : request.query.substr(from + 16, request.query.find('&', from) - from - 16));
    if (answers_.empty()) return {.status = 503, .body = "script ended"};
    http::Response answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

  std::mutex mutex_;
  std::deque<http::Response> answers_;
  std::vector<std::string> asked_;
  std::unique_ptr<http::Server> server_;
};

// Answers as it is told to, on several threads; who answers notes what was asked.
class NotedApi {
 public:
  explicit NotedApi(std::function<http::Response(const http::Request&)> answer) {
    auto server =
        http::Server::Start({.threads = 4, .request_timeout = Millis(60'000)}, std::move(answer));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  ClusterConfig config() const {
    return {.server = fmt::format("http://127.0.0.1:{}", server_->port())};
  }
  // Returns how many there are then.
  size_t Note(std::string act) {
    const std::lock_guard lock(mutex_);
    acts_.push_back(std::move(act));
    done_.notify_all();
    return acts_.size();
  }
  // Those so far, when there are as many.
  std::vector<std::string> WaitFor(size_t many) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(done_.wait_for(lock, std::chrono::seconds(20), [&] {
      return acts_.size() >= many;
    })) << many;
    return acts_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<std::string> acts_;
  std::unique_ptr<http::Server> server_;  // last: it ends before what it uses
};

// An API server with very many pods: lists them, and then says of each of them that it has changed,
// once. Of nodes and Jobs there are none. Watches that have nothing more to say end soon, without
// an error.
class CrowdedApi {
 public:
  static constexpr int kPods = 100'000;
  // Of one; all of them are more than a mailbox holds.
  static constexpr size_t kPodBytes = 900;

  CrowdedApi() {
    auto server = http::Server::Start({.threads = 4, .request_timeout = Millis(120'000)},
                                      [this](const http::Request& r) { return Answer(r); });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  ClusterConfig config() const {
    return {.server = fmt::format("http://127.0.0.1:{}", server_->port())};
  }
  bool told_all() const { return changed_ >= kPods; }

 private:
  static constexpr int kPage = 500;

  static std::string Pod(int number, int version) {
    std::string text = fmt::format(
        R"({{"metadata":{{"name":"p{0}","namespace":"lab","uid":"u{0}","resourceVersion":"{1}",)"
        R"("labels":{{"fluxqueue.io/held":"direct"}},"annotations":{{"padding":"")",
        number,
        version);
    text.pop_back();
    const std::string_view rest =
        R"("}},"spec":{"schedulerName":"fluxqueue","containers":[{"name":"c","image":"i"}]},)"
        R"("status":{"phase":"Pending"}})";
    text.append(kPodBytes - text.size() - rest.size(), 'x').append(rest);
    return text;
  }
  static std::string After(const http::Request& request, std::string_view key) {
    const size_t at = request.query.find(key);
    if (at == std::string::npos) return "";
    const size_t from = at + key.size();
    return request.query.substr(from, request.query.find('&', from) - from);
  }

  http::Response Answer(const http::Request& request) {
    const bool pods = request.path.ends_with("/pods");
    if (request.query.find("watch=true") != std::string::npos) return {.body = Watched(pods)};
    if (!pods) return {.body = List(1, "")};
    const std::string token = After(request, "continue=");
    const int first = token.empty() ? 0 : std::stoi(token);
    std::string items;
    for (int i = first; i < first + kPage; ++i) {
      items.append(i == first ? "" : ",").append(Pod(i, 1));
    }
    const int next = first + kPage;
    return {.body = List(1, items, next < kPods ? std::to_string(next) : "")};
  }

  std::string Watched(bool pods) {
    std::string lines;
    const int first = pods ? changed_.load() : kPods;
    for (int i = first; i < std::min(first + kPage, kPods); ++i) {
      lines += Line("MODIFIED", Pod(i, kPods + i));
    }
    if (pods) changed_ += kPage;
    if (lines.empty()) std::this_thread::sleep_for(kQuiet);
    return lines;
  }

  std::atomic<int> changed_ = 0;  // by the one watch of pods
  std::unique_ptr<http::Server> server_;
};

}  // namespace fluxqueue::kubernetes::scripted
