#include "services/binder/config.h"

#include "libs/base/status_macros.h"
#include "libs/config/units.h"

namespace fluxqueue::binder {

using namespace std::chrono_literals;

config::Section Describe(BinderConfig* config) {
  PlanOptions& plan = config->plan;
  return config::Section()
      .Path("proof_key", &config->proof_key, config::Presence::kRequired)
      .Int("api_workers", &config->api_workers, 1, 256)
      .Duration("start_timeout", &plan.start_timeout, 1s, 24h)
      .Duration("retry_min", &plan.retry_min, 1ms, 1min)
      .Duration("retry_max", &plan.retry_max, 10ms, 10min)
      .Duration("node_check_interval", &plan.node_check_interval, 100ms, 10min)
      .Duration("kill_wait", &plan.kill_wait, 1s, 24h)
      .Duration("node_lost_grace", &config->node_lost_grace, 1s, 24h)
      .List("provision", &config->provision_words)
      .Rule([config]() -> absl::Status {
        ASSIGN_OR_RETURN(config->provision, ParseProvisioningClasses(config->provision_words));
        return absl::OkStatus();
      })
      .Rule([&plan]() -> absl::Status {
        if (plan.retry_min <= plan.retry_max) return absl::OkStatus();
        return InvalidArgument("retry_min {} is more than retry_max {}",
                               config::FormatDuration(plan.retry_min),
                               config::FormatDuration(plan.retry_max));
      });
}

}  // namespace fluxqueue::binder
