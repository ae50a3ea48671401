// The replicas of the queue: which one holds a pool, and the way to it.
//
// The holder's address stands in the inbox row of the pool's partition. A replica shows the others
// the certificate that it serves with.
//
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <grpcpp/channel.h>

#include "libs/job_store/fact_store.h"
#include "libs/rpc/channel.h"

#include "absl/status/statusor.h"

namespace fluxqueue::peers {

struct PeerOptions {
  std::string own_address = {};  // a call is never handed on to it
  rpc::ChannelFiles files = {};
};

class Peers {
 public:
  // `facts` must outlive the object.
  Peers(PeerOptions options, job_store::FactStore& facts)
      : options_(std::move(options)), facts_(facts), dialer_(options_.files) {}

  // Blocks. NotFound: there is no such pool. Unavailable: nobody who holds it can be reached now.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> HolderOf(const std::string& pool);

 private:
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(const std::string& address);

  const PeerOptions options_;
  job_store::FactStore& facts_;
  rpc::Dialer dialer_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<grpc::Channel>> channels_;  // guarded by mutex_
};

}  // namespace fluxqueue::peers
