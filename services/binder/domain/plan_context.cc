#include "services/binder/domain/plan_context.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/base/text.h"

namespace fluxqueue::binder {
namespace {

Call MakeCall(PlanContext& context, const BindJob& job, Call::Kind kind) {
  Call call;
  call.kind = kind;
  call.id = ++*context.last_call;
  call.job_id = job.id();
  call.attempt = job.attempt();
  call.slots = static_cast<uint32_t>(job.slots.size());
  call.space = job.workload().namespace_();
  const bool of_job = kind == Call::Kind::kResume || kind == Call::Kind::kLimit;
  const bool of_pod = kind == Call::Kind::kBind || kind == Call::Kind::kRelease;
  if (job.IsJob() ? of_job : of_pod) call.ends_after_s = (job.fact->ends_after_ms() + 999) / 1000;
  return call;
}

// A Job, or who has made the pods of a gang, will make another for each that is deleted. It is not
// to count these as failures of the user's, if its podFailurePolicy ignores disruptions.
bool GoesOn(const BindJob& job) {
  const auto after = job.fact->after_stop();
  const bool made_again = job.IsJob() || (job.IsGroup() && job.workload().controlled());
  return made_again && after != events::v1::JobFact::AFTER_STOP_CANCEL &&
         after != events::v1::JobFact::AFTER_STOP_FAIL;
}

// What cannot be found out keeps no pod waiting.
Millis SureUntil(const BindJob& job, const Slot& slot) {
  if (slot.retry.IsHopeless() || (slot.node_uid.has_value() && slot.node_uid->empty())) {
    return Millis::max();
  }
  if (!slot.node_uid.has_value() || !slot.seen_open_at.has_value()) return job.fresh_until;
  return std::max(job.fresh_until, *slot.seen_open_at + kSureFor);
}

}  // namespace

uint64_t IssueForSlot(PlanContext& context, const BindJob& job, int slot, Call::Kind kind) {
  const Slot& of = job.slots[static_cast<size_t>(slot)];
  Call call = MakeCall(context, job, kind);
  call.slot = slot;
  call.name = of.pod_name;
  call.uid = of.pod_uid;
  call.node = of.node;
  call.devices = of.devices;
  if (kind == Call::Kind::kDelete && job.fact->grace_ms() > 0) {
    call.grace_s = (job.fact->grace_ms() + 999) / 1000;
  }
  if (kind == Call::Kind::kKill) call.grace_s = kKillGraceS;
  // The mark is a patch, and what cannot be patched is to go all the same.
  if (kind == Call::Kind::kDelete && GoesOn(job) && !of.retry.IsHopeless()) {
    call.disruption = job.fact->message();
  }
  call.again = of.retry.failures > 1;
  call.node_uid = of.node_uid.value_or("");
  const bool starts = kind == Call::Kind::kBind || kind == Call::Kind::kRelease;
  if (starts) call.sure_until = SureUntil(job, of);
  if (const PodFacts* pod = context.pods.Find(of.pod_uid); starts && pod != nullptr) {
    call.resource_version = pod->resource_version;
  }
  const uint64_t id = call.id;
  context.calls->push_back(std::move(call));
  return id;
}

uint64_t IssueForJob(PlanContext& context, const BindJob& job, Call::Kind kind) {
  Call call = MakeCall(context, job, kind);
  call.name = job.workload().name();
  call.uid = job.workload().uid();
  // At first the suspend is as admission saw it; later it may have become the user's.
  const bool first = job.workload().suspended() && job.attempt() == 1 && !job.bound_said;
  call.only_ours = kind == Call::Kind::kResume && !first;
  call.again = job.retry.failures > 1;
  const uint64_t id = call.id;
  context.calls->push_back(std::move(call));
  return id;
}

std::vector<const PodFacts*> PodsOf(const PlanContext& context, const BindJob& job) {
  const events::v1::Workload& workload = job.workload();
  return job.IsGroup() ? context.pods.OfGroup(workload.pods(), workload.namespace_())
                       : context.pods.OfJob(job.id(), workload.namespace_());
}

void AdoptPods(PlanContext& context, BindJob* job) {
  for (const PodFacts* pod : PodsOf(context, *job)) {
    if (!pod->Bound() || pod->Ended() || !pod->slot.has_value()) continue;
    if (pod->slot->attempt != job->attempt() || pod->slot->part != 0) continue;
    if (pod->slot->slot >= job->slots.size()) continue;
    Slot& slot = job->slots[pod->slot->slot];
    if (slot.Occupied() || slot.pod_uid == pod->uid) continue;
    // A pod of a group may be of the next gang by now.
    const bool believed = job->stopping && !job->IsGroup();
    if (!believed && !context.pods.Proves(*pod, job->id())) continue;
    if (slot.node.empty()) slot.node = pod->node;
    slot.pod_uid = pod->uid;
    slot.pod_name = pod->name;
    slot.state = SlotState::kTaken;
    slot.taken_at.reset();
    slot.retry = {};
  }
}

void ReadUnknownPod(PlanContext& context, BindJob* job, int slot) {
  Slot& of = job->slots[static_cast<size_t>(slot)];
  if (!context.pods_in_view || of.call != 0 || !context.Due(of.retry)) return;
  of.call = IssueForSlot(context, *job, slot, Call::Kind::kReadPod);
}

void SetFailure(BindJob* job, std::string reason, const std::string& message) {
  if (job->failed || job->failure.has_value()) return;
  job->failure = Failure{std::move(reason), Cut(message, kMostMessageBytes)};
}

std::string Describe(const events::v1::Workload& workload) {
  return fmt::format("{} {}/{}", workload.kind(), workload.namespace_(), workload.name());
}

}  // namespace fluxqueue::binder
