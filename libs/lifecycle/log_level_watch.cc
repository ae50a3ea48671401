#include "libs/lifecycle/log_level_watch.h"

#include <array>
#include <chrono>
#include <utility>

#include "libs/base/log_level.h"
#include "libs/base/status_macros.h"
#include "libs/config/service_config.h"

namespace fluxqueue::lifecycle {
namespace {

constexpr std::chrono::seconds kInterval{2};
constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};

}  // namespace

LogLevelWatch::LogLevelWatch(std::string path, std::string service, LogLevel level)
    : path_(std::move(path)),
      service_(std::move(service)),
      thread_([this, level](const std::stop_token& stop) { Run(stop, level); }) {}

void LogLevelWatch::Run(const std::stop_token& stop, LogLevel level) {
  std::string problem;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, stop, kInterval, [&stop] { return stop.stop_requested(); })) {
    const absl::StatusOr<LogLevel> read = config::ReadLogLevel(path_, service_);
    if (read.ok() && *read != level) {
      level = *read;
      SetLogLevel(level);
      // At a level that no setting hides.
      LogError("log level changed", {{"level", kNames[static_cast<size_t>(level)]}});
    }
    std::string now = Message(read.status());
    if (now != problem && !read.ok()) LogWarning("log level not read", {{"reason", now}});
    problem = std::move(now);
  }
}

}  // namespace fluxqueue::lifecycle
