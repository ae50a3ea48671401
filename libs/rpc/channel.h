// The way to a gRPC server of ours, in plain text or with TLS.
//
//   {.certificate, .key}    that we show; read again within a second of their change
//   .authority              that has signed the server's; likewise
//   .name                   the server's certificate is for this name, whatever its address is:
//                           replicas call each other at the addresses of their pods
//
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <grpcpp/channel.h>

#include "absl/status/statusor.h"

namespace grpc {
class ChannelCredentials;
}  // namespace grpc

namespace fluxqueue::rpc {

// Paths of files; empty: none. Without certificate and authority it is plain text.
struct ChannelFiles {
  std::string certificate{};
  std::string key{};
  std::string authority{};
  std::string name{};
};

class Dialer {
 public:
  explicit Dialer(ChannelFiles files) : files_(std::move(files)) {}

  // Unavailable: a file cannot be read.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Open(const std::string& address);

 private:
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials();

  const ChannelFiles files_;
  std::mutex mutex_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;  // guarded by mutex_
};

}  // namespace fluxqueue::rpc
