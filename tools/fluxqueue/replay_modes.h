// What `fluxqueue replay` shows of one pool instead of comparing its decisions: the pool at a time,
// a snapshot of it, the story of a job, its log event by event. The exit code is 1 when a decision
// was not as recorded.
#pragma once

#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"
#include "tools/fluxqueue/replay_options.h"

namespace fluxqueue::cli {

absl::StatusOr<int> InspectPool(const Context& context, const ReplayOptions& options);
absl::StatusOr<int> SaveSnapshot(const Context& context, const ReplayOptions& options);
absl::StatusOr<int> TellStory(const Context& context, const ReplayOptions& options);
absl::StatusOr<int> StepThrough(const Context& context, const ReplayOptions& options);

}  // namespace fluxqueue::cli
