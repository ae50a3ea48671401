#include "services/queue/config.h"

namespace fluxqueue::queue {

using namespace std::chrono_literals;

std::string QueueConfig::Address() const {
  return advertise.empty() ? grpc.Address() : advertise;
}

config::Section Describe(QueueConfig* config) {
  FluxJobTimes& times = config->flux_jobs;
  return config::Section()
      .Duration("retention", &config->retention, 1h, 87600h)
      .Nested("accounting", config::Section().Int("months", &config->accounting_months, 1, 1200))
      .Nested("flux_jobs",
              config::Section()
                  .Duration("first_delay", &times.first_delay, 0ms, 10s)
                  .Duration("interval", &times.interval, 100ms, 10min)
                  .Duration("position_interval", &times.position_interval, 1s, 1h)
                  .Duration("told_after", &times.told_after, 0ms, 1h)
                  .Duration("not_started_after", &times.not_started_after, 1s, 24h)
                  .Int("writes_per_second", &times.writes_per_second, 1, 100000)
                  .Int("writers", &config->flux_job_writers, 1, 64))
      .Nested("grpc",
              rpc::Describe(&config->grpc)
                  .Text("advertise", &config->advertise)
                  .Path("peer_ca", &config->peer_ca));
}

}  // namespace fluxqueue::queue
