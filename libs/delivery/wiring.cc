#include "libs/delivery/wiring.h"

#include <array>
#include <utility>

#include "libs/delivery/prepare.h"

namespace fluxqueue::delivery {
namespace {

struct Exported {
  const char* name;
  const char* help;
  Stats::Counter Stats::*value;
};

constexpr std::array kCounters = {
    Exported{
        "fluxqueue_delivery_received_total", "Messages handled and committed.", &Stats::received},
    Exported{"fluxqueue_delivery_duplicates_total",
             "Messages dropped because they were handled before.",
             &Stats::duplicates},
    Exported{"fluxqueue_delivery_gaps_total",
             "Messages before which others of their stream were missing: the log has lost them.",
             &Stats::gaps},
    Exported{"fluxqueue_delivery_leads_total",
             "Messages whose time of arrival in the log is far beyond their sender's clock.",
             &Stats::leads},
    Exported{"fluxqueue_delivery_newer_total",
             "Messages passed over, because only a later version knows their kind.",
             &Stats::newer},
    Exported{"fluxqueue_dead_letters_total",
             "Messages that can never be handled.",
             &Stats::dead_letters},
    Exported{"fluxqueue_delivery_oversized_total",
             "Messages of ours that were too large to be sent.",
             &Stats::oversized},
    Exported{"fluxqueue_delivery_sent_total", "Messages acknowledged by Kafka.", &Stats::sent},
    Exported{"fluxqueue_delivery_commits_total", "Transactions committed.", &Stats::commits},
    Exported{"fluxqueue_delivery_rollbacks_total",
             "Batches rolled back, to be handled again.",
             &Stats::rollbacks},
    Exported{"fluxqueue_delivery_doubts_total",
             "Commits whose outcome had to be read from the row.",
             &Stats::doubts},
    Exported{"fluxqueue_delivery_own_rows_total",
             "Rows of delivery's own tables written.",
             &Stats::delivery_rows},
    Exported{"fluxqueue_delivery_handler_rows_total",
             "Rows of the service's tables written.",
             &Stats::handler_rows},
    Exported{"fluxqueue_delivery_gained_total", "Partitions or leases taken.", &Stats::gained},
    Exported{"fluxqueue_delivery_lost_total", "Partitions or leases lost.", &Stats::lost},
    Exported{"fluxqueue_delivery_resets_total",
             "Logs found to be made anew or cut off.",
             &Stats::resets},
    Exported{"fluxqueue_delivery_producer_restarts_total",
             "Producers made anew after an error.",
             &Stats::producer_restarts},
};

constexpr std::array kGauges = {
    Exported{"fluxqueue_delivery_held", "Partitions or leases held.", &Stats::held},
    Exported{
        "fluxqueue_consumer_lag", "Messages in the log that are not handled yet.", &Stats::lag},
    Exported{"fluxqueue_outbox_depth",
             "Messages committed and not yet acknowledged by Kafka.",
             &Stats::unpublished},
};

}  // namespace

LoopOptions MakeLoopOptions(const config::ServiceConfig& config, const std::string& service) {
  LoopOptions options;
  options.service = service;
  options.instance = config.instance;
  options.brokers = {config.kafka.bootstrap, config.kafka.properties};
  options.postgres = {.dsn = config.postgres.dsn, .application = service, .schema = service};
  options.signer = config.signing.signer;
  options.keys = config.signing.keys;
  options.session_timeout = config.kafka.session_timeout;
  options.max_clock_lead = config.kafka.max_clock_lead;
  return options;
}

absl::Status PrepareService(const config::ServiceConfig& config,
                            const std::string& service,
                            const std::vector<const postgres::MigrationSet*>& migrations,
                            std::stop_token stop) {
  return Prepare(
      MakeLoopOptions(config, service),
      migrations,
      [](const absl::Status& /*why*/) {},
      std::move(stop));
}

void ExportStats(metrics::Registry& registry, const std::string& service, const Stats& stats) {
  const auto sample = [&](Stats::Counter Stats::*value, double unit = 1) {
    return [&stats, service, value, unit] {
      return std::vector<metrics::Sample>{
          {{{"component", service}}, static_cast<double>((stats.*value).load()) * unit}};
    };
  };
  for (const Exported& counter : kCounters) {
    registry.CountersFrom(counter.name, counter.help, {"component"}, sample(counter.value));
  }
  for (const Exported& gauge : kGauges) {
    registry.GaugesFrom(gauge.name, gauge.help, {"component"}, sample(gauge.value));
  }
  registry.CountersFrom("fluxqueue_delivery_commit_seconds_total",
                        "Time spent in commits.",
                        {"component"},
                        sample(&Stats::commit_micros, 1e-6));
}

void ExportQuarantine(metrics::Registry& registry,
                      const std::string& service,
                      const Quarantine& quarantine) {
  registry.CountersFrom(
      "fluxqueue_quarantined_total",
      "Objects of the cluster that could not be handled and are left out.",
      {"component", "kind"},
      [&quarantine, service] {
        std::vector<metrics::Sample> samples;
        for (const auto& [kind, total] : quarantine.Totals()) {
          samples.push_back({{{"component", service}, {"kind", kind}}, static_cast<double>(total)});
        }
        return samples;
      });
}

}  // namespace fluxqueue::delivery
