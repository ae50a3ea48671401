// The jobs of a simulation, from a trace. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/simulation/machine.h"
#include "libs/simulation/setting.h"
#include "libs/trace/trace.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::simulation {

struct Workload {
  std::vector<trace::TraceJob> jobs{};  // by submit time, from 0 on
  // Left out.
  size_t without_run_time = 0;
  size_t without_processors = 0;
  size_t too_wide = 0;
};

// What becomes of a job that the empty machine has no room for.
enum class TooWide { kRefuse, kLeaveOut };

// Jobs as this machine runs them: on one of processors, the slots of a job become one slot that is
// as large. Jobs without a run time are left out. InvalidArgument names the first job that could
// never run, and its line in `file`.
absl::StatusOr<Workload> MakeWorkload(trace::Trace trace,
                                      const Machine& machine,
                                      TooWide too_wide,
                                      std::string_view file);

// Time is simulated in whole seconds, which is what a cycle knows. From the first job on.
Millis SubmitTime(const trace::TraceJob& job, double arrival_scale);  // the nearest
Millis RunTime(const trace::TraceJob& job);                           // rounded up, at least 1 s

// What the queue is told; unset: nothing, and it has a default. `unknown` is counted up where it
// was to be what the user asked for, and he had not said.
std::optional<Millis> Estimate(const trace::TraceJob& job, const Setting& setting, size_t* unknown);

// Processors in words of the machine: cpus rounded up, at least 1.
int64_t ProcessorsOf(const trace::TraceJob& job);

}  // namespace fluxqueue::simulation
