#include "tools/fluxqueue/load/progress_line.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace fluxqueue::load {

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::Show(std::string_view line) {
  latest_ = line;
  shown_ = false;
  if (terminal_) {
    fmt::print(stderr, "\r{}\033[K", line);  // and the rest of the line erased
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  fmt::print(stderr, "{}\n", line);
  shown_ = true;
  next_ = now + std::chrono::seconds(10);
}

void ProgressLine::Done() {
  if (!latest_.empty() && terminal_) fmt::print(stderr, "\n");
  if (!latest_.empty() && !terminal_ && !shown_) fmt::print(stderr, "{}\n", latest_);
  latest_.clear();
  next_ = {};
}

}  // namespace fluxqueue::load
