// The part of the configuration that every service has, parsed in this one place, and the way to
// load it together with a service's own section.
//
//   instance: queue-0            # static group member and lease holder; default: the host's name
//   log: {level: info, format: text}           # a changed level holds within seconds
//   http: {address: 127.0.0.1, port: 9102}     # /livez /readyz /metrics; port 0 picks a free one
//   postgres: {dsn: "host=127.0.0.1 dbname=fluxqueue user=fluxqueue"}
//   kafka: {bootstrap: "127.0.0.1:9092", session_timeout: 3s, max_clock_lead: 1m,
//           properties: ""}                    # a file with security.protocol, ssl.* and sasl.*
//   signing: {key: "", keys: ""}               # of what is said into the logs; off: ""
//   (libs/signing) kubernetes: {kubeconfig: ""}               # empty: in the cluster tracing:
//   {endpoint: ""}                    # "http://collector:4318" of OTLP over HTTP; off: "" queue:
//   {…}                                 # the service's own section, named like the service
//
// The environment variable FLUXQUEUE_POSTGRES_DSN takes the place of postgres.dsn, so that its
// password need not stand in a file; libpq's own (PGPASSWORD, PGSSLROOTCERT, …) hold as well.
// Postgres and Kafka on other machines are reached by TLS, unless sslmode=disable and plaintext://
// before kafka.bootstrap say otherwise (connections.h says what else is refused).
// ${NAME} in a value is the environment's NAME (section.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/log.h"
#include "libs/config/section.h"
#include "libs/signing/keys.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::config {

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

struct HttpConfig {
  std::string address = "127.0.0.1";
  uint16_t port = 0;
};

struct PostgresConfig {
  std::string dsn;
};

struct KafkaConfig {
  std::string bootstrap;
  std::string properties;
  Millis session_timeout{std::chrono::seconds(3)};
  Millis max_clock_lead{std::chrono::minutes(1)};
};

struct SigningConfig {
  std::shared_ptr<const signing::Signer> signer;  // null: nothing is signed
  std::shared_ptr<const signing::Keys> keys;      // null: nothing has to be
};

struct KubernetesConfig {
  std::string kubeconfig;
};

struct TracingConfig {
  std::string endpoint;  // empty: off
};

struct ServiceConfig {
  std::string instance;
  LogConfig log;
  HttpConfig http;
  PostgresConfig postgres;
  KafkaConfig kafka;
  SigningConfig signing;
  KubernetesConfig kubernetes;
  TracingConfig tracing;
};

// Which stores a service has to do with: Postgres and Kafka, Postgres alone, neither.
enum class Stores { kBoth, kPostgres, kNone };

// Reads the file at `path` into `common` and into what `own` is bound to. `service` ("queue") names
// the service's own section. The common sections are allowed in every service's file, needed there
// or not; postgres.dsn and kafka.bootstrap are required where it has these stores. InvalidArgument
// with every problem, or NotFound.
absl::Status LoadService(const std::string& path,
                         std::string_view service,
                         const Section& own,
                         ServiceConfig* common,
                         Stores stores = Stores::kBoth);

// The level that the file says now, whatever the service's own section says. Errors as above.
absl::StatusOr<LogLevel> ReadLogLevel(const std::string& path, std::string_view service);

}  // namespace fluxqueue::config
