// Windows: nodes that are kept for a time, for maintenance or for the jobs of some namespaces.
//
// A candidate that does not name the window is given nothing there that it would hold in the
// window's time; one that is through before it begins may have it. What runs there when a window is
// set runs on.
//
// In a cycle all windows that are not over are closures of the engine, which knows what to do with
// them; for a candidate that may use some of them those are left out (closed_nodes.h). A window is
// over by the log's time, to the millisecond; in the whole seconds of a cycle it begins rather too
// early and ends rather too late.
//
// Pure. Times in seconds are since the pool's beginning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/base/clock.h"
#include "libs/graph/closure.h"
#include "libs/graph/engine.h"
#include "libs/graph/holding.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/view.h"

#include "absl/status/status.h"

namespace fluxqueue::matcher_core {

// A closure that ends then or later has no end: nothing is promised behind it.
inline constexpr int64_t kNeverOver = 2 * graph::kForever;

// InvalidArgument names the window, its times and what is allowed.
absl::Status CheckWindow(const events::v1::WindowConfigured& window);

// It is set just so.
bool IsSet(const events::v1::WindowConfigured& window, const matcher::v1::PoolState& state);

// Sets or deletes it. REQUIRES: CheckWindow() has nothing against it, and no promise was made by
// other windows.
void SetWindow(const events::v1::WindowConfigured& window, matcher::v1::PoolState* state);
// Those that are over are forgotten.
void DropPastWindows(Millis now, matcher::v1::PoolState* state);

// The candidate names it.
bool MayUse(const events::v1::Candidate& candidate, const events::v1::WindowConfigured& window);
graph::Closure ClosureOf(const matcher::v1::PoolState& state,
                         const events::v1::WindowConfigured& window,
                         int64_t now_s);
// Of all windows that are not over at `now_s`, but those that are open. REQUIRES: these are sorted.
std::vector<graph::Closure> Closures(const matcher::v1::PoolState& state,
                                     const std::vector<std::string>& open,
                                     int64_t now_s);

// A sentence, when the candidate would have room now but for a window; else nothing. `why`: what
// the engine says of it without windows.
std::optional<std::string> WhyKept(const View& view,
                                   const events::v1::Candidate& candidate,
                                   const graph::Jobspec& jobspec,
                                   const graph::Explanation& why,
                                   int64_t now_s);
// A sentence that WhyKept() has made for all of a shape is completed for this one; any other stays.
void SayLength(const events::v1::Candidate& candidate, events::v1::Outcome* outcome);

}  // namespace fluxqueue::matcher_core
