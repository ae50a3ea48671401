// The binder's own section of the configuration.
#pragma once

#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/config/section.h"
#include "services/binder/domain/plan_context.h"
#include "services/binder/domain/provisioning.h"

namespace fluxqueue::binder {

struct BinderConfig {
  PlanOptions plan;
  // File with 32 or more random bytes, the same for all replicas: by them the binder knows its own
  // pods again where rows are lost.
  std::string proof_key;
  // Threads that make API calls, each with a connection of its own.
  int api_workers = 16;
  // A node that is not ready for longer is lost: as in cleanup's section.
  Millis node_lost_grace{60'000};
  // For Jobs of these pools that lack nodes a ProvisioningRequest of this class is made: POOL=CLASS
  // each. Of other pools none.
  std::vector<std::string> provision_words;
  ProvisioningClasses provision;  // the same
};

// `config` must outlive the section.
config::Section Describe(BinderConfig* config);

}  // namespace fluxqueue::binder
