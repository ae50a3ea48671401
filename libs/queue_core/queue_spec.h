// A FluxQueue as libs/scheduling wants it.
#pragma once

#include <cstdint>
#include <optional>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/scheduling/queue_tree.h"

#include "absl/status/status.h"

namespace fluxqueue::queue_core {

// InvalidArgument names queue, key, value and what is allowed.
absl::Status CheckQueue(const events::v1::QueueConfigured& configured);
// How many of its jobs a cycle may name. Null: it is not configured.
uint32_t DepthOf(const events::v1::QueueConfigured* configured);
// REQUIRES: it was checked.
scheduling::QueueSpec SpecOf(const events::v1::QueueConfigured& configured);
// Both enumerate the same periods. REQUIRES: it is not PERIOD_UNSPECIFIED.
scheduling::Period PeriodOf(events::v1::Budget::Period period);
events::v1::Budget::Period ToPeriod(scheduling::Period period);

// So long a job of the queue may run, with the grace, before something is said or done about it.
// `declared_ms`: unset, nothing; 0, that it has no end. 0: as long as it likes.
int64_t BoundOf(const events::v1::QueueConfigured& queue, std::optional<int64_t> declared_ms);
// What Kubernetes gives pods that say nothing else to end, and what it takes to start and to see
// the end.
inline constexpr int64_t kStopMs = 35'000;
// So long after its start the nodes of a job are free that is ended after `bound_ms`. 0: it has no
// end.
int64_t PlannedBound(int64_t bound_ms);
// The same of a job of the queue, where jobs are ended.
int64_t PlannedBoundOf(const events::v1::QueueConfigured& queue,
                       std::optional<int64_t> declared_ms);
// None of its jobs can hold anything for longer than is planned, or be held back when its time
// comes: those with an end are ended, and planned to take all of their time, and nothing is
// limited.
bool Binds(const events::v1::QueueConfigured& queue);

}  // namespace fluxqueue::queue_core
