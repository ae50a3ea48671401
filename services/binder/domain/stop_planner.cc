#include "services/binder/domain/stop_planner.h"

#include <algorithm>
#include <utility>

namespace fluxqueue::binder {
namespace {

// The Job's controller has not come to its pods yet, or somebody took our suspend away.
void AwaitController(PlanContext& context, BindJob* job) {
  if (!job->suspended) return;
  const Millis again = job->retry.at + context.options.node_check_interval;
  if (context.now < again) {
    context.WakeAt(again);
    return;
  }
  job->suspended = false;
  job->retry.at = context.now;
}

// A pod that runs, or may start without our doing.
void StopStarted(
    PlanContext& context, const HowToStop& how, int index, const PodFacts& pod, BindJob* job) {
  Slot& slot = job->slots[static_cast<size_t>(index)];
  if (slot.call != 0 || !context.Due(slot.retry)) return;
  const Millis wait = std::max(context.options.kill_wait, Millis(job->fact->grace_ms()));
  if (!pod.deleting && !slot.delete_sent) {
    if (how.suspends && context.now < how.since + wait) {
      AwaitController(context, job);
    } else {
      slot.call = IssueForSlot(context, *job, index, Call::Kind::kDelete);
    }
    return;
  }
  if (!slot.kill_sent) {
    const Millis kill = std::max(how.since, slot.deleted_at) + wait;
    if (context.now >= kill) {
      slot.call = IssueForSlot(context, *job, index, Call::Kind::kKill);
      return;
    }
    context.WakeAt(kill);
  }
  const Millis look = how.since + context.options.node_check_interval;
  if (context.now < look) {
    context.WakeAt(look);
  } else {
    slot.call = IssueForSlot(context, *job, index, Call::Kind::kCheckNode);
  }
}

}  // namespace

bool StopSlot(PlanContext& context, const HowToStop& how, int index, BindJob* job) {
  Slot& slot = job->slots[static_cast<size_t>(index)];
  if (!slot.Occupied()) return true;
  const PodFacts* pod = context.pods.Find(slot.pod_uid);
  if (pod == nullptr && !context.pods.KnownGone(slot.pod_uid, job->id())) {
    ReadUnknownPod(context, job, index);
    return false;
  }
  if (pod == nullptr || pod->Ended() || slot.lost) {
    slot.state = SlotState::kEnded;
    return true;
  }
  // Its next gang has started it.
  if (job->IsGroup() && pod->Bound() && slot.state == SlotState::kTaken &&
      !context.pods.Proves(*pod, job->id())) {
    slot.state = SlotState::kFenced;
    return true;
  }
  if (pod->Bound() || pod->Released() || slot.state == SlotState::kBound) {
    StopStarted(context, how, index, *pod, job);
    return false;
  }
  if (slot.call == 0 && context.Due(slot.retry)) {
    const auto kind = slot.retry.IsHopeless() ? Call::Kind::kDelete : Call::Kind::kFence;
    slot.call = IssueForSlot(context, *job, index, kind);
  }
  return false;
}

void PlanStop(PlanContext& context, BindJob* job) {
  if (job->stopped) return;
  AdoptPods(context, job);
  bool all = true;
  const bool suspends = job->StopsBySuspend() && !job->retry.IsHopeless();
  const HowToStop how{suspends, job->since};
  for (size_t i = 0; i < job->slots.size(); ++i) {
    all = StopSlot(context, how, static_cast<int>(i), job) && all;
  }
  if (job->StopsBySuspend() && !job->suspended) {
    all = all && !suspends;
    if (!all && job->call == 0 && context.Due(job->retry)) {
      job->call = IssueForJob(context, *job, Call::Kind::kSuspend);
    }
  }
  // A call about the Job that is still under way may yet resume it.
  if (!all || job->call != 0) return;
  if (!context.may_speak) {
    context.speak_later = true;
    return;
  }
  Saying saying{.partition = job->partition, .envelope = {}, .after = context.now - job->since};
  saying.envelope.set_pool(job->fact->pool());
  saying.envelope.mutable_job_stopped()->set_job_id(job->id());
  saying.envelope.mutable_job_stopped()->set_attempt(job->attempt());
  context.sayings->push_back(std::move(saying));
  job->stopped = true;
}

}  // namespace fluxqueue::binder
