// Admission's own section of the configuration:
//
//   admission:
//     webhook: {address: 0.0.0.0, port: 9443, certificate: tls.crt, key: tls.key, threads: 2,
//               max_body: 4MiB,
//               max_bodies: 64MiB,               # of all requests that are under way
//               max_connections: 256, max_requests_per_source: 64,
//               request_timeout: 10s,            # from its first byte to its last
//               drain: 0s,                       # at the end goes on for so long, until nobody is
//                                                # sent here any more
//               client_authority: "",            # PEM: clients must show a certificate of it …
//               client_names: []}                # … for one of these names; none: any
//     hold_pods: 16            # Jobs of more pods are held by suspend
//     groups: ""               # YAML: more rows of groups.yaml (libs/kubernetes/group_table.h)
//     max_jobspec: 256KiB
//     sweep_interval: 10m      # full list, compared with the rows
//     pool:                    # how the cores of every pool decide
//       {engine: native, policy: first,   # engine: native, fluxion, or shadow, which asks another
//        shadow_of: fluxion,              # one in the background: fluxion, or native
//        cpu_granule: 1000, memory_granule: 1GiB,   # what fluxion gives whole: millicores, bytes
//        levels: [topology.kubernetes.io/zone, topology.kubernetes.io/block,
//                 topology.kubernetes.io/rack],    # node labels, or name=label; outermost first
//        billing: [memory=0.5],           # how much a resource counts in shares; of others 1
//        answer_deadline: 5s, retry_min: 1s, retry_max: 5m, max_attempts: 0}
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/config/section.h"
#include "libs/http/server.h"
#include "libs/kubernetes/group_table.h"
#include "services/admission/domain/webhook.h"

namespace fluxqueue::admission {

struct AdmissionConfig {
  struct Webhook {
    std::string address = "127.0.0.1";
    int port = 9443;
    std::string certificate;
    std::string key;
    int threads = 2;
    int64_t max_body = 4 << 20;
    int64_t max_bodies = 64 << 20;
    int64_t max_connections = 256;
    int64_t max_requests_per_source = 64;
    Millis request_timeout{std::chrono::seconds(10)};
    Millis drain{0};
    std::string client_authority;
    std::vector<std::string> client_names;
  };
  struct Pool {
    std::string engine = "native";
    std::string shadow_of = "fluxion";
    int64_t cpu_granule = 1000;
    int64_t memory_granule = int64_t{1} << 30;
    std::string policy = "first";
    std::vector<std::string> levels{"topology.kubernetes.io/zone",
                                    "topology.kubernetes.io/block",
                                    "topology.kubernetes.io/rack"};
    std::vector<std::string> billing;
    Millis answer_deadline{std::chrono::seconds(5)};
    Millis retry_min{std::chrono::seconds(1)};
    Millis retry_max{std::chrono::minutes(5)};
    uint32_t max_attempts = 0;
  };

  Webhook webhook;
  Pool pool;
  int64_t hold_pods = 16;
  std::string groups;
  std::optional<kubernetes::GroupTable> group_table;  // with these; unset: without any
  int64_t max_jobspec = 256 << 10;
  Millis sweep_interval{std::chrono::minutes(10)};
};

// `config` must outlive the section.
config::Section Describe(AdmissionConfig* config);

http::ServerOptions MakeServerOptions(const AdmissionConfig& config);
WebhookOptions MakeWebhookOptions(const AdmissionConfig& config);
events::v1::PoolConfigured MakePoolConfigured(const AdmissionConfig& config);

}  // namespace fluxqueue::admission
