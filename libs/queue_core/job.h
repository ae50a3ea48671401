// One job as the queue's core keeps it in memory: below half a KB with its indexes, strings aside.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/model/job_state.h"

namespace fluxqueue::queue_core {

struct Job {
  std::string id;
  std::shared_ptr<const events::v1::Workload> workload;  // never changes
  std::string queue;
  int32_t priority = 0;
  std::optional<int64_t> duration_ms;  // unset: the queue's default
  bool hold = false;
  uint32_t slots = 0;
  uint32_t revision = 0;
  uint64_t submission = 0;  // its place in the order of submission
  int64_t created_ms = 0;

  model::JobState state = model::JobState::kNone;
  uint64_t version = 0;
  uint32_t attempt = 1;
  uint32_t failures = 0;
  std::string reason;
  std::string message;
  int64_t updated_ms = 0;
  int64_t start_ms = 0;
  uint64_t placement_hash = 0;
  int64_t effective_duration_ms = 0;  // as in the last fact

  // Pending: not a candidate before; see JobRow.
  int64_t not_before_ms = 0;
  int64_t unsatisfiable_since_ms = 0;

  // Stopping: what comes next, and as what a requeue counts.
  events::v1::JobFact::AfterStop after_stop = events::v1::JobFact::AFTER_STOP_UNSPECIFIED;
  bool requeue_is_failure = false;

  std::vector<uint32_t> released_slots;  // rising

  // Named in the cycle in flight with this attempt. Not in the row: it follows from the cycle.
  bool in_cycle = false;
};

// The fact that says all of the job as it is. `pool` is the job's pool.
events::v1::JobFact ToFact(const Job& job, const std::string& pool);
queue::v1::JobRow ToRow(const Job& job, const std::string& pool);
Job FromRow(const queue::v1::JobRow& row);

// Holds resources without pods (libs/model/workload.h).
bool IsClaim(const Job& job);

// True for a Job with no more completions than slots: a slot whose pod has succeeded has no use for
// it any more, and is given back before the rest.
bool GivesSlotsBackEarly(const Job& job);

}  // namespace fluxqueue::queue_core
