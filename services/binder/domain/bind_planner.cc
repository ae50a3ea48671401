#include "services/binder/domain/bind_planner.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/model/workload.h"
#include "services/binder/domain/start_planner.h"
#include "services/binder/domain/stop_planner.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;

enum class Want { kNothing, kStart, kStop, kUnknown };

Want WantOf(events::v1::JobState state) {
  switch (state) {
    case events::v1::JOB_STATE_SUBMITTED:
    case events::v1::JOB_STATE_PENDING:
    case events::v1::JOB_STATE_SUCCEEDED:
    case events::v1::JOB_STATE_FAILED:
    case events::v1::JOB_STATE_CANCELLED:
    case events::v1::JOB_STATE_REJECTED:
      return Want::kNothing;
    case events::v1::JOB_STATE_ALLOCATED:
    case events::v1::JOB_STATE_BOUND:
    case events::v1::JOB_STATE_RUNNING:
      return Want::kStart;
    case events::v1::JOB_STATE_STOPPING:
      return Want::kStop;
    case events::v1::JOB_STATE_UNSPECIFIED:
    case events::v1::JobState_INT_MIN_SENTINEL_DO_NOT_USE_:
    case events::v1::JobState_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return Want::kUnknown;
}

bool NamesNew(const JobFact& fact, const JobFact& known) {
  return std::any_of(fact.vacate().begin(), fact.vacate().end(), [&known](uint32_t slot) {
    return std::find(known.vacate().begin(), known.vacate().end(), slot) == known.vacate().end();
  });
}

absl::Status Validate(const JobFact& fact) {
  if (fact.job_id().empty()) return InvalidArgument("job fact without a job id");
  const Want want = WantOf(fact.state());
  if (want == Want::kUnknown) {
    return InvalidArgument("fact {} of job {}: state {} is not known to this version",
                           fact.version(),
                           fact.job_id(),
                           static_cast<int>(fact.state()));
  }
  if (want == Want::kNothing) return absl::OkStatus();
  if (fact.attempt() == 0 || fact.pool().empty() || fact.workload().uid().empty()) {
    return InvalidArgument(
        "fact {} of job {}: attempt {}, pool '{}', workload uid '{}': all three "
        "are needed to start or stop it",
        fact.version(),
        fact.job_id(),
        fact.attempt(),
        fact.pool(),
        fact.workload().uid());
  }
  return absl::OkStatus();
}

// Without what is of no use here: there is one for each job that holds something.
std::shared_ptr<const JobFact> Keep(JobFact fact) {
  fact.clear_queue();
  fact.clear_user();
  fact.clear_reason();
  fact.clear_slip();
  events::v1::Workload* workload = fact.mutable_workload();
  workload->clear_api_version();
  workload->clear_owner();
  workload->clear_leader();
  return std::make_shared<const JobFact>(fact);  // a copy: a field that is cleared stays allocated
}

}  // namespace

void BindPlanner::PodSeen(PodFacts pod) {
  const std::string uid = pod.uid;
  if (!See(std::move(pod))) return;
  // Of the job that it was seen with first, whatever its owners are now.
  const PodFacts* seen = board_.Find(uid);
  if (seen == nullptr) return;
  if (std::string job = JobOf(*seen); !job.empty()) dirty_.insert(std::move(job));
}

bool BindPlanner::See(PodFacts pod) {
  board_.EnterHistory(pod.history);
  const auto group = member_of_.find(pod.uid);
  if (group != member_of_.end() && board_.KnownGone(pod.uid, group->second)) return false;
  return board_.See(std::move(pod));
}

std::vector<PodFacts> BindPlanner::SetAside(const std::string& job_id) {
  std::vector<PodFacts> pods = board_.Take(job_id);
  if (const BindJob* job = Find(job_id); job != nullptr) {
    for (const std::string& uid : job->workload().pods()) {
      std::ranges::move(board_.Take(uid), std::back_inserter(pods));
    }
  }
  for (CallResult& answer : answers_) {
    if (answer.call.job_id != job_id || !answer.pod.has_value()) continue;
    pods.push_back(*std::move(answer.pod));
    answer.LoseSight();
  }
  return pods;
}

void BindPlanner::PodGone(const std::string& uid) {
  const PodFacts* pod = board_.Find(uid);
  if (pod == nullptr) return;
  const std::string job_id = JobOf(*pod);
  board_.Gone(uid, job_id, !job_id.empty() && board_.RemembersMore(job_id));
  if (!job_id.empty()) dirty_.insert(job_id);
}

