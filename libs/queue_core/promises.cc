// Promises: what a job is told of its start, and the ledger of it (queue.promises).
//
// A promise is firm when it rests on bounds: all that is to end on its nodes before it is ended in
// time (the matcher looks at these), and nothing that could be given room there meanwhile can stay
// for longer than planned (the queues' configurations). Else it is a forecast.
//
// Each version of a job that says another start than the one before, or none, is an entry: made,
// moved, withdrawn, or kept by an allocation. Why it is later or withdrawn is the matcher's reason,
// where it has one; by rules before 3 it never has, and what the queue knows is said.
#include <algorithm>
#include <utility>

#include "libs/model/rules.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/strategy.h"

namespace fluxqueue::queue_core {

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

bool QueueCore::Impl::HasFirmPromises() const {
  return model::HasRules(config().rules(), model::kFirmPromises);
}

bool QueueCore::Impl::IsFirm(const Entry& entry, const events::v1::Outcome& outcome) const {
  const auto binds = [](const auto& served) { return Binds(*served.second->config); };
  return outcome.firm() &&
         !scheduling::FindStrategy(entry.in_line_of->config->strategy())->is_adaptive &&
         std::all_of(book_.served().begin(), book_.served().end(), binds);
}

bool QueueCore::Impl::AwaitsVictims(const Job& job, const events::v1::Outcome& outcome) const {
  return HasFirmPromises() && IsPromised(job) && job.start_ms > state_.now_ms &&
         outcome.victims_size() > 0;
}

void QueueCore::Impl::NoteSlip(Entry* entry, int64_t later_ms, const Slip& slip) {
  if (later_ms <= 0 || entry->job.unsaid_slip != nullptr) return;
  if (slip.cause() == Slip::CAUSE_UNSPECIFIED) return;
  book_.Edit(entry).unsaid_slip = std::make_shared<const Slip>(slip);
}

Slip QueueCore::Impl::WhyLater(const Job& job, const Slip& said) const {
  if (job.unsaid_slip != nullptr) return *job.unsaid_slip;
  if (said.cause() != Slip::CAUSE_UNSPECIFIED) return said;
  if (!state_.lost_node.empty()) return SlipBy(Slip::CAUSE_NODE, state_.lost_node);
  if (!state_.window_set.empty()) return SlipBy(Slip::CAUSE_WINDOW, state_.window_set);
  for (const events::v1::Candidate& candidate : state_.cycle->candidates()) {
    if (candidate.job_id() == job.id) break;
    const Entry* other = book_.Find(candidate.job_id());
    if (other == nullptr || other->job.submission < job.submission) continue;
    // It has come since the promise was said, or has a better right. One that stood ahead of it
    // then (users take turns) is no reason.
    const bool has_come = other->job.submitted_ms >= job.updated_ms;
    if (has_come || other->job.priority > job.priority) {
      return SlipBy(Slip::CAUSE_AHEAD, candidate.job_id());
    }
  }
  if (answered_->overran() > 0) return SlipBy(Slip::CAUSE_OVERRUN, answered_->overran_job());
  return SlipBy(Slip::CAUSE_PLAN, "");
}

Slip QueueCore::Impl::WhyNotNamed(const Entry& entry) const {
  const Slip known = WhyLater(entry.job, {});
  const bool is_behind = known.cause() == Slip::CAUSE_PLAN && entry.in_line_of != nullptr &&
                         entry.job.reason != reason::kLimit && HasFirmPromises();
  if (!is_behind || state_.cycle->candidates().empty()) return known;
  return SlipBy(Slip::CAUSE_AHEAD, state_.cycle->candidates(0).job_id());
}

std::string QueueCore::Impl::SlipSentence(const Slip& slip) const {
  const auto job = [this](const std::string& id) {
    const Entry* entry = book_.Find(id);
    return entry == nullptr ? id : entry->job.workload->name();
  };
  switch (slip.cause()) {
    case Slip::CAUSE_NODE:
      return fmt::format("node {} was lost", slip.by());
    case Slip::CAUSE_WINDOW:
      return fmt::format("window {} was set", slip.by());
    case Slip::CAUSE_AHEAD:
      return fmt::format("job {} goes before it", job(slip.by()));
    case Slip::CAUSE_OVERRUN:
      return fmt::format("job {} has not ended in its time", job(slip.by()));
    case Slip::CAUSE_COMMAND:
      return "the job was changed";
    default:
      return "the plan was made anew";
  }
}

void QueueCore::Impl::EnterPromise(Job* job) {
  const int64_t told_ms = IsPromised(*job) ? job->start_ms : 0;
  if (told_ms == 0) job->firm = false;
  Slip slip = std::exchange(slip_, {});
  job->unsaid_slip = nullptr;
  const bool kept = job->state == JobState::kAllocated;
  const bool withdrawn = told_ms == 0 && job->promised_ms != 0 && !kept;
  if (withdrawn && slip.cause() == Slip::CAUSE_UNSPECIFIED) {
    // Nothing but what becomes of the job itself takes a promise away outside of a cycle.
    slip = SlipBy(Slip::CAUSE_COMMAND, "");
  }
  const bool says = slip.cause() != Slip::CAUSE_UNSPECIFIED && HasFirmPromises();
  job->slip = says ? std::make_shared<const Slip>(slip) : nullptr;
  if (told_ms == job->promised_ms && job->firm == job->promised_firm) return;
  promises_.push_back({.job_id = job->id,
                       .version = job->version,
                       .queue = job->queue,
                       .told_ms = state_.now_ms,
                       .start_ms = kept ? state_.now_ms : told_ms,
                       .before_ms = job->promised_ms,
                       .firm = kept ? job->promised_firm : job->firm,
                       .kept = kept,
                       .slip = std::move(slip)});
  job->promised_ms = told_ms;
  job->promised_firm = job->firm;
}

}  // namespace fluxqueue::queue_core
