#include "services/queue/adapters/rpc/claims_under_way.h"

namespace fluxqueue::queue {

ClaimsUnderWay::Entered ClaimsUnderWay::Enter(const std::string& tenant, int64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  job_store::ClaimUse& use = state_->tenants[tenant];
  ++use.claims;
  use.bytes += bytes;
  const auto leave = [state = state_, tenant, bytes](void*) {
    const std::lock_guard left(state->mutex);
    const auto own = state->tenants.find(tenant);
    own->second.bytes -= bytes;
    if (--own->second.claims == 0) state->tenants.erase(own);
  };
  return {.all = use, .place = std::shared_ptr<void>(nullptr, leave)};
}

}  // namespace fluxqueue::queue
