#include "services/admission/domain/tracker.h"

#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/submission.h"
#include "services/admission/domain/queue_rules.h"
#include "services/admission/domain/workload_messages.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

using events::v1::Envelope;
using events::v1::JobSubmitted;
using events::v1::JobUpdated;

size_t Index(WorkloadKind kind) {
  return kind == WorkloadKind::kJob ? 0 : 1;  // groups are seen by their pods
}

Envelope UpdateOf(const WorkloadRow& row, JobUpdated update) {
  Envelope envelope = ForPool(row.pool);
  update.set_job_id(row.uid);
  *envelope.mutable_job_updated() = std::move(update);
  return envelope;
}

WorkloadRow RowOf(const Sketch& sketch,
                  const JobSubmitted& submission,
                  const kubernetes::PodDemand& demand,
                  const kubernetes::Topology& topology,
                  const std::string& pool) {
  WorkloadRow row;
  row.uid = sketch.uid;
  row.kind = sketch.kind;
  row.space = sketch.space;
  row.name = sketch.name;
  row.pool = pool;
  row.queue = submission.queue();
  row.resource_version = sketch.resource_version;
  row.revision = submission.spec().revision();
  row.slots = submission.spec().slots();
  row.min_slots = submission.spec().min_slots();
  row.priority = submission.priority();
  row.hold = submission.hold();
  row.duration_ms = DurationOf(submission);
  row.begin_ms = submission.begin_ms();
  row.requests = demand.requests;
  row.topology = topology;
  row.demand_hash = DemandHash(demand, submission.spec(), topology);
  row.jobspec_bytes = static_cast<int64_t>(submission.spec().jobspec().size());
  return row;
}

// What runs can go on.
bool DiffersInSlotsOnly(events::v1::PartSpec spec,
                        const kubernetes::PodDemand& demand,
                        const kubernetes::Topology& topology,
                        const WorkloadRow& row) {
  const bool rigid = row.min_slots == 0 && spec.min_slots() == 0;
  if (row.kind != WorkloadKind::kJob || !rigid) return false;
  spec.set_slots(row.slots);
  return DemandHash(demand, spec, topology) == row.demand_hash;
}

// Moves the row to what the user's keys say now; what changed goes into `update`. True: something
// did.
bool UpdateKeys(const JobSubmitted& now,
                bool cancel,
                int64_t default_duration_ms,
                WorkloadRow* row,
                JobUpdated* update) {
  const WorkloadRow before = *row;
  row->hold = now.hold();
  if (row->hold != before.hold) update->set_hold(row->hold);
  row->priority = now.priority();
  if (row->priority != before.priority) update->set_priority(row->priority);
  row->queue = now.queue();
  if (row->queue != before.queue) update->set_queue(row->queue);
  row->duration_ms = DurationOf(now);
  if (row->duration_ms != before.duration_ms) {
    update->set_duration_ms(row->duration_ms.value_or(default_duration_ms));
  }
  row->begin_ms = now.begin_ms();
  if (row->begin_ms != before.begin_ms) update->set_begin_ms(row->begin_ms);
  // Once is enough, and it cannot be taken back.
  if (cancel && !row->cancelled) update->set_cancel(true);
  row->cancelled = row->cancelled || cancel;
  return *row != before;
}

}  // namespace

void Tracker::Restore(std::vector<WorkloadRow> rows) {
  entries_.Clear();
  groups_.Clear();
  usage_.Clear();
  crowded_.clear();
  submitted_ = 0;
  refused_ = 0;
  for (WorkloadRow& row : rows) {
    Entry entry;
    entry.kind = row.kind;
    entry.space = row.space;
    entry.name = row.name;
    const std::string uid = row.uid;
    for (const std::string& pod : row.pods) {
      Entry member;
      member.kind = WorkloadKind::kPod;
      member.space = row.space;
      member.gang = uid;
      entry.pods.insert(pod);
      entries_.Restore(pod, std::move(member));
    }
    entry.row = std::move(row);
    requests_.Share(&entry.row->requests);
    Count(entry, /*added=*/true);
    Recount(std::nullopt, entry.row);
    entries_.Restore(uid, std::move(entry));
  }
  usage_.Commit();
}

