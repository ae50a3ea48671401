// The matcher's own section of the configuration:
//
//   matcher:
//     fluxion:                       # for pools with the engine fluxion, or shadow
//       library: /usr/lib/flux/libreapi_cli.so
//       host: ""                     # fluxqueue-fluxion-host; default: beside the matcher's
//       program in_process: false            # true: not in a process of its own call_timeout: 10s
//       # beyond, it is started again load_timeout: 10m            # the same while it loads a
//       graph
#pragma once

#include "libs/config/section.h"
#include "libs/fluxion/engines.h"

namespace fluxqueue::matcher {

struct MatcherConfig {
  fluxion::EngineOptions engines;
};

// `config` must outlive the section.
config::Section Describe(MatcherConfig* config);

}  // namespace fluxqueue::matcher
