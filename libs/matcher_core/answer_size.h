// An answer that can be sent, whatever jobspecs ask for.
//
// The queue asks for its cycle until it is answered, so an answer that is too large for the log
// would be asked for for ever. Reasons are for people, and go first; then outcomes, from the end:
// to the queue a candidate without one was not tried, and what the matcher holds for it is said
// when it is tried again.
//
// Pure.
#pragma once

#include <cstddef>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::matcher_core {

// The log takes records of 4 MiB (libs/kafka/topics.h). What it took before this bound was there is
// within it, so old logs replay as they are.
inline constexpr size_t kMostAnswerBytes = (size_t{4} << 20) - 4096;

// Shortens what exceeds that. True: something did.
bool Fit(events::v1::CycleAnswered* answer);

}  // namespace fluxqueue::matcher_core
