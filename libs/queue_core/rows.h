// What the queue's core has to be kept in Postgres, as plain structs: the shell's store writes them
// with set-based SQL and reads them back for Restore. Blobs are the protos of queue/v1/rows.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/model/job_state.h"

namespace fluxqueue::queue_core {

// queue.jobs: one for each job that changed, as it is at the end of the batch.
struct JobChange {
  std::string job_id;
  std::string queue;
  std::string name_space;
  std::string name;
  std::string kind;
  // Guard of an update: the row's version must be lower than this one.
  model::JobState state = model::JobState::kNone;
  uint64_t version = 0;
  uint32_t attempt = 0;
  std::string reason;
  std::string message;
  uint32_t slots = 0;
  int32_t priority = 0;
  int64_t created_ms = 0;
  int64_t start_ms = 0;
  int64_t updated_ms = 0;
  uint64_t placement_hash = 0;
  uint64_t ending = 0;
  uint32_t most_slots = 0;  // elastic
  std::string user;
  uint32_t jobspec_bytes = 0;
  std::string row;  // JobRow
};

// queue.job_events: one for each fact, in the order said.
struct JobEvent {
  std::string job_id;
  uint64_t version = 0;
  int64_t time_ms = 0;
  model::JobState state = model::JobState::kNone;
  uint32_t attempt = 0;
  std::string reason;
  std::string message;
};

// queue.attempts: one for each attempt that has ended (attempt.h).
struct AttemptRecord {
  std::string job_id;
  uint32_t attempt = 0;  // rising; a number may be left out
  std::string user;
  std::string name_space;
  std::string name;
  std::string kind;
  std::string queue;
  std::string outcome;  // the job's last state, or "Requeued"
  std::string reason;
  std::string message;
  uint32_t slots = 0;  // that it held at its end; of one that never held any, that it asked for
  int64_t duration_ms = 0;  // that it might run; 0: unlimited
  // Asked, of all slots: millicores, bytes, thousandths of a gpu.
  int64_t cpu = 0;
  int64_t memory = 0;
  int64_t gpu = 0;
  // Used: millicore-seconds, MiB-seconds, thousandths of gpu-seconds.
  int64_t cpu_seconds = 0;
  int64_t memory_seconds = 0;
  int64_t gpu_seconds = 0;
  // In the log's time. `submitted_ms` is the job's; an attempt waits from there, or from the end of
  // the attempt before.
  int64_t submitted_ms = 0;
  int64_t waited_ms = 0;
  std::optional<int64_t> start_ms;  // it held its slots from here on; unset: never
  int64_t end_ms = 0;
};

// queue.promises: what a job was told of its start, one for each change of it (promises.h).
struct PromiseRecord {
  std::string job_id;
  uint64_t version = 0;  // of the job, that says it
  std::string queue;
  int64_t told_ms = 0;    // in the log's time
  int64_t start_ms = 0;   // promised, or, where it was kept, real; 0: the promise is withdrawn
  int64_t before_ms = 0;  // promised before; 0: nothing was
  bool firm = false;
  bool kept = false;      // it has been allocated
  events::v1::Slip slip;  // why it is later, or withdrawn
};

// queue.queues: an upsert, or a deletion.
struct QueueChange {
  std::string queue;
  bool deleted = false;
  std::string row;  // QueueRow
};

// queue.usage: an upsert, or a deletion.
struct UsageChange {
  std::string kind;  // "queue", "namespace", "user": what was used; "history": how long jobs ran
  std::string name;
  bool deleted = false;
  std::string row;  // UsageRow
};

// queue.cycles: inserted when asked, marked when answered (perhaps both in one batch).
struct CycleRequest {
  uint64_t cycle_id = 0;
  std::string requested;  // CycleRequested
};

// What a batch changed.
struct Changes {
  std::vector<JobChange> jobs;
  std::vector<JobEvent> events;
  std::vector<AttemptRecord> attempts{};
  std::vector<PromiseRecord> promises{};
  std::vector<QueueChange> queues;
  std::vector<UsageChange> usage;
  std::vector<CycleRequest> cycles_requested;
  std::vector<uint64_t> cycles_answered;
  // PoolRow; empty: nothing changed at all.
  std::string pool;

  bool empty() const { return pool.empty(); }
};

// What Restore wants of one pool.
struct Rows {
  std::string pool;                  // queue.pools.row; empty: the pool is new
  std::vector<std::string> queues;   // queue.queues.row
  std::vector<std::string> jobs;     // queue.jobs.row, of the states that are not terminal
  std::vector<std::string> usage{};  // queue.usage.row
  // queue.jobs.row of the last kEndingsKept that have ended, in the order of their endings.
  std::vector<std::string> endings{};
  std::vector<std::string> cycles_unanswered;  // queue.cycles.requested, not answered (one at most)
};

}  // namespace fluxqueue::queue_core
