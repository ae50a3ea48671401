// The whole of a service's main():
//
//   int main(int argc, char** argv) {
//     fluxqueue::queue::QueueConfig config;
//     return fluxqueue::lifecycle::ServiceMain(
//         argc, argv,
//         {.name = "queue",
//          .section = fluxqueue::queue::Describe(&config),
//          .make_app = [&config](const fluxqueue::lifecycle::AppContext& context) {
//            return fluxqueue::queue::MakeApp(context, config);
//          },
//          .prepare = fluxqueue::queue::Prepare});
//   }
//
// Options: --config FILE (required), --check-config (validates, says so, ends), --health (asks the
// /readyz of the service that runs with this configuration, for images that have no other program
// to ask with), --prepare (makes the tables and topics that are missing, ends: before an upgrade;
// with --within SECONDS it gives up then), --metrics (says what it would measure), --version,
// --help.
//
// What it does, in order: reads and validates the configuration; begins the log; serves /livez,
// /readyz and /metrics, so that one can see what the service waits for; follows the file's
// log.level; makes the app; starts its components in order; waits for SIGTERM, SIGINT or a failure;
// stops the components in reverse order. Stopping has a deadline, after which the process ends and
// says which component it was waiting for. A second signal ends the process at once.
//
// Exit codes: 0 stopped as asked, or healthy; 1 could not start, failed, did not stop in time, or
// is not healthy; 2 bad command line or configuration. The last log line of a failure names the
// component and the reason.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/config/section.h"
#include "libs/config/service_config.h"
#include "libs/lifecycle/component.h"
#include "libs/metrics/metrics.h"
#include "libs/tracing/tracer.h"

#include "absl/status/statusor.h"

namespace fluxqueue::lifecycle {

// A service wired together. Owns its components and all they use; destroyed after they were
// stopped.
class App {
 public:
  virtual ~App() = default;
  // In the order of their start. The pointers live as long as the app.
  virtual std::vector<Component*> Components() = 0;
};

// What an app is made with. Everything referred to outlives the app.
struct AppContext {
  const config::ServiceConfig& config;
  metrics::Registry& metrics;
  const Clock& clock;
  FailureSink& failures;
  tracing::Tracer& tracer;
};

struct Service {
  // "queue": in logs, as the name of the configuration's own section, and in the program's name.
  std::string name;
  // Describes the service's own section.
  config::Section section;
  // Makes no calls to elsewhere. An error ends the process with code 1.
  std::function<absl::StatusOr<std::unique_ptr<App>>(const AppContext&)> make_app;
  // Empty: nothing. Makes what has to be there before an app's components start and is missing
  // (tables, topics); waits for what is away until it is told to stop (Cancelled).
  std::function<absl::Status(const config::ServiceConfig&, std::stop_token)> prepare{};
  config::Stores stores = config::Stores::kBoth;
  Millis stop_deadline{std::chrono::seconds(20)};
};

// Must be called first in main, before any thread is started: it blocks the signals that it waits
// for.
int ServiceMain(int argc, char** argv, const Service& service);

}  // namespace fluxqueue::lifecycle
