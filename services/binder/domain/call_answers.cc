// What the answers of API calls mean for a job: the second half of BindPlanner.
#include <algorithm>

#include <fmt/format.h>

#include "libs/base/backoff.h"
#include "libs/base/text.h"
#include "services/binder/domain/bind_planner.h"

namespace fluxqueue::binder {
namespace {

using Kind = Call::Kind;
using Outcome = CallResult::Outcome;

// Conflicts about a pod that stays the same: somebody holds it whom we do not know of.
constexpr int kMaxConflicts = 5;

// A node that stays closed is looked at ever more seldom, but so often.
constexpr Millis kMostLookInterval{60'000};

// Not bound, and by nobody but us to be bound.
bool Held(const std::optional<PodFacts>& pod) {
  return pod.has_value() && !pod->Bound() && !pod->Released();
}

void Fail(const CallResult& result, std::string_view reason, BindJob* job) {
  if (job->failed || job->failure.has_value() || job->stopping) return;
  job->failure = Failure{std::string(reason),
                         Cut(fmt::format("{} of {}/{}: {}",
                                         Name(result.call.kind),
                                         result.call.space,
                                         result.call.name,
                                         result.message),
                             kMostMessageBytes)};
}

}  // namespace

void CallResult::LoseSight() {
  pod.reset();
  const bool looks = call.kind == Kind::kReadPod || call.kind == Kind::kFence;
  if (!looks || outcome != Outcome::kDone) return;
  outcome = Outcome::kRetry;
  unmade = true;  // nobody has refused it
}

void BindPlanner::Apply(const CallResult& result, Millis now) {
  const Call& call = result.call;
  at_job_ = call.job_id;
  SeeResult(result);
  const BindJob* known = Find(call.job_id);
  const bool awaited =
      known != nullptr && known->attempt() == call.attempt &&
      (call.slot < 0 ? known->call == call.id
                     : static_cast<size_t>(call.slot) < known->slots.size() &&
                           known->slots[static_cast<size_t>(call.slot)].call == call.id);
  if (!awaited) {
    ++dropped_answers_;
    return;
  }
  dirty_.insert(call.job_id);
  BindJob* job = Touch(call.job_id);
  if (call.slot < 0) {
    ApplyToJob(result, now, job);
  } else {
    ApplyToSlot(result, now, job);
  }
}

// What it tells of the pod is true whoever asked.
void BindPlanner::SeeResult(const CallResult& result) {
  const Call& call = result.call;
  if (call.slot < 0 || call.kind == Kind::kCheckNode || call.kind == Kind::kLookAtNode) {
    return;
  }
  if (result.outcome == Outcome::kGone) {
    board_.Gone(call.uid, call.job_id, jobs_.Has(call.job_id));
  } else if (result.pod.has_value()) {
    if (call.kind == Kind::kReadPod) board_.ForgetNote(call.uid);
    See(*result.pod);
  } else if (call.kind == Kind::kBind && result.outcome == Outcome::kDone) {
    board_.NoteBound(call.uid, call.node);
  }
}

void BindPlanner::ApplyToJob(const CallResult& result, Millis now, BindJob* job) {
  job->call = 0;
  switch (result.outcome) {
    case Outcome::kDone:
      job->retry = {.failures = 0, .refusals = 0, .conflicts = 0, .at = now};
      if (result.call.kind == Kind::kResume || result.call.kind == Kind::kLimit) {
        job->resumed = true;
        job->progress = now;
      } else if (result.call.kind == Kind::kSuspend) {
        job->suspended = true;
      } else {
        job->completions_left = result.completions_left;
      }
      return;
    case Outcome::kGone:
      job->workload_gone = true;
      job->retry = {};
      return;
    case Outcome::kRefused:
      Fail(result, "Refused", job);
      [[fallthrough]];
    case Outcome::kConflict:
    case Outcome::kRetry:
      BackOff(result, now, &job->retry);
      return;
  }
}

void BindPlanner::ApplyToSlot(const CallResult& result, Millis now, BindJob* job) {
  Slot& slot = job->slots[static_cast<size_t>(result.call.slot)];
  const Kind kind = result.call.kind;
  const bool starts = kind == Kind::kBind || kind == Kind::kRelease;
  const bool is_needed = starts && !job->IsPlace(slot);
  slot.call = 0;
  if (kind == Kind::kLookAtNode) {
    ApplyLook(result, now, &slot);
    return;
  }
  switch (result.outcome) {
    case Outcome::kDone:
      slot.retry = {};
      if (kind == Kind::kBind) {
        slot.Bind(now);
        job->progress = now;
      } else if (kind == Kind::kFence && Held(result.pod)) {
        slot.state = SlotState::kFenced;
      } else if (kind == Kind::kDelete) {
        slot.delete_sent = true;
        slot.deleted_at = now;
      } else if (kind == Kind::kKill) {
        slot.kill_sent = true;
      } else if (kind == Kind::kCheckNode) {
        slot.lost = result.node_lost;
        slot.retry.at = now + options_.node_check_interval;
      }
      return;
    case Outcome::kGone:
      return;
    case Outcome::kConflict: {
      // The pod is known as it is now: bound to our node is success, newer and unbound is tried
      // again at once; the plan decides.
      BackOff(result, now, &slot.retry);
      if (++slot.retry.conflicts == 1) slot.retry.at = now;
      if (is_needed && slot.retry.conflicts > kMaxConflicts) Fail(result, "Conflict", job);
      return;
    }
    case Outcome::kRefused:
      if (is_needed) Fail(result, "Refused", job);
      [[fallthrough]];
    case Outcome::kRetry:
      BackOff(result, now, &slot.retry);
      return;
  }
}

// A node that cannot be looked at keeps nobody waiting for good.
void BindPlanner::ApplyLook(const CallResult& result, Millis now, Slot* slot) const {
  if (result.outcome != Outcome::kDone) {
    BackOff(result, now, &slot->look);
    if (slot->look.IsHopeless()) slot->SeeNode("", now);
    return;
  }
  slot->SeeNode(result.node_closed, now);
  if (result.node_closed.empty()) return;
  slot->look.refusals = 0;
  slot->look.at =
      now + BackoffDelay(options_.node_check_interval, kMostLookInterval, ++slot->look.failures);
}

void BindPlanner::BackOff(const CallResult& result, Millis now, Retry* retry) const {
  ++retry->failures;
  if (pods_in_view_ && !result.unmade) ++retry->refusals;
  retry->at = now + std::max(result.retry_after,
                             BackoffDelay(options_.retry_min, options_.retry_max, retry->failures));
}

}  // namespace fluxqueue::binder
