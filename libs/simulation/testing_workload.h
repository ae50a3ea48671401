// Workloads for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/simulation/machine.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

inline trace::TraceJob Job(const std::string& name,
                           double submit,
                           double run,
                           int64_t processors,
                           const std::string& user = "") {
  trace::TraceJob job;
  job.name = name;
  job.user = user;
  job.submit_s = submit;
  job.run_s = run;
  job.slots = processors;
  job.requests = {{"cpu", 1000}};
  return job;
}

inline Workload WorkloadOf(const std::vector<trace::TraceJob>& jobs, const Machine& machine) {
  trace::Trace trace;
  trace.jobs = jobs;
  absl::StatusOr<Workload> workload =
      MakeWorkload(std::move(trace), machine, TooWide::kRefuse, "test.swf");
  CHECK(workload.ok(), "{}", Message(workload.status()));
  return *std::move(workload);
}

}  // namespace fluxqueue::simulation
