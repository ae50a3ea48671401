// What a gRPC server is told, the section `grpc` of a service:
//
//   grpc:
//     address: 127.0.0.1
//     port: 9200               # 0 picks a free one; without it nothing is served
//     tls: {certificate: tls.crt, key: tls.key, client_ca: clients.crt}
//                              # PEM; none: plain text. With client_ca, clients must show a
//                              # certificate that it signed
//     callers:                 # each call has to say who makes it (caller.h), by a certificate of
//                              # client_ca or, of a service that takes them, a token; without them
//                              # any certificate of client_ca is let in, and who says to ask for
//                              # another is believed
//       queue: fluxqueue-queue.fluxqueue-system.svc    # names in the certificates of its
//                              # replicas, both ways
//       graph: fluxqueue-graph.fluxqueue-system.svc    # of the graph service's, and of the
//       visibility: fluxqueue-visibility.fluxqueue-system.svc  # aggregated API's front; empty:
//                              # there is none
//       clients: []            # names in the certificates of others that may call
//     max_message: 64MiB       # of an answer
//     max_request: 64MiB       # read before anybody asks who calls: what the largest request needs
//     max_memory: 512MiB       # of all connections, for what they read and write; beyond it they
//                              # are slowed down, and cut
//     max_threads: 256         # of gRPC's own for calls
//     max_calls: 1024          # at once, on one connection
//     keepalive: 2m            # a connection silent for so long is asked whether it is still there
//     min_ping_interval: 10s   # clients that ask more often are cut off
//     drain: 5s                # at stop: what is under way may take so long
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/config/section.h"

namespace fluxqueue::rpc {

struct ServerConfig {
  struct Tls {
    std::string certificate;
    std::string key;
    std::string client_ca;
  };
  struct Callers {
    std::string queue;
    std::string graph{};
    std::string visibility{};
    std::vector<std::string> clients{};

    bool wanted() const { return !queue.empty(); }
  };
  static constexpr int kNoPort = -1;

  // A listener is asked for, never a default: nothing stands open that nobody knows of.
  bool enabled() const { return port != kNoPort; }
  // "host:port", if the port is known before it is served on; else empty.
  std::string Address() const;

  std::string address = "127.0.0.1";
  int port = kNoPort;
  Tls tls = {};
  Callers callers = {};
  int64_t max_message = int64_t{64} << 20;
  int64_t max_request = int64_t{64} << 20;
  int64_t max_memory = int64_t{512} << 20;
  int max_threads = 256;
  int max_calls = 1024;
  Millis keepalive{std::chrono::minutes(2)};
  Millis min_ping_interval{std::chrono::seconds(10)};
  Millis drain{std::chrono::seconds(5)};
};

// `config` must outlive the section.
config::Section Describe(ServerConfig* config);

}  // namespace fluxqueue::rpc
