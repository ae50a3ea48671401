// What is said of promises besides their time: whether they are firm (bound_ends.h), and why one
// moved or went.
//
// A promise that is lost leaves behind why (promise_book.h). That is said with the job's next
// outcome, and forgotten after the next answer: a job that was not named in it has left the line
// for a reason that the queue knows.
//
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/types.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

// Why what the candidate was promised is not free in time: a window that was open to it is not any
// more, a job has not ended, or nodes are kept for another. `kept_for`: that one; empty: none are.
events::v1::Slip WhyNotInTime(const View& view,
                              int64_t now_s,
                              const std::string& kept_for,
                              const events::v1::Candidate& candidate,
                              const graph::Placement& promise);

// Says which of the answer's promises are firm, and why those that were lost were. `lost`: by key,
// since the last answer.
void SayPromises(const View& view,
                 const events::v1::CycleRequested& request,
                 const std::map<AllocationKey, events::v1::Slip>& lost,
                 events::v1::CycleAnswered* answer);

}  // namespace fluxqueue::matcher_core
