// What a call passes before its service sees it, where callers are asked for: it has to show who
// makes it. Health alone is told to all.
//
// It asks nobody: whose a token is the service finds out, on threads of its own. gRPC would give a
// gate that waits a thread for each call, without a bound; and what a gate has found it could only
// write on the connection, which calls of several users may share.
//
//   fluxqueue_grpc_refusals_total{code}
//
// Private to this library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/security/auth_metadata_processor.h>

#include "libs/metrics/metrics.h"
#include "libs/rpc/server_config.h"

namespace fluxqueue::rpc::internal {

// `with_tokens`: the services that take tokens, and ask themselves whose they are.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeGate(const ServerConfig::Callers& callers,
                                                      const std::vector<std::string>& with_tokens,
                                                      metrics::CounterFamily refusals);

}  // namespace fluxqueue::rpc::internal
