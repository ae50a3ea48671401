#include "services/cleanup/config.h"

namespace fluxqueue::cleanup {

using namespace std::chrono_literals;

config::Section Describe(CleanupConfig* config) {
  return config::Section()
      .Duration("node_lost_grace", &config->node_lost_grace, 1s, 24h)
      .Duration("sweep_interval", &config->sweep_interval, 1s, 24h);
}

}  // namespace fluxqueue::cleanup
