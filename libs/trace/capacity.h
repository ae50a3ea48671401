// Whether a job could run if nothing else did. Pure.
#pragma once

#include <string>
#include <vector>

#include "libs/trace/trace.h"

namespace fluxqueue::trace {

// How many slots of `job` fit on `node` when it is empty; at most job.slots. A slot that requests
// nothing always fits.
int64_t SlotsOn(const TraceNode& node, const TraceJob& job);

// True if the empty nodes have room for all slots of the job at once.
bool CanEverRun(const TraceJob& job, const std::vector<TraceNode>& nodes);

// What all the nodes offer together.
Amounts TotalOffer(const std::vector<TraceNode>& nodes);

}  // namespace fluxqueue::trace
