#include "libs/peers/peers.h"

#include <fstream>
#include <iterator>
#include <optional>

#include <grpcpp/grpcpp.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::peers {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Unavailable("{} cannot be read, which calls to other replicas need", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const PeerOptions& options) {
  if (options.certificate.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadFile(options.certificate));
  ASSIGN_OR_RETURN(ssl.pem_private_key, ReadFile(options.key));
  if (!options.authority.empty()) {
    ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadFile(options.authority));
  }
  return grpc::SslCredentials(ssl);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> Peers::Connect(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto known = channels_.find(address);
  if (known != channels_.end()) return known->second;
  ASSIGN_OR_RETURN(const auto credentials, MakeCredentials(options_));
  return channels_.emplace(address, grpc::CreateChannel(address, credentials)).first->second;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Peers::HolderOf(const std::string& pool) {
  ASSIGN_OR_RETURN(const std::optional<job_store::Holder> holder,
                   facts_.HolderOf(pool, options_.service));
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
