// help and man.
#include <memory>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/manual.h"

namespace fluxqueue::cli {
namespace {

absl::StatusOr<int> Help(const CLI::App& app, const std::vector<std::string>& path) {
  ASSIGN_OR_RETURN(const CLI::App* command, FindCommand(app, path));
  const std::string name =
      fmt::format("{}{}{}", app.get_name(), path.empty() ? "" : " ", fmt::join(path, " "));
  fmt::print("{}", command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
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
