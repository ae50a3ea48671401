#include "services/cleanup/metrics.h"

#include "libs/kafka/envelope.h"

namespace fluxqueue::cleanup {

CleanupMetrics::CleanupMetrics(metrics::Registry& registry)
    : facts_(registry.MakeCounters("fluxqueue_messages_total",
                                   "Messages committed to the pools' logs.",
                                   {"component", "type"})),
      unknown_jobs_(
          registry.MakeCounter("fluxqueue_unknown_jobs_total",
                               "Ends of workloads that carry our hold and were never submitted.")),
      bad_objects_(registry.MakeCounter("fluxqueue_unreadable_objects_total",
                                        "Objects of the API server that could not be read.",
                                        {{"component", "cleanup"}})),
      jobs_(registry.MakeGauge("fluxqueue_cleanup_jobs", "Jobs in view.")),
      nodes_(registry.MakeGauge("fluxqueue_cleanup_nodes", "Nodes in view.")),
      drift_(registry.MakeCounters("fluxqueue_drift_total",
                                   "Differences between cluster and Postgres, confirmed and "
                                   "repaired.",
                                   {"kind"})),
      sweeps_(registry.MakeCounter("fluxqueue_sweeps_total",
                                   "Full lists of the cluster compared with the rows.",
                                   {{"component", "cleanup"}})) {
  // From 0, so that the first one of a kind is seen to happen.
  for (const char* kind : {"end_not_heard", "workload_gone", "orphan_pod"}) {
    drift_.With({{"kind", kind}});
  }
}

void CleanupMetrics::Fact(const events::v1::Envelope& fact) {
  const std::string type(kafka::EventType(fact));
  auto it = fact_counters_.find(type);
  if (it == fact_counters_.end()) {
    it =
        fact_counters_.emplace(type, facts_.With({{"component", "cleanup"}, {"type", type}})).first;
  }
  it->second.Add();
}

void CleanupMetrics::View(size_t jobs, size_t nodes) {
  jobs_.Set(static_cast<double>(jobs));
  nodes_.Set(static_cast<double>(nodes));
}

}  // namespace fluxqueue::cleanup
