#include "libs/matcher_core/replacement.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "libs/graph/slot_requests.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/elastic.h"
#include "libs/matcher_core/pool_config.h"
#include "libs/matcher_core/promises.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::Slip;

namespace {

// Levels of a pool: the one where its slots are to be, and those above it, the innermost first.
// Empty: anywhere.
std::vector<std::string> LevelsToTry(const std::vector<graph::Level>& levels,
                                     const graph::Jobspec& jobspec) {
  if (!jobspec.required_level.empty()) return {jobspec.required_level};
  std::vector<std::string> names;
  if (!jobspec.preferred_level.empty()) {
    for (const graph::Level& level : LevelsTo(levels, jobspec.preferred_level)) {
      names.insert(names.begin(), level.name);
    }
  }
  names.emplace_back();
  return names;
}

// Null: it has no slot.
const graph::PlacedSlot* FirstLive(const graph::Placement& placement) {
  const auto live = std::find_if(placement.slots.begin(),
                                 placement.slots.end(),
                                 [](const graph::PlacedSlot& slot) { return !slot.released; });
  return live == placement.slots.end() ? nullptr : &*live;
}

// The jobspec below each vertex where it is tried, the best first.
std::vector<graph::Jobspec> JobspecsOf(const View& view,
                                       const graph::PlacedSlot* live,
                                       const graph::Jobspec& jobspec) {
  const std::vector<graph::Level> levels = LevelsOf(view.state.config());
  const std::vector<std::string> names = LevelsToTry(levels, jobspec);
  if (live == nullptr || names.front().empty()) return {jobspec};
  const std::vector<graph::NodeSpec> nodes = view.engine.Nodes();
  const auto its = std::find_if(nodes.begin(), nodes.end(), [live](const graph::NodeSpec& node) {
    return node.name == live->node;
  });
  std::vector<graph::Jobspec> jobspecs;
  for (const std::string& name : names) {
    const std::span<const graph::Level> below = LevelsTo(levels, name);
    const bool narrows = its != nodes.end() && !below.empty();
    jobspecs.push_back(narrows ? graph::Beside(*its, below, jobspec) : jobspec);
  }
  return jobspecs;
}

}  // namespace

Lack LackOf(const View& view, const Candidate& candidate, const graph::Jobspec& jobspec) {
  const graph::Placement& placement = *view.engine.Find(KeyOf(candidate));
  const uint32_t live = LiveSlots(placement);
  Lack lack;
  const uint32_t most = MostSlots(candidate, jobspec);
  if (most <= live) return lack;
  lack.slots = most - live;
  lack.is_nowhere = live == 0;
  lack.is_whole = lack.is_nowhere && !jobspec.required_level.empty();
  const std::vector<graph::Jobspec> jobspecs = JobspecsOf(view, FirstLive(placement), jobspec);
  for (const bool avoids : {true, false}) {
    if (avoids && candidate.avoided_nodes().empty()) continue;
    std::vector<std::string> closed(candidate.closed_nodes().begin(),
                                    candidate.closed_nodes().end());
    const auto& avoided = candidate.avoided_nodes();
    if (avoids) closed.insert(closed.end(), avoided.begin(), avoided.end());
    for (const graph::Jobspec& one : jobspecs) lack.places.push_back({one, closed});
  }
  return lack;
}

uint32_t TakeInParts(uint32_t all, bool is_whole, const std::function<bool(uint32_t slots)>& take) {
  uint32_t taken = 0;
  for (uint32_t part = all; taken < all && part > 0;) {
    part = std::min(part, all - taken);
    if (take(part)) {
      taken += part;
    } else {
      part = is_whole ? 0 : part / 2;
    }
  }
  return taken;
}

bool Replacement::Try(const Candidate& candidate, const graph::Jobspec& jobspec) {
  lack_ = LackOf(view_, candidate, jobspec);
  if (lack_.slots == 0) return candidate.replace();
  const uint32_t taken = TakeInParts(lack_.slots, lack_.is_whole, [&](uint32_t slots) {
    const auto grow = [&]() { return Grow(candidate, slots); };
    const bool grown = grow() || (candidate.replace() && !reservations_.behind().empty() &&
                                  reservations_.PassThoseBehind(
                                      SlipBy(Slip::CAUSE_AHEAD, candidate.job_id()), grow));
    // The others go beside these.
    if (grown && lack_.is_nowhere) lack_ = LackOf(view_, candidate, jobspec);
    return grown;
  });
  closed_.CloseTo(candidate);
  return taken > 0;
}

graph::Jobspec Replacement::Refused() const {
  return graph::WithSlots(lack_.places.back().jobspec, lack_.is_whole ? lack_.slots : 1);
}

bool Replacement::Grow(const Candidate& candidate, uint32_t slots) {
  if (slots > 1 && IsPlacedOneByOne(lack_.places.front().jobspec)) return false;
  return std::any_of(lack_.places.begin(), lack_.places.end(), [&](const Lack::Place& place) {
    closed_.CloseTo(candidate, place.closed);
    const graph::Jobspec some = graph::WithSlots(place.jobspec, slots);
    const graph::Outcome grown =
        engine_.Grow({.key = KeyOf(candidate), .jobspec = some, .now_s = now_s_, .outlasts = true});
    if (grown.kind != graph::OutcomeKind::kAllocated) return false;
    closed_.Changed(candidate.job_id());
    return true;
  });
}

}  // namespace fluxqueue::matcher_core
