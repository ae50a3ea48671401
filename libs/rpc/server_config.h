// What a gRPC server is told, the section `grpc` of a service:
//
//   grpc:
//     address: 127.0.0.1
//     port: 9200               # 0 picks a free one; without it nothing is served
//     tls: {certificate: tls.crt, key: tls.key, client_ca: clients.crt}
//                              # PEM; none: plain text. With client_ca, clients must show a
//                              # certificate that it signed
//     callers:                 # each call has to say who makes it (caller.h), by a certificate of
//                              # client_ca; without them any certificate of client_ca is let in,
//                              # and who says to ask for another is believed
//       queue: fluxqueue-queue.fluxqueue-system.svc       # names in the certificates of the
//       matcher: fluxqueue-matcher.fluxqueue-system.svc   # replicas, both ways
//       clients: []            # names in the certificates of others that may call
//     max_message: 64MiB       # of a request, and of an answer
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
    std::string matcher;
    std::vector<std::string> clients;

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
  int max_calls = 1024;
  Millis keepalive{std::chrono::minutes(2)};
  Millis min_ping_interval{std::chrono::seconds(10)};
  Millis drain{std::chrono::seconds(5)};
};

// `config` must outlive the section.
config::Section Describe(ServerConfig* config);

}  // namespace fluxqueue::rpc
