// What an attempt leaves behind for accounting: a row of queue.attempts.
//
// An attempt ends when its job ends or is requeued. What it used is amounts times the time for
// which they were held, from the allocation to the end: a slot that was given back before, or came
// later (elastic), counts for its own time only. Whole numbers, rounded down; sums stop at the
// greatest number there is.
//
// A job that is resized while it runs is counted with its last size.
//
// Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <string_view>

#include "libs/queue_core/job.h"
#include "libs/queue_core/rows.h"

namespace fluxqueue::queue_core {

// The outcome of an attempt after which the job goes on; else it is the name of the job's last
// state.
inline constexpr std::string_view kRequeued = "Requeued";

// The attempt that ends now. REQUIRES: the job still has what it held.
AttemptRecord EndAttempt(const Job& job, std::string_view outcome, int64_t now_ms);

// The job holds one slot less from now on, or so many more.
void CountSlotBack(Job& job, int64_t now_ms);
void CountMoreSlots(Job& job, uint32_t more, int64_t now_ms);

}  // namespace fluxqueue::queue_core
