// The figures of a load that is over, for people and for programs. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/fluxqueue/load/load_plan.h"
#include "tools/fluxqueue/load/load_tracker.h"

namespace fluxqueue::load {

struct NamedReason {
  std::string job;
  std::string reason;
};

// Times in seconds.
struct LoadReport {
  size_t jobs = 0;
  size_t pods = 0;
  size_t nodes = 0;
  size_t without_run_time = 0;  // left out of the trace
  size_t without_processors = 0;

  size_t ended = 0;  // of them:
  size_t succeeded = 0;
  size_t failed = 0;
  size_t cancelled = 0;
  std::vector<NamedReason> rejected{};  // could not run on these nodes, and Fluxqueue said so
  std::vector<NamedReason> wrongly_rejected{};
  std::vector<NamedReason> refused{};
  std::vector<NamedReason> not_ended{};  // and what keeps them

  double span_s = 0;      // from the first submission to the last end
  double jobs_per_s = 0;  // that ran and have ended
  double pods_per_s = 0;
  // From the submission to the first running pod; to all pods bound. Unset: nothing to measure.
  std::optional<double> wait_p50_s{};
  std::optional<double> wait_p99_s{};
  std::optional<double> bound_p50_s{};
  std::optional<double> bound_p99_s{};
  // How much later than planned the API server had the Jobs: above a second or so, the load was not
  // as fast as asked, and so waits are smaller than they would be.
  std::optional<double> submitted_late_p99_s{};
  // By resource: the share of what the nodes offer over the span that the jobs which succeeded
  // asked for while their pods ran. What a job holds before its pods run and after they have ended
  // is not use, so what the system itself takes makes it smaller.
  std::vector<std::pair<std::string, double>> utilisation{};

  // All that could run has ended, nothing was refused, and what was rejected could not run.
  bool Good() const { return not_ended.empty() && refused.empty() && wrongly_rejected.empty(); }
};

LoadReport MakeReport(const Plan& plan, const std::vector<JobRecord>& records);

std::string FormatTable(const LoadReport& report);
std::string FormatJson(const LoadReport& report);

}  // namespace fluxqueue::load
