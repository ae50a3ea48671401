// What is said of promises besides their time: whether they are firm, and why one moved.
//
// A reservation that goes leaves behind why (Slip): of several the first reason, as the others
// follow from it. It is said with the job's next outcome, and forgotten after the next cycle:
// whoever was not named in it has left the line for a reason that the queue knows.
#include <algorithm>

#include "libs/graph/holding.h"
#include "libs/matcher_core/bound_ends.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::CycleAnswered;
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

}  // namespace

Slip MatcherCore::SlipBy(Slip::Cause cause, const std::string& by) {
  Slip slip;
  slip.set_cause(cause);
  slip.set_by(by);
  return slip;
}

std::string MatcherCore::WindowOn(const Candidate& candidate,
                                  const graph::Placement& promise,
                                  int64_t now_s) const {
  const auto& open = candidate.windows();
  const int64_t end_s =
      promise.duration_s == 0 ? graph::kForever : promise.start_s + promise.duration_s;
  for (const events::v1::WindowConfigured& window : state_.windows()) {
    if (std::find(open.begin(), open.end(), window.window()) != open.end()) continue;
    const graph::Closure closure = ClosureOf(window, now_s);
    if (!closure.Meets(promise.start_s, end_s)) continue;
    for (const graph::NodeSpec& node : engine_->Nodes()) {
      if (IsOn(promise, node.name) && closure.nodes.Matches(node)) return window.window();
    }
  }
  return "";
}

Slip MatcherCore::WhyNotInTime(const Cycle& cycle,
                               const Candidate& candidate,
                               const graph::Placement& promise) const {
  const int64_t now_s = cycle.request.now_s();
  if (std::string window = WindowOn(candidate, promise, now_s); !window.empty()) {
    return SlipBy(Slip::CAUSE_WINDOW, window);
  }
  const std::vector<AllocationKey> overran = engine_->Overran(now_s);
  if (overran.empty() && !cycle.kept.for_job.empty()) {
    return SlipBy(Slip::CAUSE_AHEAD, cycle.kept.for_job);
  }
  if (overran.empty()) return SlipBy(Slip::CAUSE_PLAN, "");
  const auto on_its_nodes = std::find_if(overran.begin(), overran.end(), [&](const auto& key) {
    return ShareANode(promise, *engine_->Find(key));
  });
  const AllocationKey& key = on_its_nodes == overran.end() ? overran.front() : *on_its_nodes;
  return SlipBy(Slip::CAUSE_OVERRUN, key.job_id);
}

void MatcherCore::Lose(const AllocationKey& key, const Slip& slip) {
  if (!model::HasRules(config().rules(), model::kFirmPromises)) return;
  matcher::v1::PoolState::LostPromise* added = state_.add_lost_promises();
  *added->mutable_key() = ToProto(key);
  *added->mutable_slip() = slip;
}

bool MatcherCore::HasLost(const Cycle& cycle, const Candidate& candidate) const {
  if (cycle.request.version() < model::kFirmPromises) return false;
  const auto& lost = state_.lost_promises();
  return std::any_of(lost.begin(), lost.end(), [&candidate](const auto& one) {
    return one.key().job_id() == candidate.job_id() && one.key().attempt() == candidate.attempt() &&
           one.key().part() == candidate.part();
  });
}

void MatcherCore::SayPromises(const Cycle& cycle, CycleAnswered* answer) {
  const auto lost = std::move(*state_.mutable_lost_promises());
  state_.clear_lost_promises();
  if (cycle.request.version() < model::kFirmPromises) return;
  std::map<AllocationKey, const Slip*> slips;
  for (const auto& promise : lost) slips.emplace(FromProto(promise.key()), &promise.slip());
  std::optional<BoundEnds> ends;
  // Both stand in one order; candidates that were not tried have no outcome.
  auto candidate = cycle.request.candidates().begin();
  for (Outcome& outcome : *answer->mutable_outcomes()) {
    while (candidate->job_id() != outcome.job_id()) ++candidate;
    const bool enforced = (candidate++)->enforced();
    const bool reserved = outcome.kind() == Outcome::KIND_RESERVED;
    if (outcome.kind() == Outcome::KIND_ALLOCATED || (slips.empty() && !reserved)) continue;
    const AllocationKey key{outcome.job_id(), outcome.attempt(), outcome.part()};
    if (const auto slip = slips.find(key); slip != slips.end()) {
      *outcome.mutable_slip() = *slip->second;
    }
    const graph::Placement* promise = reserved && enforced ? reservations_.Find(key) : nullptr;
    if (promise == nullptr) continue;
    if (!ends) ends.emplace(*engine_, reservations_.map(), cycle.request.now_s());
    outcome.set_firm(ends->IsFirm(*promise));
  }
}

}  // namespace fluxqueue::matcher_core
