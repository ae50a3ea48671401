#include "libs/base/log.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "libs/base/clock.h"
#include "libs/base/log_level.h"
#include "libs/base/text.h"

namespace fluxqueue {
namespace {

// Of the event, and of the value of a field: much of it is somebody else's text, and all of it one
// line of plain text here.
constexpr size_t kMostBytes = 4000;

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
  AppendJsonString(line, Clean(event, kMostBytes));
  for (const auto& [key, value] : fields) {
    line += ',';
    AppendJsonString(line, key);
    line += ':';
    AppendJsonString(line, Clean(value, kMostBytes));
  }
  return line + "}";
}

std::string OneLine(std::string_view event) {
  std::string line = Clean(event, kMostBytes);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string TextLine(LogLevel level, std::string_view event, LogFields fields) {
  std::string line = fmt::format("{} {:<5} {} | {}",
                                 FormatTime(RealClock().Now()),
                                 LevelName(level),
                                 State().service,
                                 OneLine(event));
  for (const auto& [key, value] : fields) {
    line += fmt::format(" {}=", key);
    if (value.find_first_of(" \"\n\t") == std::string_view::npos) {
      line += Clean(value, kMostBytes);
    } else {
      AppendJsonString(line, Clean(value, kMostBytes));
    }
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