void Tracker::Observe(const Observation& seen, const ClusterFacts& facts, TrackerOutputs* out) {
  const Sketch& sketch = seen.sketch;
  if (sketch.in_place) return;
  Entry* const known = entries_.EditInPassing(sketch.uid);
  if (seen.look != 0 && (known == nullptr || seen.look <= known->told)) return;
  if (sketch.kind == WorkloadKind::kJob && !sketch.group.empty()) {
    // An older version, which may run beside this one, does not know such Jobs.
    if (known != nullptr && known->row) Gone(sketch.uid, out);
    ObserveGroupJob(seen, out);
    return;
  }
  const std::string group = GroupOf(sketch, known);
  // A pod that was submitted stays a job of its own, whatever becomes of its owner references.
  const bool waits_for_job = !sketch.controller_job.empty() && group.empty() && !sketch.ended;
  if (waits_for_job && (known == nullptr || (!sketch.group.empty() && sketch.held))) {
    if (known == nullptr) ObserveJobPod(seen, out);
    if (!sketch.group.empty() && sketch.held) AwaitJob(sketch);
    return;
  }
  const bool by_itself = known != nullptr && (known->row || known->alone);
  // What is of a group, or of a gang, stays so, whatever becomes of its owner references.
  const bool grouped = !group.empty() || (known != nullptr && !known->gang.empty());
  if (grouped && !by_itself) {
    ObserveMember(seen, group, facts, out);
    return;
  }
  if (by_itself && !known->alone && !group.empty()) StandsAlone(sketch.uid, group);
  if (!sketch.held) {
    Gone(sketch.uid, out);
    return;
  }
  if (sketch.ended) {
    // Cleanup sees the ends of Jobs and of bound pods, and of nothing else.
    const bool unseen = sketch.kind == WorkloadKind::kPod && !sketch.bound;
    if (unseen && known != nullptr && known->row) {
      Withdraw(sketch.uid, "the pod has ended before it was bound to a node", out);
    }
    Forget(sketch.uid, out);
    return;
  }
  if (known != nullptr) {
    known->list = lists_[Index(sketch.kind)];
    if (seen.look == 0) known->told = last_look_;
    if (known->digest == sketch.digest) return;
    if (known->row) {
      Update(sketch, ReadWish(seen, group, facts), facts, out);
      return;
    }
  }
  if (sketch.going || sketch.bound || kubernetes::IsSystemNamespace(sketch.space)) return;
  Submit(sketch, ReadWish(seen, group, facts), facts, out);
}

absl::StatusOr<Tracker::Wish> Tracker::ReadWish(const Observation& seen,
                                                const ClusterFacts& facts) {
  Wish wish;
  const kubernetes::Namespace* known = facts.FindNamespace(seen.sketch.space);
  const kubernetes::Namespace space =
      known != nullptr ? *known : kubernetes::Namespace{seen.sketch.space, {}};
  if (seen.sketch.kind == WorkloadKind::kJob) {
    ASSIGN_OR_RETURN(const kubernetes::Job job, kubernetes::ParseJob(seen.object));
    ASSIGN_OR_RETURN(wish.submission,
                     kubernetes::SubmissionOf(job,
                                              facts.ContextOf(seen.sketch.space),
                                              /*revision=*/1,
                                              &wish.demand));
    ASSIGN_OR_RETURN(const kubernetes::UserKeys keys, kubernetes::ParseUserKeys(job));
    wish.cancel = keys.cancel;
    wish.retry = keys.retry;
    wish.qos = keys.qos;
    // hint: the policies let nobody but the webhook write it.
    wish.admitted_to = job.meta.Annotation(kubernetes::kAdmittedToAnnotation);
    wish.topology = keys.topology.value_or(kubernetes::Topology());
    const bool users_suspend = job.suspend && !kubernetes::IsSuspendedByUs(job);
    wish.ready = kubernetes::CarriedHold(job.pod).has_value() && !users_suspend;
    wish.respecify = job.suspend && job.started_ms == 0;
    // hint: a user's own word, which only takes his object out of the queue.
    wish.declined = kubernetes::Declined(job, space);
    return wish;
  }
  ASSIGN_OR_RETURN(const kubernetes::Pod pod, kubernetes::ParsePod(seen.object));
  ASSIGN_OR_RETURN(wish.submission, kubernetes::SubmissionOf(pod, /*revision=*/1, &wish.demand));
  ASSIGN_OR_RETURN(const kubernetes::UserKeys keys,
                   // hint: a user's wishes.
                   kubernetes::ParseUserKeys(pod.meta.labels, pod.meta.annotations));
  wish.cancel = keys.cancel;
  wish.retry = keys.retry;
  wish.qos = keys.qos;
  wish.admitted_to = pod.meta.Annotation(kubernetes::kAdmittedToAnnotation);  // hint: as above
  wish.topology = keys.topology.value_or(kubernetes::Topology());
  wish.ready =
      kubernetes::CarriedHold(pod.spec).has_value() && kubernetes::ForeignGate(pod.spec) == nullptr;
  // A pinned pod that the binder has let go carries the affinity to its node: our answer, no new
  // question.
  wish.respecify = !pod.Bound() && kubernetes::CarriedHold(pod.spec).has_value();
  wish.declined = kubernetes::Declined(pod.meta.labels, {}, space);  // hint: as above
  wish.nobodys = wish.submission.user().empty();
  return wish;
}

