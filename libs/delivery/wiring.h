// What every service does to get its loop: options from its configuration, and the loop's counters
// as metrics. Thread-safe.
#pragma once

#include <string>

#include "libs/config/service_config.h"
#include "libs/delivery/options.h"
#include "libs/delivery/stats.h"
#include "libs/metrics/metrics.h"

namespace fluxqueue::delivery {

// `service`: "queue"; also the schema.
LoopOptions MakeLoopOptions(const config::ServiceConfig& config, const std::string& service);

// fluxqueue_consumer_lag, fluxqueue_outbox_depth, fluxqueue_dead_letters_total,
// fluxqueue_delivery_…, with the label `component`. `stats` must outlive the registry's last
// Text().
void ExportStats(metrics::Registry& registry, const std::string& service, const Stats& stats);

}  // namespace fluxqueue::delivery
