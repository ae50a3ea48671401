// --watch: a listing that is shown again when it changes.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

struct WatchOptions {
  bool watch = false;
  double seconds = 2;  // between two looks
};

void AddWatchOptions(CLI::App* sub, WatchOptions* options);

// The text of a listing, as the context wants it.
using Show = std::function<absl::StatusOr<std::string>(const Context& context)>;

// Prints it; with --watch until the output is closed or the process ended: on a terminal it is
// drawn anew in its place, else the lines that are new or have changed follow, of JSON and YAML the
// whole. A look that fails because something is away is said and repeated.
absl::StatusOr<int> Present(const Context& context, const WatchOptions& options, const Show& show);

// The lines of `now` that are not in `before`. Pure.
std::string NewLines(const std::string& before, const std::string& now);

}  // namespace fluxqueue::cli
