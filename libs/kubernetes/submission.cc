#include "libs/kubernetes/submission.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/jobspec.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/places.h"
#include "libs/model/host_ports.h"
#include "libs/model/workload.h"

namespace fluxqueue::kubernetes {
namespace {

using events::v1::JobSubmitted;
using events::v1::Workload;

// No duration is longer (labels.h): a deadline beyond it, which Kubernetes allows, is as good.
constexpr int64_t kCenturyS = int64_t{100} * 365 * 24 * 3600;

// The shorter of the limits that are set; unset if none is.
std::optional<Millis> Deadline(int64_t a_s, int64_t b_s) {
  if (a_s <= 0 && b_s <= 0) return std::nullopt;
  const int64_t shorter = a_s <= 0 || b_s <= 0 ? std::max(a_s, b_s) : std::min(a_s, b_s);
  return std::chrono::seconds(std::min(shorter, kCenturyS));
}

absl::Status CheckSize(const Job& job) {
  if (job.parallelism < 1) {
    return InvalidArgument(
        "spec.parallelism: 0 asks for nothing; use at least 1, and {}=\"true\" to wait", kHoldKey);
  }
  if (job.completions && *job.completions < 1) {
    return InvalidArgument("spec.completions: 0 asks for nothing; use at least 1");
  }
  if (job.Slots() <= kMaxSlots) return absl::OkStatus();
  return InvalidArgument(
      "spec.parallelism: {} pods at once are more than the {} that one job may have; use a smaller "
      "parallelism",
      job.Slots(),
      kMaxSlots);
}

// How many pods a Job may have at a time, and with how many it starts.
struct Slots {
  uint32_t most = 1;
  uint32_t least = 0;  // 0: with all of them
};

std::string PodsAtOnce(const Job& job) {
  if (!job.completions) return fmt::format("spec.parallelism {}", job.parallelism);
  return fmt::format("the lesser of spec.parallelism {} and spec.completions {}",
                     job.parallelism,
                     *job.completions);
}

absl::Status CheckBetween(
    std::string_view key, int64_t value, int64_t least, int64_t most, const std::string& what) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("{}: \"{}\": allowed are {} to {}, {}", key, value, least, most, what);
}

absl::Status CheckArray(const Job& job, const UserKeys& keys, const std::string& at_once) {
  if (keys.min_slots || keys.max_slots) {
    return InvalidArgument(
        "{}: \"{}\": allowed without {} and {} only: a job array starts with one index, and never "
        "has more than this at a time",
        kArrayKey,
        *keys.array,
        kMinSlotsKey,
        kMaxSlotsKey);
  }
  if (!job.indexed) {
    return InvalidArgument(
        "{}: \"{}\": allowed for Indexed Jobs (spec.completionMode: Indexed); for others use "
        "{} and {}",
        kArrayKey,
        *keys.array,
        kMinSlotsKey,
        kMaxSlotsKey);
  }
  return CheckBetween(kArrayKey, *keys.array, 1, job.Slots(), at_once);
}

absl::Status CheckElastic(const Job& job, const UserKeys& keys, const std::string& at_once) {
  if (!keys.min_slots) {
    return InvalidArgument(
        "{}: \"{}\": allowed together with {} only, which says with how many pods the Job may "
        "start; for all or nothing set spec.parallelism",
        kMaxSlotsKey,
        *keys.max_slots,
        kMinSlotsKey);
  }
  RETURN_IF_ERROR(CheckBetween(kMinSlotsKey, *keys.min_slots, 1, job.Slots(), at_once));
  if (!keys.max_slots) return absl::OkStatus();
  return CheckBetween(kMaxSlotsKey,
                      *keys.max_slots,
                      *keys.min_slots,
                      job.Slots(),
                      fmt::format("from {} to {}", kMinSlotsKey, at_once));
}

// REQUIRES: CheckSize.
absl::StatusOr<Slots> SlotsOf(const Job& job, const UserKeys& keys) {
  const std::string at_once = fmt::format("the pods that run at once ({})", PodsAtOnce(job));
  int64_t most = job.Slots();
  int64_t least = most;
  if (keys.array) {
    RETURN_IF_ERROR(CheckArray(job, keys, at_once));
    least = 1;
    most = *keys.array;
  } else if (keys.min_slots || keys.max_slots) {
    RETURN_IF_ERROR(CheckElastic(job, keys, at_once));
    least = *keys.min_slots;
    most = keys.max_slots.value_or(most);
  }
  Slots slots{.most = static_cast<uint32_t>(most)};
  if (least < most) slots.least = static_cast<uint32_t>(least);
  if (slots.least != 0 && keys.topology && !keys.topology->required.empty()) {
    return InvalidArgument(
        "{}: \"{}\": allowed for a Job that grows is \"preferred\" only: its later pods may find "
        "no room in the {} of the first ones",
        kTopologyKey,
        FormatTopology(*keys.topology),
        keys.topology->required);
  }
  return slots;
}

absl::Status RefuseGrowth(const std::string& growth) {
  return InvalidArgument(
      "{}: \"{}\": allowed for the pods of a StatefulSet, Deployment or ReplicaSet; remove it: a "
      "Job is a gang, and grows by {} and {}",
      kGrowthKey,
      growth,
      kMinSlotsKey,
      kMaxSlotsKey);
}

absl::Status CheckHasNoGrowth(const Job& job) {
  // hint: a user's wishes.
  for (const StringMap* map : {&job.meta.labels, &job.meta.annotations}) {
    if (map->contains(kGrowthKey)) return RefuseGrowth(map->find(kGrowthKey)->second);
  }
  // hint: as above.
  for (const StringMap* map : {&job.template_labels, &job.template_annotations}) {
    if (map->contains(kGrowthKey)) return RefuseGrowth(map->find(kGrowthKey)->second);
  }
  return absl::OkStatus();
}

absl::Status CheckNamesNoGroup(const Job& job) {
  for (const std::string_view key : {kGroupNameKey, kGroupSizeKey}) {
    // hint: a user's wishes.
    if (job.template_labels.contains(key) || job.template_annotations.contains(key)) continue;
    for (const StringMap* map : {&job.meta.labels, &job.meta.annotations}) {  // hint: as above
      const auto found = map->find(key);
      if (found == map->end()) continue;
      return InvalidArgument(
          "{}: \"{}\": allowed for pods only; remove it, as the pods of a Job are a gang already, "
          "or write it into spec.template.metadata where they are one with others",
          key,
          found->second);
    }
  }
  return absl::OkStatus();
}

// Of a pod that is for no slot of a Job.
absl::Status CheckIsAJobs(const Pod& pod, const UserKeys& keys) {
  const auto check = [](std::string_view key, const auto& value) {
    if (!value) return absl::OkStatus();
    return InvalidArgument(
        "{}: \"{}\": allowed for Jobs only; remove it, or make a Job", key, *value);
  };
  RETURN_IF_ERROR(check(kMinSlotsKey, keys.min_slots));
  RETURN_IF_ERROR(check(kMaxSlotsKey, keys.max_slots));
  RETURN_IF_ERROR(check(kArrayKey, keys.array));
  if (IsOfAJob(pod)) return absl::OkStatus();  // which has followed it
  return check(kIgnoreDisruptionsKey, keys.ignore_disruptions);
}

events::v1::Dependency::Condition ToProto(scheduling::Condition condition) {
  switch (condition) {
    case scheduling::Condition::kAfterOk:
      return events::v1::Dependency::CONDITION_AFTER_OK;
    case scheduling::Condition::kAfterAny:
      return events::v1::Dependency::CONDITION_AFTER_ANY;
    case scheduling::Condition::kAfterNotOk:
      return events::v1::Dependency::CONDITION_AFTER_NOT_OK;
  }
  return events::v1::Dependency::CONDITION_UNSPECIFIED;
}

constexpr uint32_t kMostPlacedOneByOne = 256;

// The engine places all slots of a job at once; where its pods have rules among themselves, they
// are placed one after the other.
absl::Status CheckRules(const UserKeys& keys, const PodDemand& demand, const Slots& slots) {
  if (slots.most == 1) return absl::OkStatus();
  const auto refuse = [](std::string_view what) {
    return InvalidArgument(
        "spec.affinity, spec.topologySpreadConstraints: required rules between a job's own pods "
        "cannot be kept together with {}; remove one of them",
        what);
  };
  const PodRules& rules = demand.rules;
  if ((rules.among_own || rules.one_per_node) && demand.sets.size() > 1) {
    return refuse("pods that ask for different amounts");
  }
  if (!rules.among_own) return absl::OkStatus();
  if (slots.most > kMostPlacedOneByOne) {
    return refuse(fmt::format("more than {} pods", kMostPlacedOneByOne));
  }
  if (slots.least != 0) return refuse(kMinSlotsKey);
  if (keys.topology) return refuse(kTopologyKey);
  return absl::OkStatus();
}

JobSubmitted Assemble(const UserKeys& keys,
                      const PodSpec& pod,
                      const PodDemand& demand,
                      std::optional<Millis> deadline,
                      const Slots& slots) {
  JobSubmitted submitted;
  submitted.set_queue(keys.queue.value_or(std::string(kDefaultQueue)));
  submitted.set_priority(keys.priority.value_or(pod.priority.value_or(0)));
  const std::optional<Millis> duration = keys.duration ? keys.duration : deadline;
  if (duration) submitted.set_duration_ms(duration->count());
  submitted.set_hold(keys.hold);
  submitted.set_qos(keys.qos);
  auto* spec = submitted.mutable_spec();
  spec->set_slots(slots.most);
  spec->set_min_slots(slots.least);
  spec->set_jobspec(MakeJobspec(demand,
                                slots.most,
                                duration.value_or(Millis(0)),
                                keys.topology.value_or(Topology()),
                                slots.least));
  SetAmounts(demand, slots.most, spec);
  for (const DependsOn& other : keys.depends_on.value_or(std::vector<DependsOn>())) {
    events::v1::Dependency* dependency = submitted.add_depends_on();
    dependency->set_condition(ToProto(other.condition));
    dependency->set_job(other.job);
  }
  return submitted;
}

void SetIdentity(const ObjectMeta& meta,
                 const UserKeys& keys,
                 Workload workload,
                 uint32_t revision,
                 JobSubmitted* out) {
  if (keys.begin) out->set_begin_ms(keys.begin->At(meta.created_ms));
  // hint: the webhook writes it, and the policies fluxqueue-taken-in and fluxqueue-keys keep it.
  out->set_user(meta.Annotation(kUserAnnotation));
  out->set_job_id(meta.uid);
  out->set_created_ms(meta.created_ms);
  out->mutable_spec()->set_revision(revision);
  *out->mutable_workload() = std::move(workload);
}

Workload Identity(const ObjectMeta& meta, const char* api_version, const char* kind) {
  Workload workload;
  workload.set_api_version(api_version);
  workload.set_kind(kind);
  workload.set_namespace_(meta.namespace_name);
  workload.set_name(meta.name);
  workload.set_uid(meta.uid);
  return workload;
}

}  // namespace

