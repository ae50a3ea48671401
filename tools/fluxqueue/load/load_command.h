// The subcommand `fluxqueue load`: a trace played on a cluster.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace fluxqueue::load {

// As given on the command line.
struct LoadOptions {
  std::string trace{};
  std::string format{};
  std::string nodes{};  // a number or a file
  std::string space = "load";
  std::string queue{};
  std::string timeout = "30m";
  size_t jobs = 0;  // 0: all
  double speed = 1;
  bool keep = false;
  bool unmanaged = false;
};

// Adds the options to `command`, which writes them to `options` when it is parsed.
void AddLoadOptions(CLI::App& command, LoadOptions* options);

// Plays the load on the cluster of `kubeconfig` and prints its report on standard output; progress
// goes to standard error. False: some jobs have not ended, or were refused or rejected without
// need; the report says which and why. An error: it could not be played. SIGINT and SIGTERM stop
// it, and it takes away what it made.
absl::StatusOr<bool> RunLoad(const LoadOptions& options, const std::string& kubeconfig, bool json);

}  // namespace fluxqueue::load
