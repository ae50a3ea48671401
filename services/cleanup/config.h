// Cleanup's own section of the configuration.
#pragma once

#include "libs/base/clock.h"
#include "libs/config/section.h"

namespace fluxqueue::cleanup {

struct CleanupConfig {
  // A node that is not ready for longer is lost with all that runs on it.
  Millis node_lost_grace{60'000};
  // How often the whole is compared with Postgres.
  Millis sweep_interval{60'000};
};

// `config` must outlive the section.
config::Section Describe(CleanupConfig* config);

}  // namespace fluxqueue::cleanup
