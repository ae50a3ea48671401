// What a call passes before its service sees it, where callers are asked for: it has to show who
// makes it. Health alone is told to all.
//
//   fluxqueue_grpc_refusals_total{code}
//
// Private to this library.
#pragma once

#include <memory>

#include <grpcpp/security/auth_metadata_processor.h>

#include "libs/metrics/metrics.h"
#include "libs/rpc/server_config.h"

namespace fluxqueue::rpc::internal {

std::shared_ptr<grpc::AuthMetadataProcessor> MakeGate(const ServerConfig::Callers& callers,
                                                      metrics::CounterFamily refusals);

}  // namespace fluxqueue::rpc::internal
