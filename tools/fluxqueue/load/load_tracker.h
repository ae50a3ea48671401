// What is known of each job of a load: when it was submitted, what the cluster has said of it
// since, and whether that is its end. Confined to one thread (its user locks); pure: times are
// arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "tools/fluxqueue/load/load_plan.h"

namespace fluxqueue::load {

enum class Ending {
  kNotYet,
  kSucceeded,
  kFailed,
  kCancelled,
  kRejected,  // Fluxqueue: nothing here could ever run it
  kRefused,   // the API server did not take the Job
};

// Times are milliseconds since the Unix epoch; unset: it has not come to that (yet).
struct JobRecord {
  const PlannedJob* planned = nullptr;
  std::optional<int64_t> submitted_ms{};
  std::optional<int64_t> allocated_ms{};
  std::optional<int64_t> bound_ms{};
  std::optional<int64_t> started_ms{};  // its first pod ran
  std::optional<int64_t> ended_ms{};
  Ending ending = Ending::kNotYet;

  // For people: what the FluxJob and the Job say of it.
  std::string state{};  // of the FluxJob; empty: there is none
  std::string reason{};
  std::string message{};
  std::string job_status{};
  bool job_complete = false;
  bool job_failed = false;
};

struct Counts {
  size_t submitted = 0;
  size_t running = 0;  // started and not ended
  size_t ended = 0;    // in whatever way
  size_t rejected = 0;
};

class LoadTracker {
 public:
  // `plan` must outlive it. Managed: a job has ended when its FluxJob says so, and if that says
  // Succeeded, its Job too. Else when the Job says so.
  LoadTracker(const Plan& plan, bool managed);

  void Submitted(size_t index, int64_t now_ms);
  void Refused(size_t index, std::string_view message, int64_t now_ms);

  // A Job, FluxJob as JSON; those of other jobs are ignored. InvalidArgument: it cannot be read.
  absl::Status SawJob(std::string_view text, int64_t now_ms);
  absl::Status SawFluxJob(std::string_view text);
  // The Job has gone (someone deleted it).
  void SawJobGone(std::string_view name, int64_t now_ms);

  const std::vector<JobRecord>& records() const { return records_; }
  const Counts& counts() const { return counts_; }
  bool Finished() const { return counts_.ended == records_.size(); }

 private:
  JobRecord* Find(std::string_view name);
  void Start(JobRecord* record, int64_t time_ms);
  void Settle(JobRecord* record);
  void End(JobRecord* record, Ending ending);

  const bool managed_;
  std::vector<JobRecord> records_;  // in the order of the plan
  std::unordered_map<std::string, size_t> by_name_;
  Counts counts_;
};

}  // namespace fluxqueue::load
