#include "services/binder/domain/loss_planner.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "libs/base/text.h"
#include "services/binder/domain/stop_planner.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;

// In one message: some 100 KB with their nodes' names and the reasons.
constexpr size_t kMostLostAtOnce = 200;

bool AnyRuns(const BindJob& job) {
  return std::any_of(job.slots.begin(), job.slots.end(), [](const Slot& slot) {
    return slot.state == SlotState::kBound;
  });
}

// How many completions the Job lacks beyond its pods that have slots. Unset: it is being asked.
std::optional<int64_t> CompletionsWithoutSlot(PlanContext& context, BindJob* job) {
  if (!job->completions_left.has_value()) {
    if (job->call == 0 && context.Due(job->retry)) {
      job->call = IssueForJob(context, *job, Call::Kind::kReadJob);
    }
    return std::nullopt;
  }
  const auto seated = std::count_if(
      job->slots.begin(), job->slots.end(), [](const Slot& slot) { return slot.Occupied(); });
  return *job->completions_left - seated;
}

// By what was submitted, slots may serve one completion after the other; it may lack fewer by now.
// Unset: it is being asked.
std::optional<bool> LacksNoMoreThanItHasPods(PlanContext& context, BindJob* job) {
  if (job->OneCompletionEach()) return true;
  if (!job->IsJob() || job->workload_gone) return false;
  const std::optional<int64_t> without = CompletionsWithoutSlot(context, job);
  return without.has_value() ? std::optional(*without <= 0) : std::nullopt;
}

void FailForNode(const Slot& slot, const std::string& rest, BindJob* job) {
  SetFailure(job,
             "NodeClosed",
             fmt::format("pod {}/{} was to run on node {}, which {}{}",
                         job->workload().namespace_(),
                         slot.pod_name,
                         slot.node,
                         slot.WhyLost().empty() ? "takes no pods" : slot.WhyLost(),
                         rest));
}

void FailForUnbound(const PlanContext& context, const Slot& slot, BindJob* job) {
  SetFailure(job,
             "StartTimeout",
             fmt::format("pod {}/{} was not bound to node {} within {} s: see its events",
                         job->workload().namespace_(),
                         slot.pod_name,
                         slot.node,
                         context.options.start_timeout.count() / 1000));
}

// While others of the job run its pod waits for the node to be opened, as long as for a pod that
// does not come; or, where another slot may serve it, for that. Then all of the job is placed
// again.
void AwaitNode(PlanContext& context, const Slot& slot, BindJob* job) {
  if (job->IsPlace(slot)) return;
  if (AnyRuns(*job)) {
    const Millis late = *slot.closed_since + context.options.start_timeout;
    if (context.now < late) return context.WakeAt(late);
    if (!LacksNoMoreThanItHasPods(context, job).value_or(false)) return;
  }
  FailForNode(slot, "", job);
}

bool IsToBeLost(const Slot& slot, const BindJob& job) {
  if (!job.fact->replaces_slots()) return false;
  if (slot.closed_since.has_value()) return AnyRuns(job) || HasUsableSlot(job);
  return !slot.put_out.empty() && slot.seen_open_at.has_value();
}

// Lost, and none has come in its place. Of one that was resized, what it lacks of the slots that it
// is to have at least.
size_t MissingSlots(const BindJob& job) {
  if (job.fact->resized()) {
    const auto has = static_cast<size_t>(std::count_if(
        job.slots.begin(), job.slots.end(), [](const Slot& slot) { return slot.Kept(); }));
    const size_t least = job.fact->min_slots();
    return job.fact->lost_slots().empty() || has >= least ? 0 : least - has;
  }
  const auto lost = static_cast<size_t>(job.fact->lost_slots_size());
  const size_t others = job.slots.size() - std::min<size_t>(job.slots.size(), job.fact->slots());
  return lost - std::min(lost, others);
}

// One of its pods that waits and has no slot; null: there is none.
const PodFacts* PodWithoutSlot(const PlanContext& context, const BindJob& job) {
  std::unordered_set<std::string> seated;
  for (const Slot& slot : job.slots) {
    if (slot.Occupied()) seated.insert(slot.pod_uid);
  }
  const std::vector<const PodFacts*> pods = PodsOf(context, job);
  const auto pod = std::find_if(pods.begin(), pods.end(), [&seated](const PodFacts* one) {
    return one->Waiting() && !seated.contains(one->uid);
  });
  return pod == pods.end() ? nullptr : *pod;
}

// At most kMostLostAtOnce.
void SayLost(PlanContext& context, std::span<const size_t> lost, BindJob* job) {
  Saying saying{.partition = job->partition, .envelope = {}, .after = {}};
  saying.envelope.set_pool(job->fact->pool());
  events::v1::SlotsLost* message = saying.envelope.mutable_slots_lost();
  message->set_job_id(job->id());
  message->set_attempt(job->attempt());
  auto with = std::make_shared<JobFact>(*job->fact);
  for (const size_t i : lost) {
    Slot& slot = job->slots[i];
    events::v1::SlotsLost::Lost* one = message->add_slots();
    one->set_slot(static_cast<uint32_t>(i));
    one->set_node(slot.node);
    one->set_reason(Cut(slot.WhyLost(), kMostReasonBytes));
    one->set_closed(slot.closed_since.has_value());
    slot.given_up = true;
    slot.losing = false;
    with->add_lost_slots(static_cast<uint32_t>(i));
  }
  std::sort(with->mutable_lost_slots()->begin(), with->mutable_lost_slots()->end());
  job->fact = std::move(with);
  context.sayings->push_back(std::move(saying));
}

}  // namespace

