// What `packed` expects by rules from 6 on: what came (libs/graph/forecast.h), in a row of its own.
// By other policies and rules nothing is forecast, and the row is empty.
//
// Changes are provisional until Commit(); the engine takes back itself what it was told. Thread-
// compatible.
#pragma once

#include <optional>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/graph/engine.h"
#include "libs/graph/forecast.h"
#include "libs/matcher_core/specs.h"

#include "absl/status/status.h"

namespace fluxqueue::matcher_core {

class ForecastBook {
 public:
  // The pool's configuration was the one, and is the other from now on. `specs`: of all live jobs.
  void Configure(const events::v1::PoolConfigured& was,
                 const events::v1::PoolConfigured& is,
                 const Specs& specs,
                 Millis now,
                 graph::Engine* engine);
  // `tenant`: a namespace; claims are one together.
  void Arrive(const events::v1::PoolConfigured& config,
              const std::string& tenant,
              const graph::Jobspec& jobspec,
              Millis now,
              graph::Engine* engine);

  std::string Row(const events::v1::PoolConfigured& config) const;
  // In this batch; it may be the same again.
  bool changed() const { return before_.has_value(); }
  // InvalidArgument: the row does not decode.
  absl::Status Restore(const events::v1::PoolConfigured& config,
                       const std::optional<std::string>& row,
                       graph::Engine* engine);
  void Commit() { before_.reset(); }
  void Rollback();

 private:
  void Remember();

  graph::Forecast forecast_;
  // At the last Commit; nothing: it is the same.
  std::optional<graph::Forecast> before_;
};

}  // namespace fluxqueue::matcher_core
