// The queue's metrics. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/metrics/metrics.h"
#include "libs/model/job_state.h"

namespace fluxqueue::queue {

struct ErrandResult;  // adapters/command_desk.h

class QueueMetrics {
 public:
  explicit QueueMetrics(metrics::Registry& registry);

  // Jobs that have not ended, by queue and state.
  void Jobs(const std::string& pool,
            const std::map<std::pair<std::string, model::JobState>, size_t>& counts);
  void Fact(const events::v1::JobFact& fact);
  void Stale(uint64_t stale, uint64_t unwanted);
  void RowsWritten(size_t rows) { rows_.Add(static_cast<double>(rows)); }
  void FluxJobWritten(bool ok) { (ok ? flux_jobs_written_ : flux_jobs_failed_).Add(); }
  void Command(const events::v1::CommandAccepted& command, const ErrandResult& result);
  void EventWritten() { kubernetes_events_.Add(); }

 private:
  metrics::GaugeFamily jobs_;
  metrics::CounterFamily facts_;
  metrics::Latency wait_seconds_;
  metrics::Counter stale_;
  metrics::Counter unwanted_;
  metrics::Counter rows_;
  metrics::Counter flux_jobs_written_;
  metrics::Counter flux_jobs_failed_;
  metrics::Counter kubernetes_events_;
  metrics::CounterFamily commands_;
  std::map<std::string, metrics::Counter> fact_counters_;
  std::map<std::string, metrics::Gauge> job_gauges_;
};

}  // namespace fluxqueue::queue
