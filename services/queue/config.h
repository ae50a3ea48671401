// The queue's own section of the configuration.
#pragma once

#include <string>

#include "libs/config/section.h"
#include "libs/rpc/server_config.h"
#include "services/queue/domain/flux_job_planner.h"

namespace fluxqueue::queue {

struct QueueConfig {
  // When FluxJob objects are written.
  FluxJobTimes flux_jobs;
  // Threads that write them.
  int flux_job_writers = 4;
  // How long jobs that have ended stay in the tables, with their events.
  Millis retention{std::chrono::hours(7 * 24)};
  // How many full months accounting is kept for, beside the present one.
  int accounting_months = 60;
  // A claim with its jobspec is the largest request.
  rpc::ServerConfig grpc{.max_request = int64_t{4} << 20};
  // "host:port" at which other replicas reach this one. Empty: grpc.address and grpc.port; with
  // port 0, nowhere.
  std::string advertise;
  // What has signed the certificates of the other replicas. Empty: grpc.tls.client_ca.
  std::string peer_ca;

  std::string Address() const;
};

// `config` must outlive the section.
config::Section Describe(QueueConfig* config);

}  // namespace fluxqueue::queue
