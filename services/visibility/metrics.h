// The front's metrics. Thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "libs/http/server.h"
#include "libs/metrics/metrics.h"

namespace fluxqueue::visibility {

class VisibilityMetrics {
 public:
  explicit VisibilityMetrics(metrics::Registry& registry);

  // `verb`: of what was asked; "discovery"; empty: nothing that there is.
  void Answered(std::string_view verb, int code, std::chrono::duration<double> latency);
  void TurnedAway(http::Refusal refusal);

 private:
  metrics::CounterFamily requests_;
  metrics::Latency seconds_;
  metrics::CounterFamily refusals_;
};

}  // namespace fluxqueue::visibility
