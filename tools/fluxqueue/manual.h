// Help and the manual page, from the tree of subcommands and options. Pure.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

// How `--help` looks: the footer of a subcommand, and where the options of every command are.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(32); }

 private:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_footer(const CLI::App* app) const override;
};

// The subcommand that the words lead to. InvalidArgument, with the nearest name, when there is
// none.
absl::StatusOr<const CLI::App*> FindCommand(const CLI::App& app,
                                            const std::vector<std::string>& path);

// fluxqueue(1), for man: every subcommand with its options and examples.
std::string ManualPage(const CLI::App& app);

}  // namespace fluxqueue::cli
