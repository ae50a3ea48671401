#include "tools/fluxqueue/replay_step.h"

#include <charconv>
#include <cstdio>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace fluxqueue::cli {
namespace {

constexpr char kAllowed[] =
    "Enter: the next event; N: that many; /TEXT: the next that names it; q: the end";

}  // namespace

StepAnswer ParseStepAnswer(std::string_view line) {
  using Kind = StepAnswer::Kind;
  if (line.empty()) return {.kind = Kind::kGo, .events = 1};
  if (line == "q") return {.kind = Kind::kEnd};
  if (line.size() > 1 && line.front() == '/') {
    return {.kind = Kind::kSeek, .text = std::string(line.substr(1))};
  }
  StepAnswer answer{.kind = Kind::kGo};
  const char* const end = line.data() + line.size();
  const auto [at, error] = std::from_chars(line.data(), end, answer.events);
  if (error != std::errc() || at != end || answer.events == 0) return {};
  return answer;
}

StepPrompt::StepPrompt(const Context& context)
    : context_(context),
      asks_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1),
      since_ms_(context.Now().count()) {}

absl::Status StepPrompt::Ask() {
  while (true) {
    fmt::print(": ");
    (void)std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) {
      fmt::print("\n");
      return absl::CancelledError();
    }
    StepAnswer answer = ParseStepAnswer(line);
    if (answer.kind == StepAnswer::Kind::kEnd) return absl::CancelledError();
    if (answer.kind == StepAnswer::Kind::kUnknown) {
      fmt::print("{}\n", kAllowed);
      continue;
    }
    left_ = answer.events;
    sought_ = std::move(answer.text);
    return absl::OkStatus();
  }
}

absl::Status StepPrompt::Show(const EventStep& step) {
  if (!sought_.empty() && !step.Names(sought_)) return absl::OkStatus();
  sought_.clear();
  if (context_.structured()) {
    fmt::print("{}\n", step.ToJson().dump());
  } else {
    const size_t width = context_.wide() ? std::string::npos : context_.width;
    fmt::print("{}", step.Format(since_ms_, width, context_.colour));
  }
  since_ms_ = step.time_ms();
  if (!asks_) return absl::OkStatus();
  if (left_ > 1) {
    --left_;
    return absl::OkStatus();
  }
  return Ask();
}

}  // namespace fluxqueue::cli
