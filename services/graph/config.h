// The service's own section of the configuration:
//
//   graph:
//     grpc: …                        # and what else is served: rpc/rpc_config.h
//     peer_ca: ca.crt                # has signed what the queue serves with, by default
//                                    # grpc.tls.client_ca
#pragma once

#include <string>

#include "libs/config/section.h"
#include "services/graph/rpc/rpc_config.h"

namespace fluxqueue::graph_service {

struct GraphConfig {
  RpcConfig rpc;
  std::string peer_ca;
};

// `config` must outlive the section.
config::Section Describe(GraphConfig* config);

}  // namespace fluxqueue::graph_service