std::string BindPlanner::JobOf(const PodFacts& pod) const {
  const auto group = member_of_.find(pod.uid);
  const std::string& job_id = group == member_of_.end() ? pod.job_id : group->second;
  const BindJob* job = Find(job_id);
  return job != nullptr && job->workload().namespace_() == pod.space ? job_id : "";
}

void BindPlanner::AddMembers(const BindJob& job) {
  for (const std::string& uid : job.workload().pods()) member_of_[uid] = job.id();
}

void BindPlanner::RemoveMembers(const BindJob& job) {
  for (const std::string& uid : job.workload().pods()) {
    const auto group = member_of_.find(uid);
    if (group != member_of_.end() && group->second == job.id()) member_of_.erase(group);
  }
}

void BindPlanner::SetPodsInView(bool in_view, Millis now) {
  if (in_view == pods_in_view_) return;
  pods_in_view_ = in_view;
  if (!in_view) return;
  in_view_since_ = now;
  for (const auto& [job_id, job] : jobs_.map()) dirty_.insert(job_id);
}

absl::Status BindPlanner::Fold(int partition, const JobFact& fact, Millis now, Millis age) {
  // Nothing of a claim is ever started or stopped.
  if (model::IsClaim(fact.workload().kind())) return absl::OkStatus();
  RETURN_IF_ERROR(Validate(fact));
  const BindJob* known = Find(fact.job_id());
  if (known != nullptr && fact.version() <= known->fact->version()) return absl::OkStatus();
  switch (WantOf(fact.state())) {
    case Want::kNothing:
      if (known != nullptr) Erase(fact.job_id());
      break;
    case Want::kStart:
      if (known == nullptr || known->attempt() != fact.attempt()) {
        Make(partition, fact, now, age);
      } else if (!known->stopping) {
        if (fact.resized()) Resize(fact);
        if (!fact.vacate().empty()) Vacate(fact, now);
        if (known->placement_hash != fact.placement_hash()) {
          BindJob* job = Touch(fact.job_id());
          job->placement_hash = fact.placement_hash();
          PlaceAgain(job, now);
          dirty_.insert(fact.job_id());
        }
      }
      break;
    case Want::kStop: {
      BindJob& job = known != nullptr && known->attempt() == fact.attempt()
                         ? *Touch(fact.job_id())
                         : Make(partition, fact, now, age);
      job.fact = Keep(fact);
      job.stopping = true;
      job.since = now;
      job.retry = {};
      for (Slot& slot : job.slots) slot.retry = {};
      dirty_.insert(fact.job_id());
      break;
    }
    case Want::kUnknown:
      break;
  }
  return absl::OkStatus();
}

bool BindPlanner::SayEndAgain(const std::string& job_id) {
  const BindJob* known = Find(job_id);
  if (known == nullptr || !(known->stopping ? known->stopped : known->failed)) return false;
  BindJob* job = Touch(job_id);
  (job->stopping ? job->stopped : job->failed) = false;
  dirty_.insert(job_id);
  return true;
}

void BindPlanner::Plan(Millis now, std::vector<Saying>* sayings) {
  for (; answered_ < answers_.size(); ++answered_) Apply(answers_[answered_], now);
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    const std::string job_id = wakes_.begin()->second;
    SetWake(job_id, Millis::max());
    dirty_.insert(job_id);
  }
  planned_ = std::exchange(dirty_, {});
  PlanEach(planned_, /*may_speak=*/true, now, sayings);
  planned_.clear();
}

void BindPlanner::PlanEach(const std::set<std::string>& job_ids,
                           bool may_speak,
                           Millis now,
                           std::vector<Saying>* sayings) {
  for (const std::string& job_id : job_ids) {
    at_job_ = job_id;
    PlanJob(job_id, Context(now, may_speak, sayings));
  }
  at_job_.clear();
}

std::vector<PlacementKey> BindPlanner::WantedPlacements(Millis now) const {
  std::vector<PlacementKey> keys;
  for (const std::string& job_id : unplaced_) {
    const BindJob& job = jobs_.map().at(job_id);
    if (job.placement_at > now) continue;
    PlacementKey& key = keys.emplace_back(PlacementKey{job_id, job.attempt(), job.fact->pool()});
    for (const Slot& slot : job.slots) {
      if (slot.NeedsNode()) key.nodes.insert(slot.node);
    }
  }
  return keys;
}

