#include "services/matcher/config.h"

namespace fluxqueue::matcher {

using namespace std::chrono_literals;

config::Section Describe(MatcherConfig* config) {
  fluxion::EngineOptions& engines = config->engines;
  return config::Section().Nested("fluxion",
                                  config::Section()
                                      .Path("library", &engines.library)
                                      .Path("host", &engines.host)
                                      .Bool("in_process", &engines.in_process)
                                      .Duration("call_timeout", &engines.call_timeout, 10ms, 1h)
                                      .Duration("load_timeout", &engines.load_timeout, 100ms, 24h));
}

}  // namespace fluxqueue::matcher