void SetAmounts(const Amounts& slot, uint32_t slots, events::v1::PartSpec* spec) {
  SetAmounts(PodDemand{.requests = slot, .constraint = {}}, slots, spec);
}

void SetAmounts(const PodDemand& demand, uint32_t slots, events::v1::PartSpec* spec) {
  std::map<std::string_view, int64_t> all;
  const auto add = [&all](const Amounts& slot, uint32_t of) {
    for (const auto& [resource, amount] : slot) {
      if (model::IsHostPort(resource)) continue;  // no amount that a limit or a share is about
      int64_t& sum = all[resource];
      int64_t more = 0;
      if (__builtin_mul_overflow(amount, int64_t{of}, &more) ||
          __builtin_add_overflow(sum, more, &sum)) {
        sum = std::numeric_limits<int64_t>::max();
      }
    }
  };
  if (demand.sets.empty()) add(demand.requests, slots);
  for (const PodSet& set : demand.sets) add(set.requests, set.slots);
  spec->clear_amounts();
  for (const auto& [resource, amount] : all) {
    events::v1::Amount* added = spec->add_amounts();
    added->set_resource(std::string(resource));
    added->set_amount(amount);
  }
}

Workload WorkloadOf(const Job& job) {
  Workload workload = Identity(job.meta, "batch/v1", "Job");
  workload.set_indexed(job.indexed);
  // A Job without completions is done when one of its pods has succeeded and the others have ended.
  workload.set_completions(job.completions.value_or(job.parallelism));
  workload.set_recreatable(true);
  workload.set_suspended(IsSuspendedByUs(job));
  workload.set_controlled(IsControlled(job));
  workload.set_ignores_disruptions(job.ignores_disruptions);
  return workload;
}

