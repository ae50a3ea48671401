// help and man.
#include <memory>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/manual.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

absl::StatusOr<int> Help(const CLI::App& app, const std::vector<std::string>& path) {
  const CLI::App* at = &app;
  std::string name = app.get_name();
  for (const std::string& word : path) {
    std::vector<std::string> known;
    const CLI::App* found = nullptr;
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App*) { return true; })) {
      if (!sub->get_group().empty()) known.push_back(sub->get_name());
      if (sub->check_name(word)) found = sub;
    }
    if (found == nullptr) {
      const std::vector<std::string> near = NearMatches(word, known, 1);
      return InvalidArgument("there is no command {} {}{}",
                             name,
                             word,
                             near.empty() ? "" : fmt::format("; did you mean {}?", near[0]));
    }
    at = found;
    name += " " + word;
  }
  fmt::print("{}", at->get_formatter()->make_help(at, name, CLI::AppFormatMode::Normal));
  return 0;
}

}  // namespace

void RegisterManual(CLI::App& app, Context& context) {
  CLI::App* help = app.add_subcommand("help", "Say what a command does, with examples");
  help->group("Help");
  const auto path = std::make_shared<std::vector<std::string>>();
  help->add_option("COMMAND", *path, "The command; without it they are listed");
  help->callback(
      [&context, &app, path] { context.command = [&app, path] { return Help(app, *path); }; });

  CLI::App* man = app.add_subcommand("man", "Print the manual page, for man");
  man->group("Help");
  man->footer(
      "Examples:\n"
      "  fluxqueue man | man -l -\n"
      "  fluxqueue man >/usr/local/share/man/man1/fluxqueue.1");
  man->callback([&context, &app] {
    context.command = [&app]() -> absl::StatusOr<int> {
      fmt::print("{}", ManualPage(app));
      return 0;
    };
  });
}

}  // namespace fluxqueue::cli
