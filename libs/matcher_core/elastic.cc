#include "libs/matcher_core/elastic.h"

#include <algorithm>
#include <string>

#include "libs/graph/holding.h"
#include "libs/matcher_core/candidate.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;

namespace {

// From `now_s` on.
int64_t TimeLeft(const graph::Placement& placement, int64_t now_s) {
  return placement.duration_s == 0 ? graph::kForever
                                   : placement.start_s + placement.duration_s - now_s;
}

}  // namespace

uint32_t LiveSlots(const graph::Placement& placement) {
  return static_cast<uint32_t>(std::count_if(
      placement.slots.begin(), placement.slots.end(), [](const graph::PlacedSlot& slot) {
        return !slot.released;
      }));
}

uint32_t MostSlots(const Candidate& candidate, const graph::Jobspec& jobspec) {
  if (candidate.most_slots() == 0) return jobspec.slots;
  return std::clamp(candidate.most_slots(), jobspec.min_slots, jobspec.slots);
}

void Elastic::TakeMore(const Candidate& candidate, const graph::Jobspec& jobspec) {
  const uint32_t more = MostSlots(candidate, jobspec) - jobspec.min_slots;
  Take(candidate, jobspec, more, (more + 1) / 2);
}

bool Elastic::Grow(const Candidate& candidate, const graph::Jobspec& jobspec) {
  const uint32_t live = LiveSlots(*engine_.Find(KeyOf(candidate)));
  const uint32_t most = MostSlots(candidate, jobspec);
  const uint32_t more = most > live ? most - live : 0;
  return Take(candidate, jobspec, more, more);
}

bool Elastic::Take(const Candidate& candidate,
                   const graph::Jobspec& jobspec,
                   uint32_t more,
                   uint32_t first) {
  const AllocationKey key = KeyOf(candidate);
  // Its own pods count by now.
  closed_.Changed(key.job_id);
  closed_.CloseTo(candidate);
  const std::string one = closed_.RefusedAs(graph::WithSlots(jobspec, 1), candidate);
  const int64_t left_s = TimeLeft(*engine_.Find(key), now_s_);
  if (refusals_.Has(one, left_s)) return false;
  bool any = false;
  for (uint32_t chunk = first; more > 0 && chunk > 0;) {
    chunk = std::min(chunk, more);
    const graph::Jobspec some = graph::WithSlots(jobspec, chunk);
    const graph::Outcome grown = engine_.Grow({.key = key, .jobspec = some, .now_s = now_s_});
    if (grown.kind == graph::OutcomeKind::kAllocated) {
      any = true;
      more -= chunk;
      closed_.Changed(key.job_id);
      closed_.CloseTo(candidate);
      continue;
    }
    // What has no time left, or holds other slots by now, tells nothing of those that have.
    const bool full = chunk == 1 && left_s > 0 &&
                      engine_.Find(key)->groups[0].request == jobspec.groups[0].request;
    if (full) refusals_.NoMore(closed_.RefusedAs(graph::WithSlots(jobspec, 1), candidate), left_s);
    chunk /= 2;
  }
  return any;
}

}  // namespace fluxqueue::matcher_core
