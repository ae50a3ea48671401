// The matcher's metrics. Verbs are called from the loop's thread; those of engines from any.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/fluxion/shadow_engine.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/metrics/metrics.h"

namespace fluxqueue::matcher {

class MatcherMetrics {
 public:
  explicit MatcherMetrics(metrics::Registry& registry);

  void CycleAnswered(const events::v1::CycleAnswered& answer,
                     std::chrono::duration<double> latency);
  void Inventory(const std::string& pool, const matcher_core::MatcherCore& core);
  void RowsWritten(size_t rows) { rows_.Add(static_cast<double>(rows)); }
  void LibraryRestarted() { restarts_.Add(); }
  void ShadowCompared(fluxion::Comparison result, size_t answers) {
    shadow_[static_cast<size_t>(result)].Add(static_cast<double>(answers));
  }

 private:
  metrics::Latency cycle_seconds_;
  metrics::Histogram candidates_;
  std::array<metrics::Counter, 5> outcomes_;  // by Outcome.Kind, from KIND_ALLOCATED
  metrics::GaugeFamily nodes_;
  metrics::GaugeFamily jobs_;
  metrics::GaugeFamily engine_;
  metrics::Counter rows_;
  metrics::Counter restarts_;
  std::array<metrics::Counter, 4> shadow_;  // by Comparison
};

}  // namespace fluxqueue::matcher
