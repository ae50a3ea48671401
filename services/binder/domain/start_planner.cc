#include "services/binder/domain/start_planner.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "libs/kubernetes/requests.h"
#include "services/binder/domain/loss_planner.h"
#include "services/binder/domain/vacate_planner.h"

namespace fluxqueue::binder {
namespace {

// A pod that its watch does not show to be bound after so long is read.
constexpr Millis kSeenWithin{60'000};

// The pod of a slot has ended.
void ObserveEnd(BindJob* job, Slot* slot, const PodFacts& pod) {
  if (pod.node == slot->node) slot->bound_once = true;
  const bool succeeded = pod.phase == PodFacts::Phase::kSucceeded;
  // The only pod of a job is the job's end, which others see to; nobody wants the slot, so its row
  // need not be written once more.
  if (succeeded && job->slots.size() == 1 && job->OneCompletionEach()) return;
  slot->state = SlotState::kEnded;
  if (!succeeded) slot->SeeUnsuccessful(pod.node == slot->node ? pod.put_out : "");
  slot->succeeded = succeeded && job->OneCompletionEach();
}

void ObserveBound(PlanContext& context, BindJob* job, Slot* slot, const PodFacts& pod) {
  if (pod.node != slot->node && job->IsPlace(*slot)) {
    slot->state = SlotState::kEnded;
    return;
  }
  if (pod.node != slot->node) {
    SetFailure(
        job,
        "Conflict",
        fmt::format("pod {}/{} was to run on node {} and was bound to {} by another scheduler",
                    pod.space,
                    pod.name,
                    slot->node,
                    pod.node));
    return;
  }
  if (slot->state == SlotState::kTaken) job->progress = context.now;
  slot->Bind(context.now);
}

// The cluster's store may have gone back to before the pod was bound, and its watch, which has not
// shown that yet, sees nothing new.
void AwaitSight(PlanContext& context, BindJob* job, size_t index) {
  const Millis since = job->slots[index].bound_at.value_or(Millis(0));
  const Millis late = std::max(since, context.in_view_since) + kSeenWithin;
  if (context.now < late) return context.WakeAt(late);
  ReadUnknownPod(context, job, static_cast<int>(index));
}

// What has become of the pods in their slots.
void Observe(PlanContext& context, BindJob* job) {
  for (size_t i = 0; i < job->slots.size(); ++i) {
    Slot& slot = job->slots[i];
    if (!slot.Occupied()) continue;
    const PodFacts* pod = context.pods.Find(slot.pod_uid);
    if (pod == nullptr) {
      if (context.pods.KnownGone(slot.pod_uid, job->id())) {
        // One that was not bound was not put out by this node.
        const bool was_there = slot.state == SlotState::kBound;
        slot.state = SlotState::kEnded;
        slot.succeeded = slot.succeeded || job->IsGroup();  // no other pod ever has it
        slot.SeeUnsuccessful(was_there ? context.pods.WhyPutOut(slot.pod_uid, job->id()) : "");
      } else {
        ReadUnknownPod(context, job, static_cast<int>(i));
      }
    } else if (pod->Ended()) {
      ObserveEnd(job, &slot, *pod);
    } else if (pod->Bound()) {
      ObserveBound(context, job, &slot, *pod);
      if (pod->noted) AwaitSight(context, job, i);
    } else if (slot.state == SlotState::kBound && pod->Waiting()) {
      // The cluster's store has gone back to before it was bound (kubernetes/watch.h).
      slot.state = SlotState::kTaken;
      slot.retry = {};
    } else if (pod->deleting && slot.state == SlotState::kTaken && slot.call == 0) {
      slot.state = SlotState::kEnded;  // the API server binds no pod that is going
      slot.succeeded = slot.succeeded || job->IsGroup();
    }
  }
}

// Gives the waiting pods of one job their slots.
class SlotChooser {
 public:
  SlotChooser(const PlanContext& context, const BindJob& job) : job_(job) {
    const bool usable = HasUsableSlot(job);
    for (size_t i = 0; i < job.slots.size(); ++i) {
      const Slot& slot = job.slots[i];
      if (slot.Open() && (!usable || !slot.closed_since.has_value())) open_.insert(i);
      if (!slot.Occupied()) continue;
      seated_.insert(slot.pod_uid);
      if (const PodFacts* pod = context.pods.Find(slot.pod_uid); pod != nullptr) {
        indexes_.insert(pod->index);
      }
    }
  }

  bool done() const { return open_.empty(); }
  bool Seated(const PodFacts& pod) const { return seated_.contains(pod.uid); }

  // Unset: it has to wait, for its predecessor or for any slot.
  std::optional<size_t> Choose(const PodFacts& pod) {
    const bool by_index = job_.workload().indexed() && pod.index >= 0;
    const std::optional<size_t> chosen = job_.IsPod() ? OwnOrPlace(pod)
                                         : by_index   ? ForIndex(pod)
                                                      : First(pod);
    if (chosen.has_value()) {
      open_.erase(*chosen);
      indexes_.insert(pod.index);
    }
    return chosen;
  }

 private:
  // Where slots differ, rather one that is just as large as the pod.
  std::optional<size_t> First(const PodFacts& pod, size_t from = 0) const {
    std::optional<size_t> chosen;
    for (const SlotGroup& group : job_.groups) {
      const auto open = open_.lower_bound(std::max(group.first, from));
      if (open == open_.end() || *open >= group.end) continue;
      if (pod.requests == *group.requests) return *open;
      if (!chosen && !kubernetes::Excess(pod.requests, *group.requests)) chosen = *open;
    }
    return chosen;
  }

  // Of the pod that the job is, or of one that it has made: that only while it runs.
  std::optional<size_t> OwnOrPlace(const PodFacts& pod) const {
    if (pod.uid == job_.id()) return open_.contains(0) ? std::optional<size_t>(0) : std::nullopt;
    return job_.slots.front().state == SlotState::kBound ? First(pod, 1) : std::nullopt;
  }

  // Of one whose own slot was lost: any of those that came in place of such.
  std::optional<size_t> InPlaceOf(size_t own) const {
    if (own >= job_.slots.size() || !job_.slots[own].given_up) return std::nullopt;
    const auto came_later = open_.lower_bound(job_.fact->slots());
    return came_later == open_.end() ? std::nullopt : std::optional(*came_later);
  }

  // The slots of Jobs are equal.
  std::optional<size_t> ForIndex(const PodFacts& pod) const {
    if (indexes_.contains(pod.index)) return std::nullopt;  // its predecessor has not gone
    const auto own = static_cast<size_t>(pod.index);
    if (open_.contains(own)) return own;
    if (job_.OneCompletionEach()) return InPlaceOf(own);
    // More indexes than slots: rather one that was used, its own index may be still to come.
    const auto used = std::find_if(
        open_.begin(), open_.end(), [this](size_t i) { return job_.slots[i].bound_once; });
    return used == open_.end() ? First(pod) : *used;
  }

  const BindJob& job_;
  std::set<size_t> open_;
  std::unordered_set<std::string> seated_;
  std::unordered_set<int> indexes_;  // that hold a slot
};

std::vector<const PodFacts*> WaitingPods(const PlanContext& context, const BindJob& job) {
  std::vector<const PodFacts*> waiting;
  for (const PodFacts* pod : PodsOf(context, job)) {
    if (pod->Waiting()) waiting.push_back(pod);
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const PodFacts* a, const PodFacts* b) {
    return a->index < b->index;
  });
  return waiting;
}

// In what the pod asks for more than any slot of the job that it may have; unset: it fits one.
std::optional<std::string> ExcessOf(const PodFacts& pod, const BindJob& job) {
  std::optional<std::string> excess;
  for (const SlotGroup& group : job.groups) {
    excess = kubernetes::Excess(pod.requests, *group.requests);
    if (!excess.has_value() || job.IsPod()) break;
  }
  return excess;
}

void SetTooLarge(const PodFacts& pod, const std::string& excess, BindJob* job) {
  SetFailure(
      job,
      "PodTooLarge",
      fmt::format("pod {}/{} asks for more than its slot holds: {}", pod.space, pod.name, excess));
}

bool AllFit(const std::vector<const PodFacts*>& pods, BindJob* job) {
  for (const PodFacts* pod : pods) {
    if (job->IsPod() && pod->uid != job->id()) continue;
    const std::optional<std::string> excess = ExcessOf(*pod, *job);
    if (!excess.has_value()) continue;
    SetTooLarge(*pod, *excess, job);
    return false;
  }
  return true;
}

void Take(PlanContext& context, const PodFacts& pod, size_t index, BindJob* job) {
  Slot& slot = job->slots[index];
  slot.state = SlotState::kTaken;
  slot.pod_uid = pod.uid;
  slot.pod_name = pod.name;
  slot.delete_sent = slot.kill_sent = false;
  slot.call = 0;  // an answer about the pod before is of no interest
  slot.retry = {};
  slot.taken_at = job->progress = context.now;
  slot.bound_at.reset();
  slot.closed_since.reset();
  slot.look = {};
}

// Each pod of a group has one slot, and no other ever has that. None is taken before every pod can
// have its own: a gang starts as a whole.
void AssignGroup(PlanContext& context, BindJob* job) {
  std::vector<const PodFacts*> pods;
  bool all = true;
  for (size_t i = 0; i < job->slots.size(); ++i) {
    const auto& uids = job->workload().pods();
    const bool open = job->slots[i].state == SlotState::kFree && !job->slots[i].released;
    const PodFacts* pod = open && i < static_cast<size_t>(uids.size())
                              ? context.pods.Find(uids[static_cast<int>(i)])
                              : nullptr;
    const bool waits =
        pod != nullptr && pod->Waiting() && pod->space == job->workload().namespace_();
    all = all && (!open || waits);
    pods.push_back(waits ? pod : nullptr);
  }
  if (!all) return;
  for (const SlotGroup& group : job->groups) {
    for (size_t i = group.first; i < group.end && i < pods.size(); ++i) {
      if (pods[i] == nullptr) continue;
      const std::optional<std::string> excess =
          kubernetes::Excess(pods[i]->requests, *group.requests);
      if (excess.has_value()) return SetTooLarge(*pods[i], *excess, job);
    }
  }
  for (size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] != nullptr) Take(context, *pods[i], i, job);
  }
}

