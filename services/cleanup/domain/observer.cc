#include "services/cleanup/domain/observer.h"

#include <algorithm>
#include <limits>

#include "libs/base/text.h"
#include "libs/kubernetes/drain.h"
#include "libs/kubernetes/group.h"
#include "libs/kubernetes/node.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/requests.h"
#include "libs/kubernetes/resource_version.h"

namespace fluxqueue::cleanup {
namespace {

using events::v1::Envelope;
using events::v1::JobEnded;
using events::v1::PodEnded;

// Of a group, of whose slots all have ended.
JobEnded::Result ResultOf(const std::map<uint32_t, PodEnded::Result>& slots) {
  const auto all = [&slots](PodEnded::Result result) {
    return std::ranges::all_of(slots, [&](const auto& slot) { return slot.second == result; });
  };
  if (all(PodEnded::RESULT_SUCCEEDED)) return JobEnded::RESULT_SUCCEEDED;
  return all(PodEnded::RESULT_GONE) ? JobEnded::RESULT_DELETED : JobEnded::RESULT_FAILED;
}

}  // namespace

Observer::Phase Observer::PhaseOf(std::string_view phase) {
  if (phase == "Succeeded") return Phase::kSucceeded;
  if (phase == "Failed") return Phase::kFailed;
  return phase == "Running" ? Phase::kRuns : Phase::kWaits;
}

Observer::JobEntry& Observer::Touch(const std::string& job_id) {
  dirty_jobs_.insert(job_id);
  return jobs_[job_id];
}

std::vector<Hint> Observer::NeedsProof(const kubernetes::Pod& pod) const {
  std::vector<Hint> hints;
  if (!pod.Bound()) return hints;
  const auto known = pods_.find(pod.meta.uid);
  if (known != pods_.end() && !known->second.job_id.empty()) return hints;
  for (std::string& job_id : JobHints(pod)) hints.push_back({std::move(job_id), pod.meta.uid});
  return hints;
}

std::vector<Hint> Observer::UnprovenPods() const {
  std::vector<Hint> hints;
  for (const auto& [uid, pod] : pods_) {
    for (const std::string& job_id : pod.hints) hints.push_back({job_id, uid});
  }
  return hints;
}

bool Observer::TakeSlot(const Proof& proof, PodEntry* entry) {
  if (proof.space != entry->space || proof.node != entry->node) return false;
  entry->job_id = proof.job_id;
  entry->slot = proof.slot;
  entry->hints.clear();
  entry->identity.reset();
  return true;
}

bool Observer::Prove(const std::string& pod_uid, const Proof& proof) {
  const auto known = pods_.find(pod_uid);
  if (known == pods_.end() || !known->second.job_id.empty()) return false;
  if (!TakeSlot(proof, &known->second)) return false;
  NoteNamespace(known->second.space);
  dirty_nodes_.insert(known->second.node);
  TrackOwnPod(*known, /*message=*/"");
  return true;
}

void Observer::ObservePod(const kubernetes::Pod& pod, const std::optional<Proof>& proof) {
  const std::string& uid = pod.meta.uid;
  if (!pod.Bound()) {
    const bool is_ours = pod.spec.scheduler_name == kubernetes::kSchedulerName;
    if (is_ours) NoteNamespace(pod.meta.namespace_name);
    return;
  }
  PodEntry entry;
  if (const auto known = pods_.find(uid); known != pods_.end()) {
    entry = known->second;
  } else {
    entry.space = pod.meta.namespace_name;
    entry.node = pod.spec.node_name;
    entry.requests = kubernetes::EffectiveRequests(pod.spec);
    requests_.Share(&entry.requests);
    // hint: of which job it is, the row of its slot says.
    entry.of_group =
        kubernetes::ParseGroup(pod.meta.Annotation(kubernetes::kGroupAnnotation)).has_value();
    if (entry.of_group && kubernetes::IsOfAJob(pod)) {
      entry.controller_job = pod.meta.Controller()->uid;
    }
  }
  entry.phase = PhaseOf(pod.status.phase);
  entry.started_ms = pod.status.started_ms;
  entry.deleting = pod.meta.deleted_ms != 0;
  if (entry.job_id.empty() && !(proof.has_value() && TakeSlot(*proof, &entry))) {
    entry.hints = JobHints(pod);
    const bool its_own_job = entry.hints == std::vector<std::string>{uid};
    if (entry.Ended() && its_own_job) entry.job_id = uid;
  }
  if (!entry.job_id.empty()) {
    NoteNamespace(entry.space);
  } else if (entry.identity == nullptr && entry.hints.empty()) {
    if (auto identity = IdentityOf(pod)) entry.identity = identities_(*std::move(identity));
  }
  if (entry.job_id.empty() && entry.Ended()) {  // a foreigner that uses nothing any more
    DropPod(uid, /*gone=*/false);
    return;
  }
  const Pod& kept = *pods_.insert_or_assign(uid, std::move(entry)).first;
  nodes_[kept.second.node].pods.insert(&kept);
  dirty_nodes_.insert(kept.second.node);
  if (kept.second.job_id.empty()) return;
  TrackOwnPod(kept, pod.status.message.empty() ? pod.status.reason : pod.status.message);
}

void Observer::LeaveOut(const kubernetes::Pod& pod) {
  if (!pod.Bound() || pods_.contains(pod.meta.uid)) return;
  PodEntry entry;
  entry.space = pod.meta.namespace_name;
  entry.node = pod.spec.node_name;
  entry.phase = PhaseOf(pod.status.phase);
  if (entry.Ended()) return;
  entry.requests = kubernetes::EffectiveRequests(pod.spec);
  requests_.Share(&entry.requests);
  const Pod& kept = *pods_.emplace(pod.meta.uid, std::move(entry)).first;
  nodes_[kept.second.node].pods.insert(&kept);
  dirty_nodes_.insert(kept.second.node);
}

void Observer::LeaveOut(const kubernetes::Job& job) {
  JobEntry& entry = Touch(job.meta.uid);
  entry.seen = true;
  if (std::exchange(entry.present, true)) return;
  // It may make pods in the place of those that end: they give nothing back early.
  entry.completions = std::numeric_limits<int64_t>::max();
}

void Observer::TrackOwnPod(const Pod& pod, const std::string& message) {
  const auto& [uid, entry] = pod;
  JobEntry& job = Touch(entry.job_id);
  job.had_pods = true;
  job.pods.insert(&pod);
  if (entry.Ended()) {
    job.unfinished.erase(&pod);
    job.unchecked.erase(&pod);
  } else {
    job.unfinished.insert(&pod);
    job.unchecked.insert(&pod);
  }
  if (entry.slot.attempt > job.attempt) {
    job.attempt = entry.slot.attempt;
    job.started_ms = 0;
    if (job.ends) job.ends->slots_ended.clear();
  }
  const bool runs = entry.phase == Phase::kRuns || entry.Ended();
  if (runs && entry.slot.attempt == job.attempt && job.started_ms == 0) {
    job.started_ms = std::max<int64_t>(entry.started_ms, 1);
  }
  if (entry.job_id == uid) {  // a bare pod is its own workload
    job.present = job.seen = true;
    job.is_pod = true;
    if (entry.Ended()) {
      const bool succeeded = entry.phase == Phase::kSucceeded;
      job.result = succeeded ? JobEnded::RESULT_SUCCEEDED : JobEnded::RESULT_FAILED;
      job.EditEnds().message = Cut(message, kMostMessageBytes);
    }
  }
  const bool of_its_job = entry.controller_job && entry.job_id == *entry.controller_job;
  if (entry.of_group && entry.job_id != uid && !of_its_job) {
    job.is_group = true;
    job.slots = entry.slot.slots;
  }
  if (!entry.Ended()) return;
  const PodEnded::Result result =
      entry.phase == Phase::kSucceeded ? PodEnded::RESULT_SUCCEEDED : PodEnded::RESULT_FAILED;
  NotePodEnded(job, uid, entry, result);
  NoteSlotEnded(job, entry, result, message);
}

// Only what can give its slot back before the rest: see queue_core's GivesSlotsBackEarly. Of
// elastic jobs all, as these are counted: they take no more slots than they have completions left.
void Observer::NotePodEnded(JobEntry& job,
                            const std::string& uid,
                            const PodEntry& pod,
                            PodEnded::Result result) {
  const bool gives_back = pod.slot.slots >= 2 && job.completions <= pod.slot.slots;
  if (job.is_pod || !(gives_back || job.elastic)) return;
  Ends& ends = job.EditEnds();
  if (!ends.pods_ended.insert(uid).second) return;
  PodEnded ended;
  ended.set_job_id(pod.job_id);
  ended.set_attempt(pod.slot.attempt);
  ended.set_part(pod.slot.part);
  ended.set_slot(pod.slot.slot);
  ended.set_pod_uid(uid);
  ended.set_result(result);
  ended.set_node(pod.node);
  ends.ended.push_back(std::move(ended));
}

void Observer::NoteSlotEnded(JobEntry& job,
                             const PodEntry& pod,
                             PodEnded::Result result,
                             const std::string& message) {
  if (!job.is_group || pod.slot.attempt != job.attempt) return;
  Ends& ends = job.EditEnds();
  const bool first_failure = result == PodEnded::RESULT_FAILED && ends.message.empty();
  if (first_failure) ends.message = Cut(message, kMostMessageBytes);
  ends.slots_ended.try_emplace(pod.slot.slot, result);
}

void Observer::PodGone(const std::string& uid) {
  DropPod(uid, /*gone=*/true);
}

void Observer::DropPod(const std::string& uid, bool gone) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  const PodEntry& pod = it->second;
  if (const auto node = nodes_.find(pod.node); node != nodes_.end()) {
    node->second.pods.erase(&*it);
    dirty_nodes_.insert(pod.node);
  }
  if (!pod.job_id.empty()) {
    JobEntry& job = Touch(pod.job_id);
    job.pods.erase(&*it);
    job.unfinished.erase(&*it);
    job.unchecked.erase(&*it);
    if (!pod.Ended()) {
      NotePodEnded(job, uid, pod, PodEnded::RESULT_GONE);
      NoteSlotEnded(job, pod, PodEnded::RESULT_GONE, "");
    }
    if (gone && pod.job_id == uid) job.present = false;
  }
  pods_.erase(it);
}

