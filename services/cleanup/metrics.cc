#include "services/cleanup/metrics.h"

#include "libs/kafka/envelope.h"

namespace fluxqueue::cleanup {

CleanupMetrics::CleanupMetrics(metrics::Registry& registry)
    : facts_(registry.MakeCounters("fluxqueue_cleanup_facts_total",
                                   "What was said to the pools' logs, by type.")),
      unknown_jobs_(
          registry.MakeCounter("fluxqueue_cleanup_unknown_jobs_total",
                               "Ends of workloads that carry our hold and were never submitted.")),
      bad_objects_(registry.MakeCounter("fluxqueue_cleanup_bad_objects_total",
                                        "Objects of the API server that could not be read.")),
      jobs_(registry.MakeGauge("fluxqueue_cleanup_jobs", "Jobs in view.")),
      nodes_(registry.MakeGauge("fluxqueue_cleanup_nodes", "Nodes in view.")),
      drift_(registry.MakeCounters("fluxqueue_cleanup_drift_total",
                                   "Differences between cluster and Postgres, confirmed and "
                                   "repaired, by kind.")),
      sweeps_(registry.MakeCounter("fluxqueue_cleanup_sweeps_total", "Sweeps done.")) {}

void CleanupMetrics::Fact(const events::v1::Envelope& fact) {
  const std::string type(kafka::EventType(fact));
  auto it = fact_counters_.find(type);
  if (it == fact_counters_.end()) {
    it = fact_counters_.emplace(type, facts_.With({{"type", type}})).first;
  }
  it->second.Add();
}

void CleanupMetrics::View(size_t jobs, size_t nodes) {
  jobs_.Set(static_cast<double>(jobs));
  nodes_.Set(static_cast<double>(nodes));
}

}  // namespace fluxqueue::cleanup
