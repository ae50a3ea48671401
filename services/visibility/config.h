// The front's own section of the configuration:
//
//   visibility:
//     api: {address: 0.0.0.0, port: 9444, certificate: tls.crt, key: tls.key, threads: 2,
//           drain: 0s}             # at the end goes on for so long, until nobody is sent here
//     queue: {address: "fluxqueue-queue.fluxqueue-system.svc:9200", certificate: tls.crt,
//             key: tls.key, authority: ca.crt, name: fluxqueue-queue.fluxqueue-system.svc}
//     calls_per_user: 16       # under way at once; more are told to come again
#pragma once

#include <string>

#include "libs/config/section.h"
#include "libs/rpc/channel.h"

namespace fluxqueue::visibility {

struct VisibilityConfig {
  std::string address = "127.0.0.1";
  int port = 9444;
  std::string certificate;
  std::string key;
  int threads = 2;
  Millis drain{0};
  std::string queue_address;
  rpc::ChannelFiles queue_files;
  int calls_per_user = 16;
};

// `config` must outlive the section.
config::Section Describe(VisibilityConfig* config);

}  // namespace fluxqueue::visibility
