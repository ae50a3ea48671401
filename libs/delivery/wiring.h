// What every service does to get its loop: options from its configuration, and the loop's counters
// as metrics. Thread-safe.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "libs/config/service_config.h"
#include "libs/delivery/options.h"
#include "libs/delivery/quarantine.h"
#include "libs/delivery/stats.h"
#include "libs/metrics/metrics.h"
#include "libs/postgres/migrations.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

// `service`: "queue"; also the schema.
LoopOptions MakeLoopOptions(const config::ServiceConfig& config, const std::string& service);

// A service's --prepare: the schema and tables of its loop, `migrations` behind them, and the
// topics (delivery::Prepare).
absl::Status PrepareService(const config::ServiceConfig& config,
                            const std::string& service,
                            const std::vector<const postgres::MigrationSet*>& migrations,
                            std::stop_token stop);

// fluxqueue_consumer_lag, fluxqueue_outbox_depth, fluxqueue_dead_letters_total,
// fluxqueue_delivery_…, with the label `component`. `stats` must outlive the registry's last
// Text().
void ExportStats(metrics::Registry& registry, const std::string& service, const Stats& stats);
// fluxqueue_quarantined_total. `quarantine` must outlive the registry's last Text().
void ExportQuarantine(metrics::Registry& registry,
                      const std::string& service,
                      const Quarantine& quarantine);

}  // namespace fluxqueue::delivery
