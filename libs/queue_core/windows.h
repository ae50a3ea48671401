// Windows: nodes that are kept for a time (WindowConfigured). The matcher keeps them; here is known
// who may use them nevertheless, and that what was refused is asked for again when one was set, was
// deleted or is over.
//
// Unlike what the matcher says, such a change may stand between a request and its answer without
// being known to it: then the answer ends the cycle as always, and another begins.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/queue_core/job.h"
#include "libs/queue_core/pool_state.h"

#include "absl/status/status.h"

namespace fluxqueue::queue_core {

// InvalidArgument names the window, its times and what is allowed.
absl::Status CheckWindow(const events::v1::WindowConfigured& configured);

// The pool's windows after that; nothing: they are the same.
std::optional<Windows> WithWindow(const PoolState& state,
                                  const events::v1::WindowConfigured& configured);
// Without those that are over; nothing: none is.
std::optional<Windows> WithoutPastWindows(const PoolState& state);
// When the next one is over.
std::optional<int64_t> NextWindowEnd(const PoolState& state);
// Those that the job may use.
void NameWindows(const PoolState& state, const Job& job, events::v1::Candidate* candidate);
// The first one that the job may not use and would meet if it started now; null: none.
// `duration_ms`: 0: it has no end.
const events::v1::WindowConfigured* WindowAhead(const PoolState& state,
                                                const Job& job,
                                                int64_t duration_ms);

}  // namespace fluxqueue::queue_core
