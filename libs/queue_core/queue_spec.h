// A FluxQueue as libs/scheduling wants it.
#pragma once

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

}  // namespace fluxqueue::queue_core