void BindPlanner::Placed(const PlacementKey& key, const PlacementRow* row, Millis now) {
  BindJob* job = Touch(key.job_id);
  if (job == nullptr || job->attempt() != key.attempt || job->placed) return;
  if (row != nullptr) {
    // Read for the first time since a restart: what is all bound by its rows was said with them.
    const bool first = job->groups.empty();
    Place(row->placement, row->released, job);
    LearnNodes(key.nodes, row->node_uids, job);
    for (SlotGroup& group : job->groups) requests_.Share(&group.requests);
    if (first) job->bound_said = job->AllBoundByRows();
  } else if (job->stopping) {
    PlaceNowhere(job);
  } else {
    job->placement_at = now + options_.placement_retry;
    SetWake(key.job_id, job->placement_at);
    return;
  }
  unplaced_.erase(key.job_id);
  placed_now_.insert(key.job_id);
}

void BindPlanner::PlanPlaced(Millis now) {
  PlanEach(std::exchange(placed_now_, {}), /*may_speak=*/false, now, nullptr);
}

PlanContext BindPlanner::Context(Millis now, bool may_speak, std::vector<Saying>* sayings) {
  return {.options = options_,
          .pods = board_,
          .pods_in_view = pods_in_view_,
          .in_view_since = in_view_since_,
          .now = now,
          .may_speak = may_speak,
          .last_call = &last_call_,
          .calls = &calls_,
          .sayings = sayings};
}

void BindPlanner::PlanJob(const std::string& job_id, PlanContext context) {
  BindJob* job = Touch(job_id);
  if (job == nullptr) return;
  // One whose placement is read again goes on with the slots that it has: what is said of them has
  // to be in the batch of their rows.
  const bool was_placed = !job->groups.empty();
  if (!job->placed && (job->stopping || !was_placed)) return;
  if (job->stopping) {
    PlanStop(context, job);
  } else {
    PlanStart(context, job);
  }
  SetWake(job_id, context.wake);
  if (context.place_again && job->placed) PlaceAgain(job, context.now);
  if (context.speak_later) dirty_.insert(job_id);
}

Rows BindPlanner::Changes() const {
  Rows rows;
  for (const auto& [job_id, before, now] : jobs_.Touched()) AppendChanges(before, now, &rows);
  return rows;
}

bool BindPlanner::HasRows(Millis now) const {
  return !calls_.empty() || !WantedPlacements(now).empty() || Changes().size() != 0;
}

std::vector<Call> BindPlanner::Commit() {
  jobs_.Commit();
  answers_.erase(answers_.begin(), answers_.begin() + static_cast<ptrdiff_t>(answered_));
  answered_ = 0;
  return std::exchange(calls_, {});
}

void BindPlanner::Rollback() {
  calls_.clear();
  placed_now_.clear();
  dirty_.merge(planned_);
  planned_.clear();
  at_job_.clear();
  answered_ = 0;
  for (const auto& [job_id, before, now] : jobs_.Touched()) {
    SetWake(job_id, Millis::max());
    unplaced_.erase(job_id);
    if (before == nullptr) {
      if (now != nullptr) RemoveMembers(*now);
      board_.ForgetGone(job_id);
      dirty_.erase(job_id);
      continue;
    }
    AddMembers(*before);
    if (!before->placed) unplaced_.insert(job_id);
    dirty_.insert(job_id);
  }
  jobs_.Rollback();
}

absl::Status BindPlanner::Restore(const JobRow& row,
                                  const std::vector<SlotRow>& slots,
                                  Millis now) {
  CHECK(jobs_.Touched().empty(), "restore within a batch");
  JobFact fact;
  if (!fact.ParseFromString(row.fact)) {
    return MakeStatus(
        absl::StatusCode::kDataLoss, "binder.jobs: the fact of job {} does not decode", row.job_id);
  }
  BindJob job;
  job.partition = row.partition;
  job.stopping = fact.state() == events::v1::JOB_STATE_STOPPING;
  job.fact = Keep(std::move(fact));
  job.failed = row.failed;
  job.stopped = row.stopped;
  job.resumed = row.resumed;
  job.placement_hash = job.fact->placement_hash();
  job.since = job.vacate_since = job.progress = now;
  for (const SlotRow& slot : slots) {
    if (slot.attempt != job.attempt()) continue;
    const auto index = static_cast<size_t>(slot.slot);
    if (job.slots.size() <= index) job.slots.resize(index + 1);
    job.slots[index] = slot.value;
  }
  unplaced_.insert(row.job_id);
  dirty_.insert(row.job_id);
  AddMembers(job);
  jobs_.Restore(row.job_id, std::move(job));
  return absl::OkStatus();
}

