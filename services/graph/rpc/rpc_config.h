// What the section says of the API:
//
//   graph:
//     grpc: {address: 127.0.0.1, port: 9200, …}     # libs/rpc/server_config.h; none without a port
//     ancestors: false          # true: the ancestors' services, too (graph_rpc.h)
//     workers: 4                # threads for what takes long: large graphs, explanations, trials
//     calls_per_client: 256     # under way at once, streams too; a client is a user, all service
//                               # accounts of a namespace, or the name in a certificate
//     call_bytes_per_client: 128MiB  # that their requests, and answers that wait to be read, have
//     call_bytes: 512MiB        # the same of all clients together
//     private_graphs:           # beyond these a client is refused
//       {limit: 64, max_vertices: 1000000, max_graph: 64MiB, idle: 10m,
//        limit_per_client: 16, max_vertices_per_client: 500000}
#pragma once

#include "libs/config/section.h"
#include "libs/rpc/server_config.h"
#include "services/graph/rpc/client_calls.h"
#include "services/graph/rpc/graph_directory.h"

namespace fluxqueue::graph_service {

struct RpcConfig {
  rpc::ServerConfig grpc;
  bool ancestors = false;
  int workers = 4;
  CallLimits calls;
  PrivateGraphLimits private_graphs;
};

// `config` must outlive the section.
config::Section Describe(RpcConfig* config);

}  // namespace fluxqueue::graph_service
