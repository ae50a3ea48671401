#include "libs/delivery/wiring.h"

#include <array>

#include <fmt/format.h>

namespace fluxqueue::delivery {
namespace {

struct Exported {
  const char* name;
  const char* help;
  Stats::Counter Stats::*value;
};

constexpr std::array kCounters = {
    Exported{"received", "Messages handled and committed.", &Stats::received},
    Exported{
        "duplicates", "Messages dropped because they were handled before.", &Stats::duplicates},
    Exported{"gaps",
             "Messages dropped because an earlier one of their stream was missing.",
             &Stats::gaps},
    Exported{"dead_letters", "Messages that can never be handled.", &Stats::dead_letters},
    Exported{"oversized", "Messages of ours that were too large to be sent.", &Stats::oversized},
    Exported{"sent", "Messages acknowledged by Kafka.", &Stats::sent},
    Exported{"commits", "Transactions committed.", &Stats::commits},
    Exported{"rollbacks", "Batches rolled back, to be handled again.", &Stats::rollbacks},
    Exported{"doubts", "Commits whose outcome had to be read from the row.", &Stats::doubts},
    Exported{"delivery_rows", "Rows of delivery's own tables written.", &Stats::delivery_rows},
    Exported{"handler_rows", "Rows of the service's tables written.", &Stats::handler_rows},
    Exported{"gained", "Partitions or leases taken.", &Stats::gained},
    Exported{"lost", "Partitions or leases lost.", &Stats::lost},
    Exported{"resets", "Logs found to be made anew or cut off.", &Stats::resets},
    Exported{"producer_restarts", "Producers made anew after an error.", &Stats::producer_restarts},
};

constexpr std::array kGauges = {
    Exported{"held", "Partitions or leases held.", &Stats::held},
    Exported{"lag", "Messages in the log that are not handled yet.", &Stats::lag},
    Exported{"unpublished",
             "Messages committed and not yet acknowledged by Kafka.",
             &Stats::unpublished},
};

std::string MetricName(const std::string& service, const char* name, const char* suffix) {
  return fmt::format("fluxqueue_{}_delivery_{}{}", service, name, suffix);
}

}  // namespace

LoopOptions MakeLoopOptions(const config::ServiceConfig& config, const std::string& service) {
  LoopOptions options;
  options.service = service;
  options.instance = config.instance;
  options.brokers = {config.kafka.bootstrap, config.kafka.properties};
  options.postgres = {.dsn = config.postgres.dsn, .application = service, .schema = service};
  options.session_timeout = config.kafka.session_timeout;
  return options;
}

void ExportStats(metrics::Registry& registry, const std::string& service, const Stats& stats) {
  const auto sample = [&stats](Stats::Counter Stats::*value) {
    return [&stats, value] {
      return std::vector<metrics::Sample>{{{}, static_cast<double>((stats.*value).load())}};
    };
  };
  for (const Exported& counter : kCounters) {
    registry.CountersFrom(
        MetricName(service, counter.name, "_total"), counter.help, sample(counter.value));
  }
  for (const Exported& gauge : kGauges) {
    registry.GaugesFrom(MetricName(service, gauge.name, ""), gauge.help, sample(gauge.value));
  }
  registry.CountersFrom(MetricName(service, "commit_seconds", "_total"),
                        "Time spent in commits, in seconds.",
                        [&stats] {
                          return std::vector<metrics::Sample>{
                              {{}, static_cast<double>(stats.commit_micros.load()) / 1e6}};
                        });
}

}  // namespace fluxqueue::delivery