void Assign(PlanContext& context, BindJob* job) {
  if (job->IsGroup()) return AssignGroup(context, job);
  SlotChooser chooser(context, *job);
  if (chooser.done()) return;
  const std::vector<const PodFacts*> waiting = WaitingPods(context, *job);
  if (!AllFit(waiting, job)) return;
  for (const PodFacts* pod : waiting) {
    if (chooser.Seated(*pod)) continue;
    const std::optional<size_t> chosen = chooser.Choose(*pod);
    if (chosen.has_value()) Take(context, *pod, *chosen, job);
  }
}

// A node that came back under its name is another, and the binder need not have heard that the job
// is to stop. A moment after the job was placed that is let pass, as it would cost a call for each
// pod; later the uid is known first, and compared with the node as it is then (Call::sure_until).
bool KnowsNode(PlanContext& context, const BindJob& job, const Slot& slot) {
  if (context.now <= job.fresh_until || !slot.NeedsNode()) return true;
  context.place_again = true;
  return false;
}

// For a pod that waits in its slot. Unset: nothing now.
std::optional<Call::Kind> NextCall(PlanContext& context,
                                   Slot* slot,
                                   const PodFacts& pod,
                                   BindJob* job) {
  if (const std::optional<Turned> turned = TurnAway(context, slot, job)) return turned->call;
  // Its node is gone, or it was given back for a pod whose success was not seen here.
  if (slot->released) {
    return context.Due(slot->retry) ? std::optional(Call::Kind::kFence) : std::nullopt;
  }
  if (!KnowsNode(context, *job, *slot)) return std::nullopt;
  if (MustLook(context, *job, *slot)) {
    return context.Due(slot->look) ? std::optional(Call::Kind::kLookAtNode) : std::nullopt;
  }
  if (!context.Due(slot->retry)) return std::nullopt;
  return pod.gated ? Call::Kind::kRelease : Call::Kind::kBind;
}

