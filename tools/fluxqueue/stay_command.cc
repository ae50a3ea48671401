// stay: what the container of the Deployment fluxqueue-cli runs, so that there is one to run the
// other commands in.
#include <csignal>

#include "tools/fluxqueue/commands.h"

namespace fluxqueue::cli {

void RegisterStay(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("stay", "Do nothing until SIGTERM");
  sub->group("");
  sub->callback([&context] {
    context.command = []() -> absl::StatusOr<int> {
      sigset_t ends;
      sigemptyset(&ends);
      sigaddset(&ends, SIGTERM);
      sigaddset(&ends, SIGINT);
      pthread_sigmask(SIG_BLOCK, &ends, nullptr);
      int signal = 0;
      sigwait(&ends, &signal);
      return 0;
    };
  });
}

}  // namespace fluxqueue::cli
