#include "services/matcher/rpc/rpc_config.h"

namespace fluxqueue::matcher {

using namespace std::chrono_literals;

config::Section Describe(RpcConfig* config) {
  PrivateGraphLimits& limits = config->private_graphs;
  return config::Section()
      .Nested("grpc", rpc::Describe(&config->grpc))
      .Int("workers", &config->workers, 1, 64)
      .Nested("private_graphs",
              config::Section()
                  .Int("limit", &limits.graphs, 0, 100'000)
                  .Int("max_vertices", &limits.vertices, 1, int64_t{1} << 32)
                  .Size("max_graph", &limits.graph_bytes, 1 << 10, int64_t{1} << 30)
                  .Duration("idle", &limits.idle, 100ms, 24h));
}

}  // namespace fluxqueue::matcher