void Observer::ObserveJob(const kubernetes::Job& job) {
  NoteNamespace(job.meta.namespace_name);
  JobEntry& entry = Touch(job.meta.uid);
  entry.present = entry.seen = true;
  entry.completions = job.completions.value_or(job.Slots());
  entry.elastic = kubernetes::MayBeElastic(job);
  if (!job.Ended()) return;
  entry.result = job.complete ? JobEnded::RESULT_SUCCEEDED : JobEnded::RESULT_FAILED;
  const std::string& message = job.message.empty() ? job.reason : job.message;
  entry.EditEnds().message = job.complete ? "" : Cut(message, kMostMessageBytes);
}

void Observer::JobGone(const std::string& uid) {
  const auto it = jobs_.find(uid);
  if (it == jobs_.end()) return;
  it->second.present = false;
  dirty_jobs_.insert(uid);
}

void Observer::ObserveNode(const kubernetes::Node& node, Millis now) {
  NodeEntry& entry = nodes_[node.meta.name];
  dirty_nodes_.insert(node.meta.name);
  if (entry.uid != node.meta.uid) {
    entry.not_ready_since.reset();
    entry.lost = false;
  }
  entry.present = true;
  entry.uid = node.meta.uid;
  entry.pool = kubernetes::PoolOf(node);
  entry.view = node;
  // hint: only administrators write to nodes.
  entry.drained = node.meta.Annotation(kubernetes::kDrainAnnotation) == kubernetes::kDrainRequeue;
  entry.view.meta.annotations.clear();
  if (entry.drained) MarkJobsOf(entry);
  if (node.ready) {
    entry.not_ready_since.reset();
    entry.lost = false;
    missing_.erase(node.meta.name);
    return;
  }
  if (!entry.not_ready_since.has_value()) entry.not_ready_since = now;
  if (!entry.lost) missing_.insert(node.meta.name);
}

