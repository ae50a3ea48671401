// One way to run a workload: what a row of the report compares. Plain values; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::simulation {

// How long the queue is told that a job will run.
enum class Estimates {
  kExact,      // what it did run
  kRequested,  // what its user asked for; where the trace does not say, see default_duration
  kDouble,     // twice what it did run
  kModal,      // the next round value that users like
  kPredicted,  // as requested; the queue plans with what the user's last like jobs took
};

struct Setting {
  std::string strategy = "fcfs";
  std::string policy = "first";
  Estimates estimates = Estimates::kExact;
  // Submit times are multiplied by it: below 1 the load is higher.
  double arrival_scale = 1;
  // What the queue plans with where nothing was asked for. 0: such jobs are told exactly.
  Millis default_duration{0};
  uint32_t queue_depth = 0;  // candidates of a cycle; 0: as of a queue that does not say
  uint32_t reservation_depth = 0;
  // Several queues side by side, by their weights; all of a user's jobs stand in one of them.
  // Empty: one queue.
  std::vector<int32_t> queues{};
  std::string order{};                    // of each queue; empty: "priority"
  std::optional<Millis> reserve_after{};  // of each queue; unset: as of one that does not say
  uint32_t rules = 0;                     // libs/model/rules.h; 0: the latest

  // "easy, first, exact": what the table and the plots call it. Without what all settings share it
  // would be shorter and mean less.
  std::string Name() const;
};

std::string_view Name(Estimates estimates);
// "exact", "requested", "x2", "modal", "predicted". InvalidArgument names those.
absl::StatusOr<Estimates> ParseEstimates(std::string_view name);

// InvalidArgument: there is no such strategy or policy. Names what there is.
absl::Status CheckSetting(const Setting& setting);

}  // namespace fluxqueue::simulation
