// The matcher's metrics. Verbs are called from the loop's thread; those of engines from any.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

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
  // One candidate of a cycle.
  void Tried(const std::string& engine,
             const events::v1::Outcome& outcome,
             std::chrono::duration<double> latency);
  void Inventory(const std::string& pool, const matcher_core::MatcherCore& core);
  // A look at every node.
  void Resources(const std::string& pool, const graph::Engine& engine);
  // Another replica speaks for the pool now.
  void Dropped(const std::string& pool);
  void LibraryRestarted() { restarts_.Add(); }
  void ShadowCompared(fluxion::Comparison result, size_t answers) {
    shadow_[static_cast<size_t>(result)].Add(static_cast<double>(answers));
  }

 private:
  metrics::Latency cycle_seconds_;
  metrics::Histogram candidates_;
  metrics::LatencyFamily match_seconds_;
  // By engine and outcome.
  std::map<std::pair<std::string, events::v1::Outcome::Kind>, metrics::Latency> matches_;
  metrics::GaugeFamily nodes_;
  metrics::GaugeFamily jobspecs_;
  metrics::GaugeFamily allocations_;
  metrics::GaugeFamily resources_;
  metrics::GaugeFamily fragmentation_;
  metrics::GaugeFamily engine_;
  std::map<std::string, std::set<std::string>> resources_shown_;  // by pool
  metrics::Counter restarts_;
  std::array<metrics::Counter, 4> shadow_;  // by Comparison
};

}  // namespace fluxqueue::matcher