Workload WorkloadOf(const Pod& pod) {
  Workload workload = Identity(pod.meta, "v1", "Pod");
  workload.set_completions(1);
  // hint: what a user says here concerns his own pod alone.
  workload.set_controlled(pod.meta.Controller() != nullptr);
  return workload;
}

absl::StatusOr<JobSubmitted> SubmissionOf(const Job& job,
                                          const TemplateContext& context,
                                          uint32_t revision,
                                          PodDemand* demand) {
  ASSIGN_OR_RETURN(UserKeys keys, ParseUserKeys(job));
  RETURN_IF_ERROR(CheckNamesNoGroup(job));
  RETURN_IF_ERROR(CheckHasNoGrowth(job));
  RETURN_IF_ERROR(CheckSize(job));
  ASSIGN_OR_RETURN(const Slots slots, SlotsOf(job, keys));
  const absl::StatusOr<PodSpec> pod = CompleteTemplate(job.pod, context);
  if (!pod.ok()) return Annotate(pod.status(), "pod template");
  // hint: rules between pods go by labels, as in Kubernetes, and only within the namespace.
  absl::StatusOr<PodDemand> slot = DemandOfPod(*pod, job.meta.namespace_name, job.template_labels);
  if (!slot.ok()) return Annotate(slot.status(), "pod template");
  // A suspend that is not ours is the user's own hold.
  keys.hold = keys.hold || (job.suspend && !IsSuspendedByUs(job));
  RETURN_IF_ERROR(CheckRules(keys, *slot, slots));
  const auto deadline =
      Deadline(OwnDeadline(job.meta, job.active_deadline_s), job.pod.active_deadline_s);
  JobSubmitted submitted = Assemble(keys, *pod, *slot, deadline, slots);
  SetIdentity(job.meta, keys, WorkloadOf(job), revision, &submitted);
  if (demand != nullptr) *demand = *std::move(slot);
  return submitted;
}