bool HasUsableSlot(const BindJob& job) {
  return std::any_of(job.slots.begin(), job.slots.end(), [](const Slot& slot) {
    return slot.Open() && !slot.closed_since.has_value();
  });
}

// A node that is being emptied gets no pods: else the drain that evicted the one before never ends.
// What this attempt was placed on needs no look, unless a slot was lost there, or it is a place,
// whose pod may come much later; nor, for a moment, what comes after a pod that succeeded.
bool MustLook(const PlanContext& context, const BindJob& job, const Slot& slot) {
  const bool known = slot.bound_once || job.IsPlace(slot) ||
                     std::any_of(job.slots.begin(), job.slots.end(), [&slot](const Slot& other) {
                       return other.given_up && other.node == slot.node;
                     });
  if (!known) return false;
  return !slot.seen_open_at.has_value() || context.now > *slot.seen_open_at + kSureFor;
}

std::optional<Turned> TurnAway(PlanContext& context, Slot* slot, BindJob* job) {
  slot->losing = slot->losing || IsToBeLost(*slot, *job);
  if (slot->losing) {
    if (slot->retry.IsHopeless()) {
      FailForNode(*slot, ", and it cannot be given another slot", job);
      return Turned{};
    }
    return Turned{context.Due(slot->retry) ? std::optional(Call::Kind::kFence) : std::nullopt};
  }
  if (!slot->closed_since.has_value()) return std::nullopt;
  // Fenced, as a Binding may be under way: then the pod takes another slot.
  if (!job->OneCompletionEach() && HasUsableSlot(*job)) {
    return Turned{context.Due(slot->retry) ? std::optional(Call::Kind::kFence) : std::nullopt};
  }
  AwaitNode(context, *slot, job);
  if (job->failure.has_value()) return Turned{};
  return std::nullopt;
}

void PlanLosses(PlanContext& context, BindJob* job) {
  std::vector<size_t> lost;
  for (size_t i = 0; i < job->slots.size(); ++i) {
    if (job->slots[i].losing && !job->slots[i].Occupied()) lost.push_back(i);
  }
  if (lost.empty()) return;
  if (!context.may_speak) {
    context.speak_later = true;
    return;
  }
  for (size_t from = 0; from < lost.size(); from += kMostLostAtOnce) {
    const size_t some = std::min(kMostLostAtOnce, lost.size() - from);
    SayLost(context, std::span(lost).subspan(from, some), job);
  }
}

void GiveUpUnbound(PlanContext& context, BindJob* job) {
  if (!job->bound_said || !job->IsJob() || !context.pods_in_view) return;
  for (size_t i = 0; i < job->slots.size(); ++i) {
    Slot& slot = job->slots[i];
    const PodFacts* pod =
        slot.state == SlotState::kTaken ? context.pods.Find(slot.pod_uid) : nullptr;
    if (pod == nullptr || !pod->Released() || pod->Ended() || slot.vacating) continue;
    const Millis since = std::max(slot.taken_at.value_or(Millis(0)), context.in_view_since);
    const Millis late = since + context.options.start_timeout;
    if (context.now < late) {
      context.WakeAt(late);
    } else if (job->fact->replaces_slots() && (AnyRuns(*job) || HasUsableSlot(*job))) {
      slot.losing = true;
      StopSlot(context, {.suspends = false, .since = late}, static_cast<int>(i), job);
    } else if (!AnyRuns(*job)) {
      return FailForUnbound(context, slot, job);
    }
  }
}

void AwaitOthers(PlanContext& context, BindJob* job) {
  const size_t missing = MissingSlots(*job);
  const PodFacts* pod = missing == 0 ? nullptr : PodWithoutSlot(context, *job);
  if (pod == nullptr) {
    job->other_awaited_since.reset();
    return;
  }
  job->other_awaited_since = job->other_awaited_since.value_or(context.now);
  const Millis wait = context.options.start_timeout;
  const Millis late = *job->other_awaited_since + wait;
  if (context.now < late) return context.WakeAt(late);
  if (AnyRuns(*job) && !LacksNoMoreThanItHasPods(context, job).value_or(false)) return;
  SetFailure(job,
             "NodeClosed",
             fmt::format("pod {}/{} has no slot: {} of the job's {} {} lost, and no other node had "
                         "room for {} s",
                         pod->space,
                         pod->name,
                         missing,
                         job->fact->slots(),
                         missing == 1 ? "was" : "were",
                         wait.count() / 1000));
}

void AwaitDone(PlanContext& context, BindJob* job) {
  const bool may = job->bound_said && job->IsJob() && !job->workload_gone &&
                   job->OneCompletionEach() && MissingSlots(*job) == 0 && context.pods_in_view;
  const PodFacts* pod = may ? PodWithoutSlot(context, *job) : nullptr;
  if (pod == nullptr) {
    job->done_awaited_since.reset();
    return;
  }
  if (!job->done_awaited_since.has_value()) {
    job->done_awaited_since = context.now;
    job->completions_left.reset();
  }
  const Millis late = *job->done_awaited_since + context.options.start_timeout;
  if (context.now < late) return context.WakeAt(late);
  const std::optional<int64_t> lacks = CompletionsWithoutSlot(context, job);
  if (!lacks.has_value()) return;
  if (*lacks <= 0) {
    // It waits for the pod before it to go.
    job->done_awaited_since.reset();
    return context.WakeAt(context.now + context.options.start_timeout);
  }
  SetFailure(job,
             "StartTimeout",
             fmt::format("pod {}/{} has no slot: those of {} are used up, and it lacks {} "
                         "completions more than it has pods in them. Was the cluster restored from "
                         "a backup?",
                         pod->space,
                         pod->name,
                         Describe(job->workload()),
                         *lacks));
}

}  // namespace fluxqueue::binder
