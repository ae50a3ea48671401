#include "libs/model/job_state.h"

namespace fluxqueue::model {

std::string_view Name(JobState state) {
  switch (state) {
    case JobState::kNone:
      return "None";
    case JobState::kSubmitted:
      return "Submitted";
    case JobState::kPending:
      return "Pending";
    case JobState::kAllocated:
      return "Allocated";
    case JobState::kBound:
      return "Bound";
    case JobState::kRunning:
      return "Running";
    case JobState::kStopping:
      return "Stopping";
    case JobState::kSucceeded:
      return "Succeeded";
    case JobState::kFailed:
      return "Failed";
    case JobState::kCancelled:
      return "Cancelled";
    case JobState::kRejected:
      return "Rejected";
  }
  return "?";
}

std::optional<JobState> ParseJobState(std::string_view name) {
  for (int i = 0; i < kJobStates; ++i) {
    if (name == Name(static_cast<JobState>(i))) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

std::string_view WaitsFor(JobState state) {
  switch (state) {
    case JobState::kSubmitted:
      return "its FluxQueue";
    case JobState::kPending:
      return "the matcher";
    case JobState::kAllocated:
      return "the binder";
    case JobState::kBound:
    case JobState::kRunning:
      return "cleanup";
    case JobState::kStopping:
      return "the binder";
    case JobState::kNone:
    case JobState::kSucceeded:
    case JobState::kFailed:
    case JobState::kCancelled:
    case JobState::kRejected:
      return "";
  }
  return "";
}

std::vector<std::string_view> Names(StateSet states) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kJobStates; ++i) {
    if (states.Has(static_cast<JobState>(i))) names.push_back(Name(static_cast<JobState>(i)));
  }
  return names;
}

std::string_view Name(Fact fact) {
  switch (fact) {
    case Fact::kSubmitted:
      return "Submitted";
    case Fact::kResubmitted:
      return "Resubmitted";
    case Fact::kUpdated:
      return "Updated";
    case Fact::kResized:
      return "Resized";
    case Fact::kCancelled:
      return "Cancelled";
    case Fact::kWithdrawn:
      return "Withdrawn";
    case Fact::kQueueAppeared:
      return "QueueAppeared";
    case Fact::kQueueVanished:
      return "QueueVanished";
    case Fact::kAllocated:
      return "Allocated";
    case Fact::kRefused:
      return "Refused";
    case Fact::kUnsatisfiable:
      return "Unsatisfiable";
    case Fact::kInvalid:
      return "Invalid";
    case Fact::kNodeGone:
      return "NodeGone";
    case Fact::kBound:
      return "Bound";
    case Fact::kBindFailed:
      return "BindFailed";
    case Fact::kStopped:
      return "Stopped";
    case Fact::kVacated:
      return "Vacated";
    case Fact::kSlotsLost:
      return "SlotsLost";
    case Fact::kStarted:
      return "Started";
    case Fact::kPodEnded:
      return "PodEnded";
    case Fact::kEnded:
      return "Ended";
    case Fact::kNodeLost:
      return "NodeLost";
    case Fact::kExpired:
      return "Expired";
  }
  return "?";
}

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kApply:
      return "apply";
    case Verdict::kStale:
      return "stale";
    case Verdict::kImpossible:
      return "impossible";
  }
  return "?";
}

}  // namespace fluxqueue::model
