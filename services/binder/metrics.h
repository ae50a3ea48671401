// The binder's metrics. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "libs/metrics/metrics.h"
#include "services/binder/domain/call.h"
#include "services/binder/domain/plan_context.h"

namespace fluxqueue::binder {

class BinderMetrics {
 public:
  explicit BinderMetrics(metrics::Registry& registry);

  // A message that was committed.
  void Said(const Saying& saying);
  void CallMade(const CallResult& result, std::chrono::duration<double> latency);
  void CallsWaiting(size_t calls) { calls_waiting_.Set(static_cast<double>(calls)); }
  void Following(size_t jobs, size_t pods);
  void AnswersDropped(uint64_t in_all);
  void UnreadableObject() { unreadable_objects_.Add(); }
  void Bypassing(size_t pods) { bypassing_.Set(static_cast<double>(pods)); }
  void BypassStopped() { bypass_stops_.Add(); }

 private:
  static constexpr size_t kKinds = static_cast<size_t>(Call::Kind::kReadJob) + 1;  // the last
  static constexpr size_t kOutcomes = 5;

  metrics::Latency bind_seconds_;
  metrics::CounterFamily failures_;  // by reason
  metrics::Latency stop_seconds_;
  std::array<std::array<metrics::Counter, kOutcomes>, kKinds> calls_;
  std::array<metrics::Latency, kKinds> call_seconds_;
  metrics::Gauge calls_waiting_;
  metrics::Gauge jobs_;
  metrics::Gauge pods_;
  metrics::Counter answers_dropped_;
  metrics::Counter unreadable_objects_;
  metrics::Gauge bypassing_;
  metrics::Counter bypass_stops_;
};

}  // namespace fluxqueue::binder