void IssueCalls(PlanContext& context, BindJob* job) {
  for (size_t i = 0; i < job->slots.size() && !job->failure.has_value(); ++i) {
    Slot& slot = job->slots[i];
    if (slot.state != SlotState::kTaken || slot.call != 0 || slot.vacating) continue;
    if (job->IsPlace(slot) && !job->slots.front().Occupied()) continue;
    const PodFacts* pod = context.pods.Find(slot.pod_uid);
    if (pod == nullptr || !pod->Waiting()) continue;
    const std::optional<Call::Kind> next = NextCall(context, &slot, *pod, job);
    if (next.has_value()) slot.call = IssueForSlot(context, *job, static_cast<int>(i), *next);
  }
}

bool AnyOccupied(const BindJob& job) {
  return std::any_of(
      job.slots.begin(), job.slots.end(), [](const Slot& slot) { return slot.Occupied(); });
}

// Takes the suspend away by which the job was held, or with which its last attempt was stopped.
bool NeedsResume(const BindJob& job) {
  return job.StopsBySuspend() && !job.resumed && (job.workload().suspended() || job.attempt() > 1);
}

// A Job that runs without being resumed: it is told its deadline all the same.
bool NeedsLimit(const BindJob& job) {
  return job.IsJob() && !job.resumed && !NeedsResume(job) && !job.workload_gone &&
         job.fact->ends_after_ms() > 0;
}

