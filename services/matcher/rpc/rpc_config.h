// What the matcher's section says of its API:
//
//   matcher:
//     grpc: {address: 127.0.0.1, port: 9200, …}     # libs/rpc/server_config.h; none without a port
//     workers: 4                # threads for what takes long: large graphs, explanations, trials
//     private_graphs:           # beyond these a client is refused
//       {limit: 64, max_vertices: 4000000, max_graph: 64MiB, idle: 10m}
#pragma once

#include "libs/config/section.h"
#include "libs/rpc/server_config.h"
#include "services/matcher/rpc/graph_directory.h"

namespace fluxqueue::matcher {

struct RpcConfig {
  rpc::ServerConfig grpc;
  int workers = 4;
  PrivateGraphLimits private_graphs;
};

// `config` must outlive the section.
config::Section Describe(RpcConfig* config);

}  // namespace fluxqueue::matcher