std::optional<std::string> Tracker::Problem(const Wish& wish,
                                            const WorkloadRow* row,
                                            const ClusterFacts& facts) {
  if (auto problem = JobspecProblem(wish.submission.spec(), max_jobspec_bytes_)) return problem;
  // One that is in the queue stays there: its pods wait for no other scheduler.
  if (row == nullptr && wish.declined) {
    return fmt::format("it carries the label {}, and is not taken in: {}",
                       kubernetes::kHeldLabel,
                       wish.declined->message);
  }
  // The pods of a Job are its maker's, and say of nobody. Each would be a job that counts for none.
  if (row == nullptr && wish.nobodys) {
    return "nothing says who made it: its Job has let it go (kubectl delete --cascade=orphan), or "
           "it came past the webhook; it stays held: delete it, and make what it is for again";
  }
  const std::string& queue = wish.submission.queue();
  const kubernetes::FluxQueue* found = facts.FindQueue(queue);
  // A job that is in a queue stays there when the FluxQueue goes.
  if (row == nullptr || row->queue != queue) {
    const std::string* pool = catalog_.PoolOf(queue);
    if (pool == nullptr || found == nullptr) return NoSuchQueue(queue, facts.queues());
    if (row != nullptr && *pool != row->pool) {
      return fmt::format(
          "{}: '{}' is in pool '{}', and a job stays in the pool '{}' it was "
          "submitted to; delete it and make it again to move it",
          kubernetes::kQueueKey,
          queue,
          *pool,
          row->pool);
    }
  }
  if (found == nullptr) return std::nullopt;
  const std::string& space = wish.submission.workload().namespace_();
  const kubernetes::Namespace* known = facts.FindNamespace(space);
  const kubernetes::Namespace unknown{.name = space, .labels = {}};
  Asked asked{.submission = wish.submission,
              .space = known == nullptr ? unknown : *known,
              .user = wish.submission.user(),
              .qos = wish.qos,
              .admitted_to = wish.admitted_to};
  if (row != nullptr) {
    asked.counted = {.jobs = 1, .jobspec_bytes = row->jobspec_bytes};
    asked.counted_in = row->queue;
    if (row->queue == queue) asked.priority_before = row->priority;
  }
  if (auto problem = JobProblem(asked, *found, facts.queues())) return problem;
  auto problem = QuotaProblem(asked, *found, facts.queues(), usage_.map());
  if (problem && row == nullptr) crowded_[space].insert(wish.submission.job_id());
  return problem;
}