void Observer::NodeGone(const std::string& name, const std::string& uid) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end() || (it->second.present && it->second.uid != uid)) return;
  it->second.present = false;
  missing_.erase(name);
  dirty_nodes_.insert(name);
  MarkJobsOf(it->second);
}

void Observer::Synced() {
  if (std::exchange(synced_, true)) return;
  // Those that had ended were counted already, or are not: once too often would keep their job from
  // growing.
  for (auto& [job_id, job] : jobs_) {
    if (job.elastic && job.ends) job.ends->ended.clear();
  }
  for (const auto& [name, node] : nodes_) {
    if (node.present) pools_.try_emplace(node.pool, false);
  }
}

void Observer::Remember(const std::string& pool, const events::v1::Node& node) {
  NodeEntry& entry = nodes_[node.name()];
  entry.said = NodeSaid{.uid = node.uid(), .inventory = kubernetes::InventoryOf(node)};
  entry.said_pool = pool;
  entry.newest = kubernetes::VersionNumber(node.resource_version()).value_or(0);
  dirty_nodes_.insert(node.name());
}

void Observer::RememberStarted(const std::string& job_id, uint32_t attempt) {
  JobSaid& said = jobs_[job_id].said;
  said.started_attempt = std::max(said.started_attempt, attempt);
}

