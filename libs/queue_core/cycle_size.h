// A cycle that can be asked for, however large the pool: a request that is too large for the log
// would be asked for for ever.
//
// Pure.
#pragma once

#include <cstddef>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::queue_core {

// The log takes records of 4 MiB (libs/kafka/topics.h). What it took before this bound was there is
// within it, so old logs replay as they are. 60 bytes for a candidate, and 70 for a job
// that may be stopped: a pool of 40,000 running jobs has all of them in the list.
inline constexpr size_t kMostCycleBytes = (size_t{4} << 20) - 4096;

// Of what exceeds that, jobs that may be stopped go first, those that lose most; then candidates,
// the last of the line.
void Fit(events::v1::CycleRequested* cycle);

}  // namespace fluxqueue::queue_core
