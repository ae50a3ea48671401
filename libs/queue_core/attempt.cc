#include "libs/queue_core/attempt.h"

#include <algorithm>
#include <limits>

#include "libs/base/int128.h"

namespace fluxqueue::queue_core {
namespace {

using scheduling::Resources;

constexpr int64_t kBytesPerMib = int64_t{1} << 20;

int64_t Clamp(Int128 number) {
  using Limits = std::numeric_limits<int64_t>;
  return static_cast<int64_t>(std::clamp<Int128>(number, Limits::min(), Limits::max()));
}

// Slots times milliseconds.
int64_t SlotMillis(const Job& job, int64_t now_ms) {
  if (job.allocated_ms == 0) return 0;
  const Int128 held = Int128{LiveSlots(job)} * (now_ms - job.allocated_ms) + job.slot_ms;
  return std::max<int64_t>(0, Clamp(held));
}

}  // namespace

AttemptRecord EndAttempt(const Job& job, std::string_view outcome, int64_t now_ms) {
  const Resources& asked = *job.amounts;
  const int64_t slot_ms = SlotMillis(job, now_ms);
  const auto used = [&](int64_t amount, int64_t unit) {
    return Clamp(Int128{amount} * slot_ms / (Int128{job.slots} * 1000 * unit));
  };
  const bool started = job.allocated_ms != 0;
  AttemptRecord record;
  record.job_id = job.id;
  record.attempt = job.attempt;
  record.user = *job.user;
  record.name_space = job.workload->namespace_();
  record.name = job.workload->name();
  record.kind = job.workload->kind();
  record.queue = job.queue;
  record.outcome = outcome;
  record.reason = job.reason;
  record.message = job.message;
  record.slots = SlotsOf(job);
  record.duration_ms = job.effective_duration_ms;
  record.cpu = asked[scheduling::kCpu];
  record.memory = asked[scheduling::kMemory];
  record.gpu = asked[scheduling::kGpu];
  record.cpu_seconds = used(record.cpu, 1);
  record.memory_seconds = used(record.memory, kBytesPerMib);
  record.gpu_seconds = used(record.gpu, 1);
  record.submitted_ms = job.submitted_ms;
  record.waited_ms = (started ? job.allocated_ms : now_ms) - job.attempt_since_ms;
  if (started) record.start_ms = job.allocated_ms;
  record.end_ms = now_ms;
  return record;
}

void CountSlotBack(Job& job, int64_t now_ms) {
  job.slot_ms = Clamp(Int128{job.slot_ms} + (now_ms - job.allocated_ms));
}

void CountMoreSlots(Job& job, uint32_t more, int64_t now_ms) {
  job.slot_ms = Clamp(job.slot_ms - Int128{more} * (now_ms - job.allocated_ms));
}

}  // namespace fluxqueue::queue_core