void Observer::ConfirmGone(const std::string& job_id) {
  JobEntry& job = Touch(job_id);
  if (job.present || !(job.is_group ? job.unfinished : job.pods).empty()) return;
  job.confirmed_gone = true;
}

bool Observer::Disown(const std::string& pod_uid) {
  const auto it = pods_.find(pod_uid);
  if (it == pods_.end() || it->second.job_id.empty() || it->second.disowned) return false;
  it->second.disowned = true;
  dirty_nodes_.insert(it->second.node);
  return true;
}

bool Observer::Shows(std::string_view job_id) const {
  const auto it = jobs_.find(std::string(job_id));
  if (it != jobs_.end()) {
    const JobEntry& job = it->second;
    if (job.present || !(job.is_group ? job.unfinished : job.pods).empty()) return true;
  }
  return std::ranges::any_of(pods_, [job_id](const auto& pod) {
    return pod.second.of_group &&
           std::ranges::find(pod.second.hints, job_id) != pod.second.hints.end();
  });
}

bool Observer::HasNews() const {
  return synced_ && (!dirty_jobs_.empty() || !dirty_nodes_.empty() ||
                     std::ranges::any_of(pools_, [](const auto& pool) { return !pool.second; }));
}

std::optional<Millis> Observer::NextDeadline() const {
  std::optional<Millis> first;
  for (const std::string& name : missing_) {
    const Millis due = *nodes_.at(name).not_ready_since + node_lost_grace_;
    if (!first.has_value() || due < *first) first = due;
  }
  return first;
}

bool Observer::CountsAsForeign(const PodEntry& pod) const {
  if (pod.Ended()) return false;
  if (pod.job_id.empty() || pod.disowned) return true;
  const auto node = nodes_.find(pod.node);
  return pod.deleting && node != nodes_.end() && node->second.lost;
}

void Observer::NoteNamespace(const std::string& space) {
  if (!job_spaces_.insert(space).second) return;
  for (const auto& [uid, pod] : pods_) {
    if (pod.identity != nullptr && pod.space == space) dirty_nodes_.insert(pod.node);
  }
}

ForeignPods Observer::ForeignOf(const NodeEntry& node) const {
  ForeignPods foreign(node.view);
  for (const Pod* pod : node.pods) {
    const PodEntry& entry = pod->second;
    if (!CountsAsForeign(entry)) continue;
    foreign.Add(*entry.requests,
                job_spaces_.contains(entry.space) ? entry.identity.get() : nullptr);
  }
  return foreign;
}

bool Observer::HasLivePods(const NodeEntry& node) const {
  return std::ranges::any_of(node.pods, [](const Pod* pod) {
    return !pod->second.job_id.empty() && !pod->second.Ended();
  });
}

void Observer::MarkJobsOf(const NodeEntry& node) {
  for (const Pod* pod : node.pods) {
    if (pod->second.job_id.empty()) continue;
    JobEntry& job = Touch(pod->second.job_id);
    if (!pod->second.Ended()) job.unchecked.insert(pod);
  }
}

