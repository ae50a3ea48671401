#include "tools/fluxqueue/watch.h"

#include <set>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/terminal.h"

namespace fluxqueue::cli {

void AddWatchOptions(CLI::App* sub, WatchOptions* options) {
  sub->add_flag("-w,--watch", options->watch, "Show it again whenever it changes");
  sub->add_option("--every", options->seconds, "Seconds between two looks of --watch")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
}

std::string NewLines(const std::string& before, const std::string& now) {
  std::multiset<std::string_view> known;
  for (const std::string_view line : Lines(before)) known.insert(line);
  std::string result;
  for (const std::string_view line : Lines(now)) {
    if (const auto found = known.find(line); found != known.end()) {
      known.erase(found);
    } else {
      result.append(line).push_back('\n');
    }
  }
  return result;
}

absl::StatusOr<int> Present(const Context& context, const WatchOptions& options, const Show& show) {
  if (!options.watch) {
    ASSIGN_OR_RETURN(const std::string text, show(context));
    fmt::print("{}", text);
    return 0;
  }
  const bool in_place = isatty(STDOUT_FILENO) != 0 && !context.structured();
  Context view = context;
  view.steady = !in_place;
  std::string before;
  do {
    absl::StatusOr<std::string> text = show(view);
    if (!text.ok()) {
      if (!IsTransient(text.status())) return text.status();
      text = fmt::format("waits: {}\n", Message(text.status()));
    }
    if (in_place) {
      fmt::print("{}", Redraw(*text, WindowSize()));
    } else if (*text != before) {
      fmt::print("{}", context.structured() ? *text : NewLines(before, *text));
      before = *std::move(text);
    }
    (void)std::fflush(stdout);
  } while (WaitWhileOpen(STDOUT_FILENO, Millis(static_cast<int64_t>(options.seconds * 1000))));
  return 0;
}

}  // namespace fluxqueue::cli