void BindPlanner::Drop(int partition) {
  CHECK(jobs_.Touched().empty(), "drop within a batch");
  std::vector<std::string> dropped;
  for (const auto& [job_id, job] : jobs_.map()) {
    if (job.partition == partition) dropped.push_back(job_id);
  }
  for (const std::string& job_id : dropped) {
    Erase(job_id);
    dirty_.erase(job_id);
  }
  jobs_.Commit();
}

std::optional<Millis> BindPlanner::WakeAt() const {
  if (wakes_.empty()) return std::nullopt;
  return wakes_.begin()->first;
}

BindJob* BindPlanner::Touch(const std::string& job_id) {
  return jobs_.Has(job_id) ? &jobs_.Edit(job_id) : nullptr;
}

BindJob& BindPlanner::Make(int partition, const JobFact& fact, Millis now, Millis age) {
  BindJob job;
  job.partition = partition;
  job.fact = Keep(fact);
  job.placement_hash = fact.placement_hash();
  job.placement_at = now;
  if (fact.state() == events::v1::JOB_STATE_ALLOCATED) job.fresh_until = now - age + kSureFor;
  job.since = job.progress = now;
  unplaced_.insert(fact.job_id());
  dirty_.insert(fact.job_id());
  AddMembers(job);
  return jobs_.Edit(fact.job_id()) = std::move(job);
}

void BindPlanner::PlaceAgain(BindJob* job, Millis now) {
  job->placed = false;
  job->placement_at = now;
  unplaced_.insert(job->id());
}

void BindPlanner::Vacate(const JobFact& fact, Millis now) {
  BindJob& job = *Touch(fact.job_id());
  // What was said already has not been heard.
  for (const uint32_t slot : fact.vacate()) {
    if (slot < job.slots.size()) job.slots[slot].vacated_said = false;
  }
  dirty_.insert(fact.job_id());
  if (!NamesNew(fact, *job.fact)) return;
  auto with = std::make_shared<JobFact>(*job.fact);
  with->set_version(fact.version());
  with->set_message(fact.message());
  with->set_grace_ms(fact.grace_ms());
  *with->mutable_done_slots() = fact.done_slots();
  with->mutable_vacate()->MergeFrom(fact.vacate());
  auto* slots = with->mutable_vacate();
  std::sort(slots->begin(), slots->end());
  slots->erase(std::unique(slots->begin(), slots->end()), slots->end());
  job.fact = std::move(with);
  job.vacate_since = now;
  CloseSlots(&job);
}

void BindPlanner::Resize(const JobFact& fact) {
  BindJob& job = *Touch(fact.job_id());
  if (job.fact->resized() && job.fact->max_slots() == fact.max_slots()) return;
  auto with = std::make_shared<JobFact>(*job.fact);
  with->set_version(fact.version());
  with->set_resized(true);
  with->set_min_slots(fact.min_slots());
  with->set_max_slots(fact.max_slots());
  *with->mutable_done_slots() = fact.done_slots();
  job.fact = std::move(with);
  CloseSlots(&job);
  dirty_.insert(fact.job_id());
}

void BindPlanner::Erase(const std::string& job_id) {
  SetWake(job_id, Millis::max());
  if (const BindJob* job = Find(job_id); job != nullptr) RemoveMembers(*job);
  jobs_.Erase(job_id);
  board_.ForgetGone(job_id);
  unplaced_.erase(job_id);
  placed_now_.erase(job_id);
}

void BindPlanner::SetWake(const std::string& job_id, Millis at) {
  const auto found = wake_of_.find(job_id);
  if (found != wake_of_.end()) {
    wakes_.erase({found->second, job_id});
    wake_of_.erase(found);
  }
  if (at == Millis::max()) return;
  wakes_.emplace(at, job_id);
  wake_of_.emplace(job_id, at);
}

}  // namespace fluxqueue::binder
