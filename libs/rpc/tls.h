// The credentials of a gRPC server. Private to this library.
#pragma once

#include <memory>

#include <grpcpp/security/server_credentials.h>

#include "libs/rpc/server_config.h"

#include "absl/status/statusor.h"

namespace fluxqueue::rpc::internal {

// Plain text where no certificate is given. The files are read again when they change. Of clients a
// certificate is wanted, or, `by_choice`, checked where it is shown.
// InvalidArgument: which of them cannot be used, and why.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(
    const ServerConfig::Tls& tls, bool by_choice);

}  // namespace fluxqueue::rpc::internal
