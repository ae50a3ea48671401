// Cleanup's metrics. Thread-safe.
#pragma once

#include <map>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/metrics/metrics.h"

namespace fluxqueue::cleanup {

class CleanupMetrics {
 public:
  explicit CleanupMetrics(metrics::Registry& registry);

  // Said and committed. Loop's thread only.
  void Fact(const events::v1::Envelope& fact);
  void UnknownJob() { unknown_jobs_.Add(); }
  void BadObject() { bad_objects_.Add(); }
  void View(size_t jobs, size_t nodes);
  // What a sweep has found and confirmed.
  void Drift(const char* kind) { drift_.With({{"kind", kind}}).Add(); }
  void Swept() { sweeps_.Add(); }

 private:
  metrics::CounterFamily facts_;
  metrics::Counter unknown_jobs_;
  metrics::Counter bad_objects_;
  metrics::Gauge jobs_;
  metrics::Gauge nodes_;
  metrics::CounterFamily drift_;
  metrics::Counter sweeps_;
  std::map<std::string, metrics::Counter> fact_counters_;
};

}  // namespace fluxqueue::cleanup
