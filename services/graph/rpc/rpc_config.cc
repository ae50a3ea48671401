#include "services/graph/rpc/rpc_config.h"

namespace fluxqueue::graph_service {

using namespace std::chrono_literals;

config::Section Describe(RpcConfig* config) {
  PrivateGraphLimits& limits = config->private_graphs;
  return config::Section()
      .Nested("grpc", rpc::Describe(&config->grpc))
      .Bool("ancestors", &config->ancestors)
      .Int("workers", &config->workers, 1, 64)
      .Int("calls_per_client", &config->calls.client_calls, 1, 1'000'000)
      .Size("call_bytes_per_client", &config->calls.client_bytes, 1 << 20, int64_t{1} << 40)
      .Size("call_bytes", &config->calls.bytes, 1 << 20, int64_t{1} << 40)
      .Nested("private_graphs",
              config::Section()
                  .Int("limit", &limits.graphs, 0, 100'000)
                  .Int("max_vertices", &limits.vertices, 1, int64_t{1} << 32)
                  .Int("limit_per_client", &limits.client_graphs, 0, 100'000)
                  .Int("max_vertices_per_client", &limits.client_vertices, 1, int64_t{1} << 32)
                  .Size("max_graph", &limits.graph_bytes, 1 << 10, int64_t{1} << 30)
                  .Duration("idle", &limits.idle, 100ms, 24h));
}

}  // namespace fluxqueue::graph_service
