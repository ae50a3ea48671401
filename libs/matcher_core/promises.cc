#include "libs/matcher_core/promises.h"

#include <algorithm>
#include <optional>

#include "libs/graph/holding.h"
#include "libs/matcher_core/bound_ends.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/windows.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::CycleAnswered;
using events::v1::CycleRequested;
using events::v1::Outcome;
using events::v1::Slip;

namespace {

bool IsOn(const graph::Placement& placement, const std::string& node) {
  return std::any_of(placement.slots.begin(), placement.slots.end(), [&node](const auto& slot) {
    return slot.node == node && !slot.released;
  });
}

bool ShareANode(const graph::Placement& one, const graph::Placement& other) {
  return std::any_of(one.slots.begin(), one.slots.end(), [&other](const auto& slot) {
    return IsOn(other, slot.node);
  });
}

// A window that keeps something of the promise from the candidate; empty: none does.
std::string WindowOn(const View& view,
                     int64_t now_s,
                     const Candidate& candidate,
                     const graph::Placement& promise) {
  const int64_t end_s =
      promise.duration_s == 0 ? graph::kForever : promise.start_s + promise.duration_s;
  for (const events::v1::WindowConfigured& window : view.state.windows()) {
    if (MayUse(candidate, window)) continue;
    const graph::Closure closure = ClosureOf(view.state, window, now_s);
    if (!closure.Meets(promise.start_s, end_s)) continue;
    for (const graph::NodeSpec& node : view.engine.Nodes()) {
      if (IsOn(promise, node.name) && closure.nodes.Matches(node)) return window.window();
    }
  }
  return "";
}

}  // namespace

Slip WhyNotInTime(const View& view,
                  int64_t now_s,
                  const std::string& kept_for,
                  const Candidate& candidate,
                  const graph::Placement& promise) {
  if (std::string window = WindowOn(view, now_s, candidate, promise); !window.empty()) {
    return SlipBy(Slip::CAUSE_WINDOW, window);
  }
  const std::vector<AllocationKey> overran = view.engine.Overran(now_s);
  if (overran.empty() && !kept_for.empty()) return SlipBy(Slip::CAUSE_AHEAD, kept_for);
  if (overran.empty()) return SlipBy(Slip::CAUSE_PLAN, "");
  const auto on_its_nodes = std::find_if(overran.begin(), overran.end(), [&](const auto& key) {
    return ShareANode(promise, *view.engine.Find(key));
  });
  const AllocationKey& key = on_its_nodes == overran.end() ? overran.front() : *on_its_nodes;
  return SlipBy(Slip::CAUSE_OVERRUN, key.job_id);
}

void SayPromises(const View& view,
                 const CycleRequested& request,
                 const std::map<AllocationKey, Slip>& lost,
                 CycleAnswered* answer) {
  if (!HasFirmPromises(request)) return;
  std::optional<BoundEnds> ends;
  // Both stand in one order; candidates that were not tried have no outcome.
  auto candidate = request.candidates().begin();
  for (Outcome& outcome : *answer->mutable_outcomes()) {
    while (candidate->job_id() != outcome.job_id()) ++candidate;
    const bool enforced = (candidate++)->enforced();
    const bool reserved = outcome.kind() == Outcome::KIND_RESERVED;
    if (outcome.kind() == Outcome::KIND_ALLOCATED || (lost.empty() && !reserved)) continue;
    const AllocationKey key{outcome.job_id(), outcome.attempt(), outcome.part()};
    if (const auto slip = lost.find(key); slip != lost.end())
      *outcome.mutable_slip() = slip->second;
    const graph::Placement* promise = reserved && enforced ? view.promises.Find(key) : nullptr;
    if (promise == nullptr) continue;
    if (!ends) ends.emplace(view.engine, view.promises.map(), request.now_s());
    outcome.set_firm(ends->IsFirm(*promise));
  }
}

}  // namespace fluxqueue::matcher_core