bool Tracker::Submit(const Sketch& sketch,
                     absl::StatusOr<Wish> wish,
                     const ClusterFacts& facts,
                     TrackerOutputs* out) {
  if (!wish.ok()) {
    Refuse(sketch, Message(wish.status()), out);
    return false;
  }
  if (!wish->ready) return false;
  if (auto problem = Problem(*wish, nullptr, facts)) {
    Refuse(sketch, *problem, out);
    return false;
  }
  Entry& entry = EditSeen(sketch);
  entry.refusal.clear();
  entry.row = RowOf(sketch,
                    wish->submission,
                    wish->demand,
                    wish->topology,
                    *catalog_.PoolOf(wish->submission.queue()));
  entry.row->asked = HashOf(*wish);
  Recount(std::nullopt, entry.row);
  Envelope envelope = ForPool(entry.row->pool);
  *envelope.mutable_job_submitted() = std::move(wish->submission);
  out->messages.push_back(std::move(envelope));
  if (wish->cancel) {
    entry.row->cancelled = true;
    JobUpdated update;
    update.set_cancel(true);
    out->messages.push_back(UpdateOf(*entry.row, std::move(update)));
  }
  if (const Boxed<Early> early = std::exchange(entry.early, {})) {
    const auto asked = early->demands.find(entry.space);
    if (asked != early->demands.end()) Enlarge(&*entry.row, asked->second, out);
  }
  return true;
}

void Tracker::Update(const Sketch& sketch,
                     absl::StatusOr<Wish> wish,
                     const ClusterFacts& facts,
                     TrackerOutputs* out) {
  // Known of now, whatever comes of it: later the job may have started.
  const bool waits = std::exchange(entries_.Edit(sketch.uid).waits, false);
  if (!wish.ok()) {
    Refuse(sketch, Message(wish.status()), out);
    return;
  }
  Entry& entry = entries_.Edit(sketch.uid);
  if (auto problem = Problem(*wish, &*entry.row, facts)) {
    Refuse(sketch, *problem, out);
    return;
  }
  entry.digest = sketch.digest;
  entry.refusal.clear();
  const std::optional<WorkloadRow> before = entry.row;
  WorkloadRow& row = *entry.row;
  const kubernetes::FluxQueue* queue = facts.FindQueue(wish->submission.queue());
  JobUpdated update;
  const int64_t default_duration = queue == nullptr ? 0 : queue->default_duration_ms.value_or(0);
  bool changed = UpdateKeys(wish->submission, wish->cancel, default_duration, &row, &update);
  const events::v1::PartSpec& spec = wish->submission.spec();
  const uint64_t hash = DemandHash(wish->demand, spec, wish->topology);
  const bool resized = hash != row.demand_hash;
  const bool follow = resized && (wish->respecify || entry.rejected || waits);
  const bool goes_on =
      resized && !follow && DiffersInSlotsOnly(spec, wish->demand, wish->topology, row);
  entry.resized = resized && !follow && !goes_on && entry.kind == WorkloadKind::kJob;
  if (follow || goes_on) {
    // Its pods may have asked for more than it does.
    kubernetes::PodDemand demand = wish->demand;
    if (waits || goes_on) kubernetes::RaiseTo(demand.requests, *row.requests);
    row.demand_hash = hash;
    row.topology = wish->topology;
    row.slots = spec.slots();
    row.min_slots = spec.min_slots();
    *(goes_on ? update.mutable_resized() : update.mutable_spec()) = NextSpec(demand, &row);
    if (goes_on) update.set_completions(wish->submission.workload().completions());
    changed = true;
  }
  if (changed) {
    row.resource_version = sketch.resource_version;
    out->messages.push_back(UpdateOf(row, std::move(update)));
  }
  Ask(sketch.uid, *wish, &entry, out);
  if (entry.rejected) HandInAgain(*std::move(wish), &entry, out);
  Recount(before, entry.row);
}

void Tracker::ObserveJobPod(const Observation& seen, TrackerOutputs* out) {
  const Sketch& sketch = seen.sketch;
  if (!sketch.held || sketch.ended || sketch.going || sketch.bound) return;
  const Entry* known = entries_.Find(sketch.controller_job);
  if (known != nullptr && known->row && known->space != sketch.space) return;
  if (known != nullptr && !known->row && !known->refusal.empty()) return;
  const absl::StatusOr<kubernetes::Pod> pod = kubernetes::ParsePod(seen.object);
  if (!pod.ok()) return;
  // hint: rules between pods go by labels, and only within the namespace.
  absl::StatusOr<kubernetes::PodDemand> demand =
      kubernetes::DemandOfPod(pod->spec, pod->meta.namespace_name, pod->meta.labels);
  if (!demand.ok()) return;
  const bool submitted = known != nullptr && known->row;
  if (submitted && !kubernetes::Excess(demand->requests, *known->row->requests)) return;
  if (submitted) {
    Enlarge(&*entries_.Edit(sketch.controller_job).row, *demand, out);
    return;
  }
  const auto [early, first] = EditUnseenJob(sketch).demands.try_emplace(sketch.space, *demand);
  if (first) return;
  kubernetes::RaiseTo(demand->requests, early->second.requests);
  early->second = *std::move(demand);
}

