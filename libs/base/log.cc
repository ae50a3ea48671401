#include "libs/base/log.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "libs/base/clock.h"
#include "libs/base/log_level.h"

namespace fluxqueue {
namespace {

struct LogState {
  std::string service = "fluxqueue";
  LogFormat format = LogFormat::kText;
  std::shared_ptr<spdlog::logger> logger;
};

LogState& State() {
  static LogState state = [] {
    LogState made;
    made.logger = std::make_shared<spdlog::logger>(
        "fluxqueue", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.logger->set_pattern("%v");
    made.logger->flush_on(spdlog::level::info);
    return made;
  }();
  return state;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view LevelName(LogLevel level) {
  static constexpr std::array<std::string_view, 4> kNames = {"DEBUG", "INFO", "WARN", "ERROR"};
  return kNames[static_cast<size_t>(level)];
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string JsonLine(LogLevel level, std::string_view event, LogFields fields) {
  std::string line = fmt::format(
      R"({{"time":"{}","level":"{}","service":)", FormatTime(RealClock().Now()), LevelName(level));
  AppendJsonString(line, State().service);
  line += ",\"event\":";
  AppendJsonString(line, event);
  for (const auto& [key, value] : fields) {
    line += ',';
    AppendJsonString(line, key);
    line += ':';
    AppendJsonString(line, value);
  }
  return line + "}";
}

std::string TextLine(LogLevel level, std::string_view event, LogFields fields) {
  std::string line = fmt::format(
      "{} {:<5} {} | {}", FormatTime(RealClock().Now()), LevelName(level), State().service, event);
  for (const auto& [key, value] : fields) {
    const std::string_view quote = value.find(' ') == std::string_view::npos ? "" : "\"";
    line += fmt::format(" {}={}{}{}", key, quote, value, quote);
  }
  return line;
}

}  // namespace

void InitLog(std::string service, LogLevel level, LogFormat format) {
  State().service = std::move(service);
  State().format = format;
  SetLogLevel(level);
}

void SetLogLevel(LogLevel level) {
  State().logger->set_level(ToSpdlog(level));
}

void Log(LogLevel level, std::string_view event, LogFields fields) {
  LogState& state = State();
  if (!state.logger->should_log(ToSpdlog(level))) return;
  state.logger->log(ToSpdlog(level),
                    "{}",
                    state.format == LogFormat::kJson ? JsonLine(level, event, fields)
                                                     : TextLine(level, event, fields));
}

}  // namespace fluxqueue
