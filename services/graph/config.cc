#include "services/graph/config.h"

namespace fluxqueue::graph_service {

config::Section Describe(GraphConfig* config) {
  return Describe(&config->rpc).Path("peer_ca", &config->peer_ca);
}

}  // namespace fluxqueue::graph_service
