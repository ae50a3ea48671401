// The workload that `packed` keeps GPUs of use for (packing.h): which slots with GPUs are known of,
// queued or running. It follows from the jobs that there are, and not from the order in which they
// came. By rules from 6 on it is a forecast instead (forecast.h).
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "libs/graph/jobspec.h"
#include "libs/graph/workload.h"

namespace fluxqueue::graph {

bool AsksForGpus(const Amounts& request);

class ExpectedWork {
 public:
  // So many jobs more, or fewer. REQUIRES: not fewer than none.
  void Add(const Jobspec& jobspec, int64_t jobs);

  // It is this from now on; nothing: it is what is known of.
  void SetForecast(std::optional<Workload> forecast);
  const std::optional<Workload>& forecast() const { return forecast_; }

  // Whether Shapes() may be another than at the last call of Shapes().
  bool changed() const { return changed_; }
  // The forecast, or at most 64 shapes: those that come most often.
  Workload Shapes();

  // Of all that is known.
  uint64_t Fingerprint() const;

 private:
  // By what a slot asks for and where it may go.
  std::map<std::string, WorkloadShape> shapes_;
  std::optional<Workload> forecast_;
  bool changed_ = false;
};

}  // namespace fluxqueue::graph