void Observer::CheckLost(Millis now) {
  for (auto it = missing_.begin(); it != missing_.end();) {
    NodeEntry& node = nodes_.at(*it);
    if (now < *node.not_ready_since + node_lost_grace_) {
      ++it;
      continue;
    }
    node.lost = true;
    dirty_nodes_.insert(*it);
    MarkJobsOf(node);
    it = missing_.erase(it);
  }
}

Said Observer::Collect(Millis now) {
  Said said;
  if (!synced_) return said;
  CheckLost(now);
  provisional_.emplace();
  for (const std::string& name : dirty_nodes_) CollectNode(name, nodes_[name], &said);
  for (auto& [pool, said_synced] : pools_) {
    if (std::exchange(said_synced, true)) continue;
    provisional_->pools.push_back(pool);
    Envelope synced;
    synced.set_pool(pool);
    synced.mutable_inventory_synced()->set_nodes(
        static_cast<uint32_t>(std::ranges::count_if(nodes_, [&](const auto& node) {
          return node.second.present && node.second.pool == pool;
        })));
    said.nodes.push_back(std::move(synced));
  }
  for (const std::string& job_id : dirty_jobs_) CollectJob(job_id, jobs_[job_id], &said);
  dirty_nodes_.clear();
  dirty_jobs_.clear();
  return said;
}

void Observer::CollectNode(const std::string& name, NodeEntry& node, Said* said) {
  provisional_->nodes.push_back({name, {node.said, node.said_pool}});
  const bool moved = node.said.has_value() && node.said_pool != node.pool;
  const bool remade = node.said.has_value() && node.said->uid != node.uid;
  if (node.said.has_value() && (!node.present || moved || remade)) {
    Envelope gone;
    gone.set_pool(node.said_pool);
    gone.mutable_node_gone()->set_name(name);
    gone.mutable_node_gone()->set_uid(node.said->uid);
    said->nodes.push_back(std::move(gone));
    node.said.reset();
  }
  if (!node.present) return;
  // It enters another pool once nothing of the first runs on it any more.
  if (!node.said.has_value() && !node.said_pool.empty() && node.said_pool != node.pool &&
      HasLivePods(node)) {
    return;
  }
  const ForeignPods foreign = ForeignOf(node);
  events::v1::Node event = kubernetes::ToEvent(node.view, foreign.used());
  foreign.WriteIdentities(&event);
  std::string inventory = kubernetes::InventoryOf(event);
  if (node.said.has_value() && node.said->inventory == inventory) return;
  // The store has gone back (kubernetes/watch.h): without a version nobody takes what it shows now
  // for old news.
  const auto version = kubernetes::VersionNumber(event.resource_version());
  if (version.has_value() && *version < node.newest) event.clear_resource_version();
  node.newest = std::max(node.newest, version.value_or(0));
  Envelope upserted;
  upserted.set_pool(node.pool);
  *upserted.mutable_node_upserted()->mutable_node() = std::move(event);
  said->nodes.push_back(std::move(upserted));
  node.said = NodeSaid{.uid = node.uid, .inventory = std::move(inventory)};
  node.said_pool = node.pool;
  pools_.try_emplace(node.pool, false);
}

void Observer::CollectJob(const std::string& job_id, JobEntry& job, Said* said) {
  Provisional::OfJob& before = provisional_->jobs.emplace_back();
  before.job_id = job_id;
  before.before = job.said;
  if (job.started_ms != 0 && job.said.started_attempt < job.attempt) {
    Envelope started;
    started.mutable_job_started()->set_job_id(job_id);
    started.mutable_job_started()->set_attempt(job.attempt);
    started.mutable_job_started()->set_started_ms(job.started_ms);
    said->jobs.emplace_back(job_id, std::move(started));
    job.said.started_attempt = job.attempt;
  }
  CollectLostNode(job_id, job, &before, said);
  const std::optional<JobEnded> end = EndOf(job_id, job);
  if (!end.has_value()) {
    if (!job.ends) return;
    for (const PodEnded& pod : job.ends->ended) {
      Envelope ended;
      *ended.mutable_pod_ended() = pod;
      said->jobs.emplace_back(job_id, std::move(ended));
    }
    return;
  }
  Envelope ended;
  *ended.mutable_job_ended() = *end;
  said->jobs.emplace_back(job_id, std::move(ended));
  job.said.ended = true;
}