absl::StatusOr<JobSubmitted> SubmissionOf(const Pod& pod, uint32_t revision, PodDemand* demand) {
  // hint: a user's wishes.
  ASSIGN_OR_RETURN(const UserKeys keys, ParseUserKeys(pod.meta.labels, pod.meta.annotations));
  RETURN_IF_ERROR(CheckIsAJobs(pod, keys));
  // hint: as above.
  ASSIGN_OR_RETURN(PodDemand slot, DemandOfPod(pod.spec, pod.meta.namespace_name, pod.meta.labels));
  Slots slots;
  // hint: the webhook writes it, and the policies keep it.
  if (const auto places = ParsePlaces(pod.meta.Annotation(kPlacesAnnotation))) {
    slot.sets = {{1, std::exchange(slot.requests, {})}, {places->count, places->requests}};
    slots.most += places->count;
    RETURN_IF_ERROR(CheckRules(keys, slot, slots));
  }
  const auto deadline = Deadline(OwnDeadline(pod.meta, pod.spec.active_deadline_s), 0);
  JobSubmitted submitted = Assemble(keys, pod.spec, slot, deadline, slots);
  SetIdentity(pod.meta, keys, WorkloadOf(pod), revision, &submitted);
  if (demand != nullptr) *demand = std::move(slot);
  return submitted;
}

