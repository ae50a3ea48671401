// Commands, and the claims that they make. What a command does is what admission can say too, so it
// is turned into that and goes the same way; only a claim's own beginning and end are told here.
#include "libs/base/status_macros.h"
#include "libs/model/job_of.h"
#include "libs/model/workload.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::queue_core {

using events::v1::CommandAccepted;
using events::v1::JobUpdated;
using model::JobState;

namespace {

events::v1::JobSubmitted ToSubmitted(const events::v1::SubmitClaim& claim) {
  events::v1::JobSubmitted submitted;
  submitted.set_job_id(claim.job_id());
  events::v1::Workload* workload = submitted.mutable_workload();
  workload->set_api_version(std::string(model::kClaimApiVersion));
  workload->set_kind(std::string(model::kClaimKind));
  workload->set_name(claim.name());
  workload->set_uid(claim.job_id());
  workload->set_owner(claim.owner());
  submitted.set_queue(claim.queue());
  submitted.set_priority(claim.priority());
  if (claim.has_duration_ms()) submitted.set_duration_ms(claim.duration_ms());
  *submitted.mutable_spec() = claim.spec();
  submitted.set_created_ms(claim.created_ms());
  submitted.set_user(claim.user().empty() ? claim.owner() : claim.user());
  return submitted;
}

// What people are told of a command that changes its job. (A cancelled one says it itself.)
std::string DoneBy(const CommandAccepted& accepted) {
  const std::string& user = accepted.asked_by();
  if (user.empty()) return "";
  switch (accepted.command_case()) {
    case CommandAccepted::kHoldJob:
      return fmt::format("held by {}", user);
    case CommandAccepted::kReleaseJob:
      return fmt::format("released by {}", user);
    case CommandAccepted::kSetPriority:
      return fmt::format("priority {} by {}", accepted.set_priority().priority(), user);
    case CommandAccepted::kMoveJob:
      return fmt::format("moved to queue {} by {}", accepted.move_job().queue(), user);
    case CommandAccepted::kSubmitClaim:
    case CommandAccepted::kCancelJob:
    case CommandAccepted::kAbandonCycle:
    case CommandAccepted::COMMAND_NOT_SET:
      break;
  }
  return "";
}

}  // namespace

absl::Status QueueCore::Impl::CheckCommand(const CommandAccepted& accepted) {
  if (accepted.command_case() == CommandAccepted::COMMAND_NOT_SET) {
    return InvalidArgument("CommandAccepted holds no command that this version knows");
  }
  if (accepted.has_abandon_cycle()) return absl::OkStatus();
  const std::string job_id = model::JobOf(accepted);
  if (job_id.empty()) return InvalidArgument("CommandAccepted names no job");
  if (accepted.has_move_job() && accepted.move_job().queue().empty()) {
    return InvalidArgument("job {}: MoveJob names no queue", job_id);
  }
  if (!accepted.has_submit_claim()) return absl::OkStatus();
  const events::v1::SubmitClaim& claim = accepted.submit_claim();
  if (claim.spec().slots() == 0) {
    return InvalidArgument("claim {}: SubmitClaim has a jobspec of 0 slots; at least 1 is allowed",
                           job_id);
  }
  if (claim.duration_ms() < 0) {
    return InvalidArgument(
        "claim {}: a duration of {} ms; it must not be below 0", job_id, claim.duration_ms());
  }
  return absl::OkStatus();
}

void QueueCore::Impl::OnCommand(const CommandAccepted& accepted) {
  done_by_ = DoneBy(accepted);
  FollowCommand(accepted);
  done_by_.clear();
}

void QueueCore::Impl::FollowCommand(const CommandAccepted& accepted) {
  JobUpdated updated;
  updated.set_job_id(model::JobOf(accepted));
  switch (accepted.command_case()) {
    case CommandAccepted::kSubmitClaim:
      return OnSubmitted(ToSubmitted(accepted.submit_claim()));
    case CommandAccepted::kCancelJob: {
      Entry* entry = book_.Find(updated.job_id());
      if (entry == nullptr) {
        ++out_->stale;
        return;
      }
      return CancelJob(entry,
                       reason::kCancelled,
                       accepted.asked_by().empty()
                           ? "cancelled by a command"
                           : fmt::format("cancelled by {}", accepted.asked_by()));
    }
    case CommandAccepted::kSetPriority:
      updated.set_priority(accepted.set_priority().priority());
      return OnUpdated(updated);
    case CommandAccepted::kHoldJob:
      updated.set_hold(true);
      return OnUpdated(updated);
    case CommandAccepted::kReleaseJob:
      updated.set_hold(false);
      return OnUpdated(updated);
    case CommandAccepted::kMoveJob:
      updated.set_queue(accepted.move_job().queue());
      return OnUpdated(updated);
    case CommandAccepted::kAbandonCycle:
      return AbandonCycle(accepted.abandon_cycle().cycle_id());
    case CommandAccepted::COMMAND_NOT_SET:
      return;
  }
}

void QueueCore::Impl::StartClaim(Entry* entry) {
  Job& job = book_.Edit(entry);
  job.state = JobState::kRunning;
  job.start_ms = state_.now_ms;
  // Whatever becomes of its queue's default: what it was given it keeps.
  job.duration_ms = planning_.EffectiveDuration(job);
  Say(entry);
}

}  // namespace fluxqueue::queue_core
