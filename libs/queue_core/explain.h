// Why a job waits: its place, who is ahead of it, what was said when it was tried last, and what
// would have been said of less. Made when somebody asks. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libs/queue_core/explanation.h"
#include "libs/queue_core/view.h"

namespace fluxqueue::queue_core {

Explanation Explain(const View& view, const std::string& pool, const Entry& entry);

// In the line of its queue, from 1; 0: it is not in line.
size_t PositionOf(const Entry& entry);

// What decides its place, factor by factor, as libs/scheduling/fair_share.h compares them.
// REQUIRES: it is in line.
std::vector<PlaceFactor> PlaceFactorsOf(const View& view, const Entry& entry);

}  // namespace fluxqueue::queue_core
