// The matcher's own section of the configuration:
//
//   matcher:
//     fluxion:                       # for pools with the engine fluxion, or shadow
//       library: /usr/lib/flux/libreapi_cli.so
//       host: ""                     # fluxqueue-fluxion-host; default: beside the matcher's
//       program in_process: false            # true: not in a process of its own call_timeout: 10s
//       # beyond, it is started again load_timeout: 10m            # the same while it loads a
//       graph
//     grpc: …                        # see rpc/rpc_config.h
//     advertise: host:9200           # where other replicas reach this one; default: as grpc says
//     peer_ca: ca.crt                # has signed what queue and matchers serve with, by default
//                                    # grpc.tls.client_ca
#pragma once

#include <string>

#include "libs/config/section.h"
#include "libs/fluxion/engines.h"
#include "services/matcher/rpc/rpc_config.h"

namespace fluxqueue::matcher {

struct MatcherConfig {
  fluxion::EngineOptions engines;
  RpcConfig rpc;
  std::string advertise;
  std::string peer_ca;

  // Of the API; empty: nobody can reach it.
  std::string Address() const;
};

// `config` must outlive the section.
config::Section Describe(MatcherConfig* config);

}  // namespace fluxqueue::matcher
