// Claims that are on their way into the tables: many that come at once each find there what was
// before all of them. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "libs/job_store/fact_store.h"

namespace fluxqueue::queue {

class ClaimsUnderWay {
 public:
  struct Entered {
    job_store::ClaimUse all;  // of the tenant: this one, and what is on its way besides
    // It is on its way until the last copy has gone.
    std::shared_ptr<void> place;
  };

  // `tenant`: access::TenantOf the user.
  Entered Enter(const std::string& tenant, int64_t bytes);

 private:
  struct State {
    std::mutex mutex;
    std::unordered_map<std::string, job_store::ClaimUse> tenants;  // that have any
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace fluxqueue::queue