void Resume(PlanContext& context, BindJob* job) {
  const bool limits = NeedsLimit(*job);
  if ((!limits && !NeedsResume(*job)) || job->call != 0) return;
  if (!context.Due(job->retry)) return;
  job->call = IssueForJob(context, *job, limits ? Call::Kind::kLimit : Call::Kind::kResume);
}

// Nothing of a job that has run is there, and no pod comes: its Job may be suspended by us once
// more, in a cluster that was restored from a backup.
void AwaitAny(PlanContext& context, BindJob* job) {
  const bool waits = job->bound_said && job->StopsBySuspend() && !AnyOccupied(*job);
  if (!waits) {
    job->any_awaited_since.reset();
    return;
  }
  job->any_awaited_since = job->any_awaited_since.value_or(context.now);
  const Millis late = *job->any_awaited_since + context.options.start_timeout;
  if (context.now < late) return context.WakeAt(late);
  job->resumed = false;
  job->any_awaited_since.reset();
}

// A call that fails is the API server's affair, not that of pods which do not come.
bool CallsAreFailing(const BindJob& job) {
  if (job.call != 0 || (NeedsResume(job) && job.retry.failures > 0)) return true;
  return std::any_of(job.slots.begin(), job.slots.end(), [](const Slot& slot) {
    return slot.state == SlotState::kTaken && (slot.call != 0 || slot.retry.failures > 0);
  });
}

// A pod that nobody makes again, and that may start without our doing: its gate cannot be put back,
// so to stop it would be to delete what its user has made. It waits on, on its node.
bool MustBeWaitedFor(const PlanContext& context, const BindJob& job) {
  if (job.IsJob() || job.workload().recreatable() || job.workload().controlled()) return false;
  // Kubernetes counts its time only from where it runs.
  const Millis ends_after(job.fact->ends_after_ms());
  if (ends_after > Millis(0) && context.now >= job.since + ends_after) return false;
  return std::any_of(job.slots.begin(), job.slots.end(), [&](const Slot& slot) {
    const PodFacts* pod = slot.Occupied() ? context.pods.Find(slot.pod_uid) : nullptr;
    return pod != nullptr && (pod->Bound() || pod->Released());
  });
}

bool AnyHadItsPod(const BindJob& job) {
  return std::any_of(job.slots.begin(), job.slots.end(), [](const Slot& slot) {
    return slot.bound_once || slot.succeeded;
  });
}

