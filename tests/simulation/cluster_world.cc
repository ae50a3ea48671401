#include "tests/simulation/cluster_world.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "services/binder/domain/plan_context.h"
#include "tests/simulation/admission_tables.h"
#include "tests/simulation/binder_tables.h"

namespace fluxqueue::simulation {
namespace {

using kubernetes::kPods;

constexpr uint64_t kTraitsSalt = 0x70d5;

bool IsComplete(const SimCluster::Object& job) {
  return TextAt(job.body, "/status/conditions/0/type") == "Complete";
}

bool IsGated(const SimCluster::Object& pod) {
  const json& spec = pod.body["spec"];
  return spec.contains("schedulingGates") && !spec["schedulingGates"].empty();
}

std::string NodeName(int number) {
  return fmt::format("n{}", number);
}

}  // namespace

ClusterWorld::ClusterWorld(const Trial& trial, std::map<std::string, Job> jobs)
    : PoolWorld(trial, std::move(jobs)),
      cluster_(scheduler()),
      users_(cluster_, counts(), traits_),
      standins_(cluster_, counts(), kCpu, traits_) {
  Chance chance(trial.seed ^ kTraitsSalt);
  const bool goes_back = std::ranges::any_of(
      trial.faults, [](const Fault& fault) { return fault.kind == Fault::Kind::kClusterBack; });
  for (const auto& [id, job] : this->jobs()) {
    JobTraits& traits = traits_[id];
    traits = {.slots = job.slots, .cpu = job.cpu, .run = job.run};
    traits.controlled = chance.OneIn(3);
    traits.suspended = !traits.controlled && chance.OneIn(2);
    traits.indexed = chance.OneIn(3);
    if (chance.OneIn(2)) traits.keep = Millis(chance.Between(1, 5'000));
    traits.bare = job.slots == 1 && chance.OneIn(2);
    traits.pinned = chance.OneIn(6);
    if (chance.OneIn(8)) traits.delete_after = Millis(chance.Between(1, 30'000));
    if (chance.OneIn(4)) traits.delete_pod_after = Millis(chance.Between(1, 20'000));
    traits.gang = job.slots > 1 && chance.OneIn(4) && !goes_back;
    if (traits.gang && chance.OneIn(3)) traits.late = Millis(chance.Between(1, 30'000));
  }
  cluster_.faults().no_versions = lacks(Without::kVersion);
  cluster_.faults().no_uids = lacks(Without::kUid);
  database().Of<BinderTables>().rows_late = lacks(Without::kRow);
  for (int node = 0; node < kNodes; ++node) standins_.AddNode(NodeName(node));
  cluster_.OnWrite([this](const std::string& plural, const Object* before, const Object* after) {
    if (plural == kPods.plural) Written(before, after);
    if (plural == kPods.plural && (after == nullptr || after->Finished())) BarePodEnded(*before);
    if (plural == kubernetes::kNodes.plural && after == nullptr) gone_[before->uid] = Now();
    if (plural == kubernetes::kJobs.plural && (after == nullptr || IsComplete(*after))) {
      JobOf((after == nullptr ? before : after)->uid).ended = true;
    }
  });
  cluster_.OnStray([this](const std::string& uid, const Object& object) {
    Fail(fmt::format("what was meant for {} is done to {}", uid, object.uid));
  });
  if (chance.OneIn(3)) standins_.AddPoison(NodeName(0), 500);
  first_changes_ = cluster_.changes().size();
}

void ClusterWorld::Submit(const std::string& id) {
  PoolWorld::Submit(id);
  const JobTraits& traits = traits_.at(id);
  users_.Make(id);
  if (traits.delete_after > Millis(0)) {
    scheduler().After(traits.delete_after, [this, &id] {
      forgotten_.insert(id);
      users_.Delete(id);
    });
  }
  if (traits.delete_pod_after > Millis(0)) {
    scheduler().After(traits.delete_pod_after, [this, &id] { users_.DeletePod(id); });
  }
}

void ClusterWorld::TakeNode(int number, bool away) {
  PoolWorld::TakeNode(number, away);
  const std::string name = NodeName(number);
  LosePods(name);
  if (away) {
    standins_.RemoveNode(name);
  } else {
    standins_.AddNode(name);
  }
}

void ClusterWorld::LosePods(const std::string& node) {
  for (const SimCluster::Stored& pod : cluster_.All(kPods)) {
    if (pod->node != node) continue;
    lost_.insert(pod->uid);
    live_.erase(pod->uid);
  }
}

// What the pods of before have done counts no more, nor what becomes of those of the backup. A Job
// that is not in it is gone.
void ClusterWorld::GoBack(size_t changes) {
  went_back_ = true;
  cluster_.GoBack(std::min(changes, cluster_.changes().size() - first_changes_));
  standins_.Forget();
  for (const SimCluster::Stored& pod : cluster_.All(kPods)) {
    lost_.insert(pod->uid);
    const auto traits = traits_.find(WorkloadOf(*pod));
    const bool pinned = traits != traits_.end() && traits->second.pinned;
    if (pinned && !IsGated(*pod)) released_.insert(pod->uid);
  }
  live_.clear();
  for (int node = 0; node < kNodes; ++node) {
    const bool known = cluster_.Find(kubernetes::kNodes, "", NodeName(node)) != nullptr;
    if (!known && !this->node(node).away) standins_.AddNode(NodeName(node));
  }
  for (const auto& [id, job] : jobs()) {
    if (!job.submitted) continue;
    if (!IsThere(id)) {
      JobOf(id).ended = true;
      forgotten_.insert(id);
    } else if (job.ended) {
      undone_.insert(id);
    }
  }
}

bool ClusterWorld::Runs(const std::string& id, uint32_t attempt) {
  return !undone_.contains(NameOf(id)) && std::ranges::any_of(live_, [&](const auto& live) {
    return live.second.id == id && live.second.slot.attempt == attempt;
  });
}

bool ClusterWorld::IsThere(const std::string& name) const {
  const kubernetes::Resource& resource = traits_.at(name).bare ? kPods : kubernetes::kJobs;
  return cluster_.Find(resource, kSpace, name) != nullptr;
}

void ClusterWorld::BarePodEnded(const Object& pod) {
  const auto traits = traits_.find(pod.uid);
  if (traits != traits_.end() && traits->second.bare) JobOf(pod.uid).ended = true;
}

bool ClusterWorld::IsOver(const std::string& id) {
  if (traits_.at(id).gang) return IsGangOver(id);
  const QueueTables::Job* row = database().Of<QueueTables>().jobs.Find(id);
  if (row == nullptr) return forgotten_.contains(id);
  // A bare pod that has lost its node is not started again.
  const bool failed = row->job.state == model::JobState::kFailed;
  return PoolWorld::IsOver(id) || (failed && traits_.at(id).bare);
}

// A Job that had ended is not run again where the backup has it as it was before.
bool ClusterWorld::Done() {
  return PoolWorld::Done() && database().Of<BinderTables>().jobs.rows().empty() &&
         (went_back_ || database().Of<AdmissionTables>().workloads.rows().empty());
}

std::string ClusterWorld::WhatIsLeft() {
  std::string text = PoolWorld::WhatIsLeft();
  for (const auto& [id, row] : database().Of<BinderTables>().jobs.rows()) {
    text += fmt::format("{} with the binder; ", id);
  }
  for (const auto& [id, row] : database().Of<AdmissionTables>().workloads.rows()) {
    text += fmt::format("{} with admission; ", id);
  }
  for (const SimCluster::Stored& pod : cluster_.All(kPods)) {
    if (pod->space != kSpace || pod->Finished()) continue;
    text += fmt::format("{} is {} on '{}'; ", pod->uid, pod->phase, pod->node);
  }
  return text;
}

ClusterWorld::Live ClusterWorld::LiveOf(const Object& pod) {
  const auto slot =
      kubernetes::ParseSlotName(TextAt(pod.body, "/metadata/annotations/fluxqueue.io~1allocation"));
  return {.id = JobIdOf(pod),
          .name = WorkloadOf(pod),
          .slot = slot.ok() ? *slot : kubernetes::SlotName(),
          .node = pod.node,
          .cpu = CpuOf(pod)};
}

void ClusterWorld::Written(const Object* before, const Object* after) {
  const std::string& uid = after == nullptr ? before->uid : after->uid;
  const bool comes = before == nullptr || before->uid != uid;
  if (tells() && (comes || after == nullptr)) {
    Say(fmt::format("{} {}", uid, comes ? "is made" : "is gone"));
  }
  if (after == nullptr || after->Finished()) {
    live_.erase(uid);
    return;
  }
  const bool was_held = before != nullptr && before->node.empty() && IsGated(*before);
  if (was_held && !IsGated(*after)) CheckStart(*after);
  if (after->node.empty()) {
    live_.erase(uid);
    return;
  }
  const Live bound = LiveOf(*after);
  if (!standins_.Works(after->node) || undone_.contains(bound.name)) lost_.insert(uid);
  if (!lost_.contains(uid)) live_[uid] = bound;
  const bool was_bound = before != nullptr && !before->node.empty();
  if (!was_bound && !bound.name.empty() && !released_.contains(uid)) PodBound(*after);
}

void ClusterWorld::Changed(const std::string& id, model::JobState state) {
  if (state == model::JobState::kAllocated) {
    allocated_[{id, database().Of<QueueTables>().jobs.Find(id)->job.attempt}] = Now();
  }
  const JobTraits& traits = traits_.at(NameOf(id));
  if (traits.gang && state == model::JobState::kFailed) users_.GiveUp(NameOf(id));
  if (went_back_) return;
  if (state == model::JobState::kCancelled && (traits.gang ? IsGangThere(id) : IsThere(id))) {
    Fail(fmt::format("{} is cancelled, and it is there", id));
  }
  // What goes wrong is never a job's own doing, and what has not begun can begin again.
  const bool may_fail = (traits.bare || traits.gang) && had_pod_.contains(id);
  if (state == model::JobState::kFailed && !may_fail) Fail(id + " has failed");
}

void ClusterWorld::StrikeCluster(const Fault& fault) {
  SimCluster::Faults& faults = cluster_.faults();
  const std::string node = NodeName(fault.node);
  switch (fault.kind) {
    case Fault::Kind::kNodeAway:
      return StrikeNode(fault);
    case Fault::Kind::kNodeSilent:
      LosePods(node);
      standins_.Silence(node, true);
      scheduler().After(fault.time, [this, node] { standins_.Silence(node, false); });
      return;
    case Fault::Kind::kClusterBack:
      return GoBack(fault.commits);
    case Fault::Kind::kClusterAway:
      faults.away_until = scheduler().now() + fault.time;
      return cluster_.CutWatches(/*expire=*/false);
    case Fault::Kind::kWatchesCut:
    case Fault::Kind::kWatchesExpire:
      return cluster_.CutWatches(fault.kind == Fault::Kind::kWatchesExpire);
    case Fault::Kind::kWatchesLag:
      faults.slowest_event = Millis(3'000);
      scheduler().After(fault.time,
                        [&faults] { faults.slowest_event = SimCluster::Faults().slowest_event; });
      return;
    case Fault::Kind::kCallsFail:
      faults.refuse_one_in = 2;
      faults.unsaid_one_in = 4;
      faults.late_one_in = 2;
      // Jobs are stopped while their pods are being bound.
      scheduler().After(fault.time / 4, [this, fault] { StrikeNode(fault); });
      scheduler().After(fault.time, [&faults] {
        faults.refuse_one_in = faults.unsaid_one_in = faults.late_one_in = 0;
      });
      return;
    default:
      return;
  }
}

}  // namespace fluxqueue::simulation
