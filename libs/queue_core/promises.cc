#include "libs/queue_core/promises.h"

#include <algorithm>

#include <fmt/format.h>

#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleAnswered;
using events::v1::Slip;
using model::JobState;

namespace {

Slip SlipBy(Slip::Cause cause, const std::string& by) {
  Slip slip;
  slip.set_cause(cause);
  slip.set_by(by);
  return slip;
}

}  // namespace

bool IsPromised(const Job& job) {
  return job.state == JobState::kPending && job.reason == reason::kReserved && job.start_ms != 0;
}

Slip Promises::AfterAbandonedCycle() {
  // Stands in the place of who did it.
  return SlipBy(Slip::CAUSE_COMMAND,
                "a cycle was abandoned, and its jobs are tried apart from others");
}

bool Promises::IsFirm(const Entry& entry, const events::v1::Outcome& outcome) const {
  const auto binds = [](const auto& served) { return Binds(*served.second->config); };
  const auto& served = view_.book.served();
  // Among the suspects of an abandoned cycle nobody knows of the others.
  return view_.state.suspects == nullptr && outcome.firm() &&
         !StrategyOf(*entry.in_line_of).is_adaptive &&
         std::all_of(served.begin(), served.end(), binds);
}

bool Promises::AwaitsVictims(const Job& job, const events::v1::Outcome& outcome) const {
  return view_.HasFirmPromises() && IsPromised(job) && job.start_ms > view_.state.now_ms &&
         (outcome.victims_size() > 0 || outcome.vacate_size() > 0);
}

Slip Promises::WhyLater(const Job& job, const Slip& said, const CycleAnswered& answered) const {
  const PoolState& state = view_.state;
  if (job.unsaid_slip != nullptr) return *job.unsaid_slip;
  if (said.cause() != Slip::CAUSE_UNSPECIFIED) return said;
  if (!state.lost_node.empty()) return SlipBy(Slip::CAUSE_NODE, state.lost_node);
  if (!state.window_set.empty()) return SlipBy(Slip::CAUSE_WINDOW, state.window_set);
  if (state.suspects != nullptr) return AfterAbandonedCycle();
  for (const Candidate& candidate : state.cycle->candidates()) {
    if (candidate.job_id() == job.id) break;
    if (IsOfOneThatRuns(candidate)) continue;
    const Entry* other = view_.book.Find(candidate.job_id());
    if (other == nullptr || other->job.submission < job.submission) continue;
    // It has come since the promise was said, or has a better right. One that stood ahead of it
    // then (users take turns) is no reason.
    const bool has_come = other->job.submitted_ms >= job.updated_ms;
    if (has_come || other->job.priority > job.priority) {
      return SlipBy(Slip::CAUSE_AHEAD, candidate.job_id());
    }
  }
  if (answered.overran() > 0) return SlipBy(Slip::CAUSE_OVERRUN, answered.overran_job());
  return SlipBy(Slip::CAUSE_PLAN, "");
}

Slip Promises::WhyNotNamed(const Entry& entry, const CycleAnswered& answered) const {
  const Slip known = WhyLater(entry.job, {}, answered);
  const bool is_behind = known.cause() == Slip::CAUSE_PLAN && entry.in_line_of != nullptr &&
                         entry.job.reason != reason::kLimit && view_.HasFirmPromises();
  if (!is_behind) return known;
  const auto& candidates = view_.state.cycle->candidates();
  const auto first =
      std::find_if_not(candidates.begin(), candidates.end(), [this](const Candidate& one) {
        return IsOfOneThatRuns(one);
      });
  return first == candidates.end() ? known : SlipBy(Slip::CAUSE_AHEAD, first->job_id());
}

// Where it gets something that others were promised, the matcher says so.
bool Promises::IsOfOneThatRuns(const Candidate& candidate) const {
  return candidate.grow() && view_.HasRules(model::kReplacesSlots);
}

std::string Promises::Sentence(const Job& told, const Slip& slip) const {
  const auto job = [&](const std::string& id) {
    const Entry* entry = view_.book.Find(id);
    if (entry == nullptr) return fmt::format("job {}", id);
    if (view_.HasRules(model::kNamesNoOthers)) return view_.NameFor(told, entry->job);
    return fmt::format("job {}", entry->job.workload->name());
  };
  switch (slip.cause()) {
    case Slip::CAUSE_NODE:
      return fmt::format("node {} was lost", slip.by());
    case Slip::CAUSE_WINDOW:
      return fmt::format("window {} was set", slip.by());
    case Slip::CAUSE_AHEAD:
      return fmt::format("{} goes before it", job(slip.by()));
    case Slip::CAUSE_OVERRUN:
      return fmt::format("{} has not ended in its time", job(slip.by()));
    case Slip::CAUSE_COMMAND:
      return slip.by().empty() ? "the job was changed" : slip.by();
    default:
      return "the plan was made anew";
  }
}

}  // namespace fluxqueue::queue_core