void Observer::CollectLostNode(const std::string& job_id,
                               JobEntry& job,
                               Provisional::OfJob* before,
                               Said* said) {
  for (const Pod* unchecked : std::exchange(job.unchecked, {})) {
    before->checked.push_back(unchecked->first);
    const PodEntry& pod = unchecked->second;
    const NodeEntry& node = nodes_.at(pod.node);
    if (node.present && !node.lost && !node.drained) continue;
    const auto [lost_now, is_news] = job.EditEnds().nodes_lost.emplace(pod.node, pod.slot.attempt);
    if (!is_news) continue;
    before->nodes_lost.push_back(*lost_now);
    Envelope lost;
    lost.mutable_job_node_lost()->set_job_id(job_id);
    lost.mutable_job_node_lost()->set_attempt(pod.slot.attempt);
    lost.mutable_job_node_lost()->set_node(pod.node);
    lost.mutable_job_node_lost()->set_reason(!node.present ? "Deleted"
                                             : node.lost   ? "NotReady"
                                                           : "Drained");
    said->jobs.emplace_back(job_id, std::move(lost));
  }
}

// A workload that never had a pod of ours and is deleted is admission's to withdraw. One that was
// not seen yet, as its watch is behind that of the pods, is not deleted: the sweep says so of those
// that never will be.
std::optional<JobEnded> Observer::EndOf(const std::string& job_id, const JobEntry& job) const {
  if (job.said.ended || !job.unfinished.empty()) return std::nullopt;
  JobEnded end;
  end.set_job_id(job_id);
  if (job.ends) end.set_message(job.ends->message);
  if (job.is_group && !job.confirmed_gone) {
    if (!job.ends || job.ends->slots_ended.size() < job.slots) return std::nullopt;
    end.set_result(ResultOf(job.ends->slots_ended));
    if (end.result() == JobEnded::RESULT_FAILED && end.message().empty()) {
      end.set_message("a pod of the group was deleted before it had ended");
    }
  } else if (job.result.has_value()) {
    end.set_result(*job.result);
  } else if (!job.present && ((job.seen && job.had_pods) || job.confirmed_gone)) {
    end.set_result(JobEnded::RESULT_DELETED);
    end.set_message("its workload was deleted");
  } else {
    return std::nullopt;
  }
  return end;
}

void Observer::Commit() {
  if (!provisional_.has_value()) return;
  for (const Provisional::OfJob& said : provisional_->jobs) {
    if (JobEntry& job = jobs_.at(said.job_id); job.ends) job.ends->ended.clear();
    ForgetEnded(said.job_id);
  }
  for (const auto& [name, before] : provisional_->nodes) {
    const auto it = nodes_.find(name);
    if (!it->second.present && !it->second.said.has_value() && it->second.pods.empty()) {
      nodes_.erase(it);
    }
  }
  provisional_.reset();
}

// Nothing more can come of a job whose end was said and whose objects are gone.
void Observer::ForgetEnded(const std::string& job_id) {
  const auto it = jobs_.find(job_id);
  const JobEntry& job = it->second;
  const bool over = job.said.ended || (!job.had_pods && !job.result.has_value());
  if (over && !job.present && job.pods.empty()) jobs_.erase(it);
}

void Observer::Rollback() {
  if (!provisional_.has_value()) return;
  for (const Provisional::OfJob& said : provisional_->jobs) {
    // Pods whose end is noted stay noted: `ended` still has them.
    JobEntry& job = jobs_.at(said.job_id);
    job.said = said.before;
    for (const NodeOfAttempt& lost : said.nodes_lost) job.EditEnds().nodes_lost.erase(lost);
    for (const std::string& uid : said.checked) {
      const auto pod = pods_.find(uid);
      if (pod != pods_.end() && job.unfinished.contains(&*pod)) job.unchecked.insert(&*pod);
    }
    dirty_jobs_.insert(said.job_id);
  }
  for (auto& [name, before] : provisional_->nodes) {
    nodes_.at(name).said = std::move(before.first);
    nodes_.at(name).said_pool = std::move(before.second);
    dirty_nodes_.insert(name);
  }
  for (const std::string& pool : provisional_->pools) pools_[pool] = false;
  provisional_.reset();
}

}  // namespace fluxqueue::cleanup