Tracker::Early& Tracker::EditUnseenJob(const Sketch& pod) {
  Entry& entry = entries_.Edit(pod.controller_job);
  entry.kind = WorkloadKind::kJob;
  entry.list = lists_[Index(WorkloadKind::kJob)];
  return entry.early ? *entry.early : entry.early.emplace();
}

// Slots only grow here: the pods of a job are made equal, and the largest must fit.
void Tracker::Enlarge(WorkloadRow* row, const kubernetes::PodDemand& demand, TrackerOutputs* out) {
  if (!kubernetes::Excess(demand.requests, *row->requests)) return;
  kubernetes::PodDemand raised = demand;
  kubernetes::RaiseTo(raised.requests, *row->requests);
  JobUpdated update;
  WorkloadRow next = *row;
  *update.mutable_spec() = NextSpec(raised, &next);
  if (JobspecProblem(update.spec(), max_jobspec_bytes_)) return;
  Recount(*row, next);
  *row = std::move(next);
  out->messages.push_back(UpdateOf(*row, std::move(update)));
}

Tracker::Entry& Tracker::EditSeen(const Sketch& sketch) {
  Entry& entry = entries_.Edit(sketch.uid);
  entry.kind = sketch.kind;
  entry.space = sketch.space;
  entry.name = sketch.name;
  entry.digest = sketch.digest;
  entry.list = lists_[Index(sketch.kind)];
  entry.told = last_look_;
  return entry;
}

void Tracker::Look(const std::string& uid, const Entry& entry, TrackerOutputs* out) {
  if (entry.kind == WorkloadKind::kGroup) {
    if (entry.pods.empty()) return;
    const std::string pod = *entry.pods.begin();
    Entry& member = entries_.Edit(pod);
    member.digest = 0;
    if (!member.name.empty()) Look(pod, member, out);
    return;
  }
  out->fetches.push_back({entry.kind, entry.space, entry.name, uid, ++last_look_});
}

void Tracker::Refuse(const Sketch& sketch, const std::string& why, TrackerOutputs* out) {
  std::string message = Clean(why, kMostRefusalBytes);
  Entry& entry = EditSeen(sketch);
  if (entry.refusal == message) return;
  entry.refusal = message;
  Refusal refusal{sketch.kind, sketch.space, sketch.name, sketch.uid, std::move(message)};
  if (sketch.kind == WorkloadKind::kGroup && !entry.pods.empty()) {
    refusal.kind = WorkloadKind::kPod;
    refusal.uid = *entry.pods.begin();
    refusal.name = entries_.Find(refusal.uid)->name;
  }
  out->refusals.push_back(std::move(refusal));
}

void Tracker::LeaveOut(const Sketch& sketch) {
  Entry* known = entries_.EditInPassing(sketch.uid);
  if (known != nullptr) known->list = lists_[Index(known->kind)];
}

void Tracker::Gone(const std::string& uid, TrackerOutputs* out) {
  const Entry* known = entries_.Find(uid);
  if (known == nullptr) return;
  if (!known->gang.empty() || (!known->group.empty() && !known->alone)) {
    MemberOver(uid, /*ended=*/false, out);
    return;
  }
  if (known->row) {
    Withdraw(
        uid, fmt::format("the {} was deleted, or is held no longer", KindName(known->kind)), out);
  }
  Forget(uid, out);
}

void Tracker::Withdraw(const std::string& id, const std::string& why, TrackerOutputs* out) {
  Envelope envelope = ForPool(entries_.Find(id)->row->pool);
  envelope.mutable_job_withdrawn()->set_job_id(id);
  envelope.mutable_job_withdrawn()->set_reason(why);
  out->messages.push_back(std::move(envelope));
}

