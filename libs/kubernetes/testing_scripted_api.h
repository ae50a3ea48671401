// For tests: an API server that says what it is told to, and the texts that it says.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
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

}  // namespace fluxqueue::kubernetes::scripted
