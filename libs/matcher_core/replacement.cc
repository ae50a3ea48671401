#include "libs/matcher_core/replacement.h"

#include <algorithm>
#include <cstdint>
#include <utility>

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

}  // namespace

bool Replacement::Try(const Candidate& candidate, const graph::Jobspec& jobspec) {
  const uint32_t live = LiveSlots(*engine_.Find(KeyOf(candidate)));
  uint32_t more = candidate.most_slots() > live ? candidate.most_slots() - live : 0;
  if (more == 0) return true;
  const Outside outside = OutsideOf(candidate, jobspec);
  bool any = false;
  for (uint32_t chunk = more; more > 0 && chunk > 0;) {
    chunk = std::min(chunk, more);
    const graph::Jobspec some = graph::WithSlots(jobspec, chunk);
    const auto grow = [&]() { return Grow(candidate, some, outside); };
    const bool grown = grow() || (!reservations_.behind().empty() &&
                                  reservations_.PassThoseBehind(
                                      SlipBy(Slip::CAUSE_AHEAD, candidate.job_id()), grow));
    if (grown) {
      any = true;
      more -= chunk;
    } else {
      chunk /= 2;
    }
  }
  closed_.CloseTo(candidate);
  return any;
}

Replacement::Outside Replacement::OutsideOf(const Candidate& candidate,
                                            const graph::Jobspec& jobspec) const {
  const graph::Placement& placement = *engine_.Find(KeyOf(candidate));
  const std::vector<graph::Level> levels = LevelsOf(view_.state.config());
  Outside outside;
  for (const bool avoids : {true, false}) {
    if (avoids && candidate.avoided_nodes().empty()) continue;
    for (const std::string& level : LevelsToTry(levels, jobspec)) {
      std::vector<std::string> nodes = NotBeside(placement, level);
      nodes.insert(nodes.end(), candidate.closed_nodes().begin(), candidate.closed_nodes().end());
      if (avoids) {
        nodes.insert(
            nodes.end(), candidate.avoided_nodes().begin(), candidate.avoided_nodes().end());
      }
      outside.push_back(std::move(nodes));
    }
  }
  return outside;
}

std::vector<std::string> Replacement::NotBeside(const graph::Placement& placement,
                                                const std::string& level) const {
  if (level.empty()) return {};
  const auto live = std::find_if(placement.slots.begin(),
                                 placement.slots.end(),
                                 [](const graph::PlacedSlot& slot) { return !slot.released; });
  if (live == placement.slots.end()) return {};
  const std::vector<graph::Level> levels = LevelsOf(view_.state.config());
  const std::span<const graph::Level> below_one = LevelsTo(levels, level);
  const std::vector<graph::NodeSpec> nodes = engine_.Nodes();
  const auto its = std::find_if(nodes.begin(), nodes.end(), [&live](const graph::NodeSpec& node) {
    return node.name == live->node;
  });
  if (its == nodes.end()) return {};
  const std::string group = graph::GroupOf(*its, below_one);
  std::vector<std::string> others;
  for (const graph::NodeSpec& node : nodes) {
    if (graph::GroupOf(node, below_one) != group) others.push_back(node.name);
  }
  return others;
}

bool Replacement::Grow(const Candidate& candidate,
                       const graph::Jobspec& some,
                       const Outside& outside) {
  return std::any_of(outside.begin(), outside.end(), [&](const std::vector<std::string>& nodes) {
    closed_.CloseTo(candidate, nodes);
    const graph::Outcome grown =
        engine_.Grow({.key = KeyOf(candidate), .jobspec = some, .now_s = now_s_, .outlasts = true});
    return grown.kind == graph::OutcomeKind::kAllocated;
  });
}

}  // namespace fluxqueue::matcher_core