void CheckTimeout(PlanContext& context, BindJob* job) {
  if (job->bound_said || !context.pods_in_view) return;
  if (context.may_speak && job->AllBound()) {
    // It is said in this pass, and what is taken but not bound is looked at then (GiveUpUnbound).
    const bool taken = std::any_of(job->slots.begin(), job->slots.end(), [](const Slot& slot) {
      return slot.state == SlotState::kTaken;
    });
    if (taken) context.WakeAt(context.now + context.options.start_timeout);
    return;
  }
  const Millis at = std::max(job->progress, context.in_view_since) + context.options.start_timeout;
  if (context.now < at || CallsAreFailing(*job)) {
    context.WakeAt(context.now < at ? at : context.now + context.options.retry_max);
    return;
  }
  if (job->IsGroup() && AnyHadItsPod(*job)) {
    // A pod that is not to be seen any more had gone before it could be bound.
    for (Slot& slot : job->slots) slot.succeeded = slot.succeeded || slot.state == SlotState::kFree;
  }
  if (MustBeWaitedFor(context, *job)) {
    context.WakeAt(context.now + context.options.start_timeout);
    return;
  }
  // A Job of which some pods had succeeded in an earlier attempt needs fewer than it has slots.
  if (job->IsJob() && !job->workload_gone && !job->completions_left.has_value()) {
    if (context.Due(job->retry)) job->call = IssueForJob(context, *job, Call::Kind::kReadJob);
    return;
  }
  const auto running = std::count_if(job->slots.begin(), job->slots.end(), [](const Slot& slot) {
    return slot.state == SlotState::kBound;
  });
  if (job->completions_left.value_or(running + 1) <= running) {
    for (Slot& slot : job->slots) slot.succeeded = slot.succeeded || slot.Open();
    return;
  }
  const auto bound = std::count_if(job->slots.begin(), job->slots.end(), [](const Slot& slot) {
    return slot.bound_once || slot.released;
  });
  SetFailure(
      job,
      "StartTimeout",
      fmt::format("{} of {} pods were bound, and no more came within {} s: see the events of {}",
                  bound,
                  job->slots.size(),
                  context.options.start_timeout.count() / 1000,
                  Describe(job->workload())));
}

events::v1::JobBound BoundMessage(const BindJob& job, Millis now) {
  events::v1::JobBound bound;
  bound.set_job_id(job.id());
  bound.set_attempt(job.attempt());
  for (size_t i = 0; i < job.slots.size(); ++i) {
    const Slot& slot = job.slots[i];
    if (!slot.taken_at.has_value() || !slot.bound_at.has_value()) continue;
    events::v1::JobBound::Pod* pod = bound.add_pods();
    pod->set_slot(static_cast<uint32_t>(i));
    pod->set_taken_ago(static_cast<uint32_t>((now - *slot.taken_at).count()));
    pod->set_bound_ago(static_cast<uint32_t>((now - *slot.bound_at).count()));
  }
  return bound;
}

void Speak(PlanContext& context, BindJob* job) {
  if (!job->bound_said && job->AllBound()) {
    Saying saying{.partition = job->partition, .envelope = {}, .after = context.now - job->since};
    saying.envelope.set_pool(job->fact->pool());
    *saying.envelope.mutable_job_bound() = BoundMessage(*job, context.now);
    context.sayings->push_back(std::move(saying));
    job->bound_said = true;
  }
  if (!job->failed && job->failure.has_value()) {
    Saying saying{.partition = job->partition, .envelope = {}, .after = {}};
    saying.envelope.set_pool(job->fact->pool());
    events::v1::BindFailed* failed = saying.envelope.mutable_bind_failed();
    failed->set_job_id(job->id());
    failed->set_attempt(job->attempt());
    failed->set_reason(job->failure->reason);
    failed->set_message(job->failure->message);
    context.sayings->push_back(std::move(saying));
    job->failed = true;
    job->failure.reset();
  }
}

}  // namespace

void PlanStart(PlanContext& context, BindJob* job) {
  AdoptPods(context, job);
  // Observing may complete the job, and that has to be said in the same batch.
  if (context.may_speak) {
    Observe(context, job);
  } else if (AnyOccupied(*job)) {
    context.speak_later = true;
  }
  PlanVacate(context, job);
  if (!job->failed && !job->failure.has_value()) {
    AwaitAny(context, job);
    Resume(context, job);
    PlanLosses(context, job);
    Assign(context, job);
    IssueCalls(context, job);
    GiveUpUnbound(context, job);
    AwaitOthers(context, job);
    AwaitDone(context, job);
    CheckTimeout(context, job);
  }
  if (context.may_speak) {
    Speak(context, job);
  } else if (job->failure.has_value()) {
    context.speak_later = true;
  }
}

}  // namespace fluxqueue::binder
