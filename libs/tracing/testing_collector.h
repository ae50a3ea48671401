// What stands in a test where a collector of traces would.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/http/server.h"

namespace fluxqueue::tracing {

// Keeps what it is sent, and answers with `status`.
class Collector {
 public:
  explicit Collector(int status = 200) {
    auto server = http::Server::Start({}, [this, status](const http::Request& request) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      changed_.notify_all();
      return http::Response{.status = status};
    });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  // Those that it has been sent so far.
  std::vector<nlohmann::json> Spans() {
    const std::lock_guard lock(mutex_);
    std::vector<nlohmann::json> spans;
    for (const http::Request& request : requests_) {
      const auto body = nlohmann::json::parse(request.body);
      const auto& sent = body.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans");
      spans.insert(spans.end(), sent.begin(), sent.end());
    }
    return spans;
  }
  // The first request; an empty one after the deadline.
  http::Request Await() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !requests_.empty(); }))
      return {};
    return requests_.front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<http::Request> requests_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace fluxqueue::tracing
