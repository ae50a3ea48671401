// The queue's metrics. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/metrics/metrics.h"
#include "libs/model/job_state.h"
#include "libs/queue_core/figures.h"

namespace fluxqueue::queue {

struct ErrandResult;  // adapters/command_desk.h

class QueueMetrics {
 public:
  explicit QueueMetrics(metrics::Registry& registry);

  // Jobs that have not ended, by queue and state.
  void Jobs(const std::string& pool,
            const std::map<std::pair<std::string, model::JobState>, size_t>& counts);
  void Figures(const std::string& pool,
               const std::map<std::string, queue_core::QueueFigures>& figures);
  // Another replica speaks for the pool now.
  void Dropped(const std::string& pool);
  void Fact(const events::v1::JobFact& fact);
  void Timed(const queue_core::Timing& timing);
  void Stale(uint64_t stale, uint64_t unwanted);
  void FluxJobWritten(bool ok) { (ok ? flux_jobs_written_ : flux_jobs_failed_).Add(); }
  void FluxJobsLeftOut(uint64_t jobs) { flux_jobs_left_out_.Add(static_cast<double>(jobs)); }
  void Command(const events::v1::CommandAccepted& command, const ErrandResult& result);
  void EventWritten() { kubernetes_events_.Add(); }

 private:
  metrics::GaugeFamily jobs_;
  metrics::GaugeFamily waiting_;
  metrics::GaugeFamily oldest_;
  metrics::GaugeFamily allocated_;
  metrics::GaugeFamily share_;
  metrics::GaugeFamily weight_;
  metrics::GaugeFamily budget_;
  metrics::CounterFamily facts_;
  metrics::LatencyFamily wait_seconds_;
  metrics::LatencyFamily stage_seconds_;
  metrics::LatencyFamily slip_seconds_;
  metrics::Counter stale_;
  metrics::Counter unwanted_;
  metrics::Counter flux_jobs_written_;
  metrics::Counter flux_jobs_failed_;
  metrics::Counter flux_jobs_left_out_;
  metrics::Counter kubernetes_events_;
  metrics::CounterFamily commands_;
  std::map<std::string, metrics::Counter> fact_counters_;
  using Values = std::map<metrics::Labels, double>;
  // What was set is 0 when it is not named any more.
  static void Replace(metrics::GaugeFamily& family, Values now, Values* shown);
  struct Shown {
    Values jobs, waiting, oldest, allocated, share, weight, budget;
  };
  std::map<std::string, Shown> shown_;  // by pool
};

}  // namespace fluxqueue::queue
