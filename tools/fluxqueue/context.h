// What every subcommand has: where the system is, how to print, and where the result goes.
//
// A subcommand is one file with a function Register…(CLI::App&, Context&), listed in commands.h. It
// adds its options, and its callback sets Context::command; main runs that after the whole command
// line has been parsed:
//
//   void RegisterQueues(CLI::App& app, Context& context) {
//     CLI::App* sub = app.add_subcommand("queues", "…");
//     sub->callback([&context] { context.command = [&context] { return RunQueues(context); }; });
//   }
//
// A command returns the program's exit status (0: fine, 1: what it looked for is wrong), or why it
// could not do its work (exit status 2). One thread.
#pragma once

#include <functional>
#include <string>

#include "libs/base/clock.h"

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

enum class Output { kTable, kJson };

// The file that `tools/up` writes: postgres.dsn, kafka.bootstrap, kubernetes.kubeconfig.
struct SystemConfig {
  std::string file;  // where it was found
  std::string dsn;
  std::string bootstrap;
  std::string kubeconfig;  // empty: this system's cluster is not known here
};

struct Context {
  // From the command line.
  std::string config_file;
  Output output = Output::kTable;

  bool colour = false;  // standard output is a terminal, and NO_COLOR is not set
  RealClock clock{};
  std::function<absl::StatusOr<int>()> command{};

  bool json() const { return output == Output::kJson; }
  // Reads it from --config, else $FLUXQUEUE_CONFIG, else the file of `tools/up`. NotFound and
  // InvalidArgument say what to do.
  absl::StatusOr<SystemConfig> LoadConfig() const;
  Millis Now() const;
};

// Where the configuration is looked for; `given` is --config.
std::string ConfigPath(const std::string& given);

}  // namespace fluxqueue::cli