absl::StatusOr<GroupMember> MemberOf(const Pod& pod) {
  GroupMember member;
  // hint: a user's wishes.
  ASSIGN_OR_RETURN(member.keys, ParseUserKeys(pod.meta.labels, pod.meta.annotations));
  RETURN_IF_ERROR(CheckIsAJobs(pod, member.keys));
  // hint: as above.
  ASSIGN_OR_RETURN(member.demand, DemandOfPod(pod.spec, pod.meta.namespace_name, pod.meta.labels));
  member.uid = pod.meta.uid;
  member.name = pod.meta.name;
  member.index = pod.Index().value_or(-1);
  member.created_ms = pod.meta.created_ms;
  // hint: the webhook writes them, and the policies fluxqueue-taken-in and fluxqueue-keys keep
  // them.
  member.user = pod.meta.Annotation(kUserAnnotation);
  member.admitted_to = pod.meta.Annotation(kAdmittedToAnnotation);  // hint: as above
  member.controlled = pod.meta.Controller() != nullptr;
  member.priority = member.keys.priority.value_or(pod.spec.priority.value_or(0));
  member.duration = member.keys.duration
                        ? member.keys.duration
                        : Deadline(OwnDeadline(pod.meta, pod.spec.active_deadline_s), 0);
  return member;
}

absl::StatusOr<JobSubmitted> SubmissionOf(const std::string& space,
                                          const std::string& name,
                                          const std::vector<const GroupMember*>& members,
                                          PodDemand* demand) {
  ASSIGN_OR_RETURN(*demand, DemandOf(members));
  const GroupMember& leader = *members.front();
  UserKeys keys = leader.keys;
  RETURN_IF_ERROR(
      CheckRules(keys, *demand, {.most = static_cast<uint32_t>(members.size()), .least = 0}));
  keys.priority = leader.priority;
  Workload workload;
  workload.set_api_version(std::string(model::kGroupApiVersion));
  workload.set_kind(std::string(model::kGroupKind));
  workload.set_namespace_(space);
  workload.set_name(name);
  workload.set_uid(leader.uid);
  workload.set_leader(leader.name);
  workload.set_completions(static_cast<int64_t>(members.size()));
  workload.set_controlled(true);
  int64_t created_ms = leader.created_ms;
  int64_t begin_ms = 0;
  for (const GroupMember* member : members) {
    keys.priority = std::max(*keys.priority, member->priority);
    keys.hold = keys.hold || member->keys.hold;
    created_ms = std::max(created_ms, member->created_ms);
    if (member->keys.begin) {
      begin_ms = std::max(begin_ms, member->keys.begin->At(member->created_ms));
    }
    workload.set_controlled(workload.controlled() && member->controlled);
    workload.add_pods(member->uid);
  }
  const Slots slots{.most = static_cast<uint32_t>(members.size())};
  JobSubmitted submitted = Assemble(keys, PodSpec(), *demand, leader.duration, slots);
  submitted.set_begin_ms(begin_ms);
  submitted.set_user(leader.user);
  submitted.set_job_id(GroupJobId(members));
  submitted.set_created_ms(created_ms);
  submitted.mutable_spec()->set_revision(1);
  *submitted.mutable_workload() = std::move(workload);
  return submitted;
}

}  // namespace fluxqueue::kubernetes
