// When what is held is planned to be given back.
//
// At the end of its duration, as long as that is to come. What is held for longer is planned to end
// later by growing steps, as Tsafrir, Etsion and Feitelson correct predictions ("Backfilling Using
// System-Generated Predictions Rather Than User Runtime Estimates", IEEE TPDS 18(6), 2007): a
// minute after that, then 5 minutes after that one, 15, 30, 1 h, 2 h, 5 h, 10 h, 20 h, 50 h, and
// 100 h from then on. Before the minute there are 10 s and 30 s: pods take their time to start and
// to end, and a job that is about to end is to let no other pass. A plan that says "in a second"
// each time it is asked keeps the room behind such a job for the head of the line, which cannot
// have it, and lets no job backfill. So did rules before version 3 (libs/model/rules.h), and
// placements of theirs are planned so to their end.
//
// No step leads beyond the upper bound, where there is one. What is held beyond its bound too is
// planned to end by the same steps, counted from the bound on.
//
// The planned ends of a placement are fixed points in time: which of them counts follows from the
// time alone, so an engine that was restored plans as one that ran through. Pure.
#pragma once

#include <cstdint>

#include "libs/graph/types.h"

namespace fluxqueue::graph {

// The first planned end after `now_s`, in whole seconds since the pool's beginning; 0: it has none.
int64_t PlannedEnd(const Placement& placement, int64_t now_s);

}  // namespace fluxqueue::graph
