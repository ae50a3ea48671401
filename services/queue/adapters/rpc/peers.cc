#include "services/queue/adapters/rpc/peers.h"

#include <fstream>
#include <iterator>
#include <optional>

#include <grpcpp/grpcpp.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::queue {
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

absl::StatusOr<std::shared_ptr<v1::Queue::Stub>> Peers::Connect(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto known = stubs_.find(address);
  if (known != stubs_.end()) return known->second;
  ASSIGN_OR_RETURN(const auto credentials, MakeCredentials(options_));
  std::shared_ptr<v1::Queue::Stub> stub =
      v1::Queue::NewStub(grpc::CreateChannel(address, credentials));
  stubs_.emplace(address, stub);
  return stub;
}

absl::StatusOr<std::shared_ptr<v1::Queue::Stub>> Peers::HolderOf(const std::string& pool) {
  ASSIGN_OR_RETURN(const std::optional<job_store::Holder> holder, facts_.HolderOf(pool));
  if (!holder.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      "there is no pool {}; a node or a FluxQueue makes one (label or field "
                      "fluxqueue.io/pool)",
                      pool);
  }
  if (holder->address == options_.own_address) {
    return Unavailable("pool {} is on its way to another replica: call again", pool);
  }
  if (holder->address.empty()) {
    return Unavailable(
        "pool {} is held by {}, which says no address: set queue.grpc.advertise of each replica",
        pool,
        holder->instance);
  }
  return Connect(holder->address);
}

}  // namespace fluxqueue::queue
