// Structured logs on stderr: one line for each event, text for people or JSON for programs.
//
//   LogInfo("job bound", {{"job", id.value()}, {"nodes", fmt::format("{}", n)}});
//   2026-01-31T12:00:00.000Z INFO  binder | job bound job=… nodes=3
//
// Thread-safe. Never in a hot loop.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace fluxqueue {

using LogFields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// Called once by main; before it, level info, text, and the name "fluxqueue".
void InitLog(std::string service, LogLevel level, LogFormat format);

void Log(LogLevel level, std::string_view event, LogFields fields);

inline void LogDebug(std::string_view event, LogFields fields = {}) {
  Log(LogLevel::kDebug, event, fields);
}
inline void LogInfo(std::string_view event, LogFields fields = {}) {
  Log(LogLevel::kInfo, event, fields);
}
inline void LogWarning(std::string_view event, LogFields fields = {}) {
  Log(LogLevel::kWarning, event, fields);
}
inline void LogError(std::string_view event, LogFields fields = {}) {
  Log(LogLevel::kError, event, fields);
}

}  // namespace fluxqueue
