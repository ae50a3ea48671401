#include "libs/model/job_of.h"

namespace fluxqueue::model {

using events::v1::CommandAccepted;
using events::v1::Envelope;

namespace {

const std::string kNone;

}  // namespace

const std::string& JobOf(const Envelope& message) {
  switch (message.event_case()) {
    case Envelope::kJobSubmitted:
      return message.job_submitted().job_id();
    case Envelope::kJobUpdated:
      return message.job_updated().job_id();
    case Envelope::kJobWithdrawn:
      return message.job_withdrawn().job_id();
    case Envelope::kCommandAccepted:
      return JobOf(message.command_accepted());
    case Envelope::kReleaseRequested:
      return message.release_requested().key().job_id();
    case Envelope::kJobFact:
      return message.job_fact().job_id();
    case Envelope::kReleased:
      return message.released().key().job_id();
    case Envelope::kJobBound:
      return message.job_bound().job_id();
    case Envelope::kBindFailed:
      return message.bind_failed().job_id();
    case Envelope::kJobStopped:
      return message.job_stopped().job_id();
    case Envelope::kSlotsVacated:
      return message.slots_vacated().job_id();
    case Envelope::kSlotsLost:
      return message.slots_lost().job_id();
    case Envelope::kJobStarted:
      return message.job_started().job_id();
    case Envelope::kPodEnded:
      return message.pod_ended().job_id();
    case Envelope::kJobEnded:
      return message.job_ended().job_id();
    case Envelope::kJobNodeLost:
      return message.job_node_lost().job_id();
    default:
      return kNone;
  }
}

const std::string& JobOf(const CommandAccepted& accepted) {
  switch (accepted.command_case()) {
    case CommandAccepted::kSubmitClaim:
      return accepted.submit_claim().job_id();
    case CommandAccepted::kCancelJob:
      return accepted.cancel_job().job_id();
    case CommandAccepted::kSetPriority:
      return accepted.set_priority().job_id();
    case CommandAccepted::kHoldJob:
      return accepted.hold_job().job_id();
    case CommandAccepted::kReleaseJob:
      return accepted.release_job().job_id();
    case CommandAccepted::kMoveJob:
      return accepted.move_job().job_id();
    case CommandAccepted::kAbandonCycle:
    case CommandAccepted::COMMAND_NOT_SET:
      break;
  }
  return kNone;
}

const events::v1::PartSpec* SpecOf(const events::v1::JobUpdated& updated) {
  if (updated.has_spec()) return &updated.spec();
  return updated.has_resized() ? &updated.resized() : nullptr;
}

}  // namespace fluxqueue::model
