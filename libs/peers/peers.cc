#include "libs/peers/peers.h"

#include <optional>

#include "libs/base/status_macros.h"

namespace fluxqueue::peers {

absl::StatusOr<std::shared_ptr<grpc::Channel>> Peers::Connect(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto known = channels_.find(address);
  if (known != channels_.end()) return known->second;
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, dialer_.Open(address));
  return channels_.emplace(address, std::move(channel)).first->second;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Peers::HolderOf(const std::string& pool) {
  ASSIGN_OR_RETURN(const std::optional<job_store::Holder> holder, facts_.HolderOf(pool));
  if (!holder.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      "there is no pool {}; a node or a FluxQueue makes one (label or field "
                      "fluxqueue.io/pool)",
                      pool);
  }
  if (!options_.own_address.empty() && holder->address == options_.own_address) {
    return Unavailable("pool {} is on its way to another replica: call again", pool);
  }
  if (holder->address.empty()) {
    return Unavailable(
        "pool {} is held by {}, which says no address: set grpc.advertise of each replica",
        pool,
        holder->instance);
  }
  return Connect(holder->address);
}

}  // namespace fluxqueue::peers