void Tracker::Forget(const std::string& uid, TrackerOutputs* out) {
  const Entry* known = entries_.Find(uid);
  if (known == nullptr) return;
  const std::string space = known->space;
  const bool counted = known->row.has_value();
  const std::string stood_by = known->alone ? known->group : "";
  Recount(known->row, std::nullopt);
  if (!stood_by.empty()) groups_.Edit(stood_by).alone.erase(uid);
  entries_.Erase(uid);
  DropIfEmpty(stood_by);
  const auto crowded = crowded_.find(space);
  if (crowded == crowded_.end()) return;
  crowded->second.erase(uid);
  if (crowded->second.empty()) {
    crowded_.erase(crowded);
  } else if (counted) {
    LetOneIn(&crowded->second, out);
  }
}

void Tracker::LetOneIn(std::set<std::string>* crowded, TrackerOutputs* out) {
  while (!crowded->empty()) {
    const std::string uid = std::move(crowded->extract(crowded->begin()).value());
    const Entry* known = entries_.Find(uid);
    if (known == nullptr || known->row) continue;
    Entry& entry = entries_.Edit(uid);
    entry.digest = 0;
    Look(uid, entry, out);
    return;
  }
}

void Tracker::Recount(const std::optional<WorkloadRow>& before,
                      const std::optional<WorkloadRow>& now) {
  for (const auto& [row, sign] : {std::pair(&before, -1), std::pair(&now, 1)}) {
    if (!*row) continue;
    const std::pair key((*row)->space, (*row)->queue);
    Usage& usage = usage_.Edit(key);
    usage.jobs += sign;
    usage.jobspec_bytes += sign * (*row)->jobspec_bytes;
    if (usage == Usage()) usage_.Erase(key);
  }
}

void Tracker::BeginList(WorkloadKind kind) {
  ++lists_[Index(kind)];
}

void Tracker::EndList(WorkloadKind kind, const std::set<std::string>& listed, TrackerOutputs* out) {
  std::vector<std::string> looked;
  std::vector<std::string> unseen;
  for (const auto& [uid, entry] : entries_.map()) {
    if (entry.kind != kind || entry.list == lists_[Index(kind)] || listed.contains(uid)) continue;
    if (entry.row || !entry.gang.empty() || !entry.group.empty()) {
      looked.push_back(uid);
    } else {
      unseen.push_back(uid);
    }
  }
  for (const std::string& uid : looked) {
    const Entry& entry = *entries_.Find(uid);
    // A pod of a gang of which nothing was seen since a restart: the list would have shown it.
    if (entry.name.empty()) {
      Gone(uid, out);
    } else {
      Look(uid, entry, out);
    }
  }
  for (const std::string& uid : unseen) Forget(uid, out);
}

void Tracker::RetryRefused(TrackerOutputs* out) {
  std::vector<std::string> refused;
  for (const auto& [uid, entry] : entries_.map()) {
    if (!entry.refusal.empty()) refused.push_back(uid);
  }
  for (const std::string& uid : refused) {
    Entry& entry = entries_.Edit(uid);
    entry.digest = 0;
    Look(uid, entry, out);
  }
}

TrackerChanges Tracker::Changes() const {
  TrackerChanges changes;
  for (const auto& [uid, before, now] : entries_.Touched()) {
    const bool has = now != nullptr && now->row;
    const bool had = before != nullptr && before->row;
    if (has && (!had || *before->row != *now->row)) {
      changes.upserts.push_back(*now->row);
    } else if (!has && had) {
      changes.deletes.push_back(uid);
    }
  }
  return changes;
}

void Tracker::Commit() {
  for (const auto& [uid, before, now] : entries_.Touched()) {
    if (before != nullptr) Count(*before, /*added=*/false);
    if (now != nullptr) Count(*now, /*added=*/true);
    if (now != nullptr && now->row) {
      requests_.Share(&entries_.EditInPassing(uid)->row->requests);
    }
  }
  entries_.Commit();
  groups_.Commit();
  usage_.Commit();
}

void Tracker::Rollback() {
  entries_.Rollback();
  groups_.Rollback();
  usage_.Rollback();
}

void Tracker::Count(const Entry& entry, bool added) {
  size_t& counter = entry.row ? submitted_ : refused_;
  if (!entry.row && entry.refusal.empty()) return;
  counter += added ? size_t{1} : -size_t{1};
}

}  // namespace fluxqueue::admission
