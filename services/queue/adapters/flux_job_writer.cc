#include "services/queue/adapters/flux_job_writer.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/backoff.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"

namespace fluxqueue::queue {
namespace {

constexpr size_t kBatch = 128;
constexpr size_t kWaitingShown = 200;
constexpr Millis kIdle{1000};
constexpr Millis kCompareEvery{3'600'000};
constexpr Millis kCompareAgain{1000};
constexpr Millis kCompareAgainMost{30'000};

using Shown = ShownFluxJob;

bool HasEnded(const events::v1::JobFact& fact) {
  return model::IsTerminal(static_cast<model::JobState>(fact.state()));
}

// One that was rejected may be submitted again.
bool IsFinal(const std::string& state) {
  const auto parsed = model::ParseJobState(state);
  return parsed.has_value() && model::IsTerminal(*parsed) && *parsed != model::JobState::kRejected;
}

// From the object's JSON; an object that is not ours to read has version 0 and is written again.
Shown ReadShown(std::string_view object) {
  const auto parsed = nlohmann::json::parse(object, nullptr, /*allow_exceptions=*/false);
  Shown shown;
  if (!parsed.is_object()) return shown;
  shown.job_id = parsed.value(nlohmann::json::json_pointer("/spec/jobId"), std::string());
  shown.version = parsed.value(nlohmann::json::json_pointer("/status/version"), uint64_t{0});
  shown.final = IsFinal(parsed.value(nlohmann::json::json_pointer("/status/state"), std::string()));
  const auto meta = [&parsed](const char* field) {
    return parsed.value(nlohmann::json::json_pointer("/metadata") / field, std::string());
  };
  shown.resource_version = meta("resourceVersion");
  if (parsed.contains(nlohmann::json::json_pointer("/metadata/ownerReferences/0"))) return shown;
  shown.space = meta("namespace");
  shown.name = meta("name");
  shown.uid = meta("uid");
  return shown;
}

std::string ObjectUid(std::string_view object) {
  const auto parsed = nlohmann::json::parse(object, nullptr, /*allow_exceptions=*/false);
  return parsed.value(nlohmann::json::json_pointer("/metadata/uid"), std::string());
}

// One that cannot be deleted is tried again next time.
void Delete(const Shown& orphan, kubernetes::Client& client) {
  const absl::Status deleted = client.Delete(
      kubernetes::kFluxJobs, orphan.space, orphan.name, {.preconditions = {.uid = orphan.uid}});
  if (deleted.ok() || absl::IsNotFound(deleted)) return;
  LogWarning("FluxJob of a job that is gone not deleted",
             {{"namespace", orphan.space}, {"name", orphan.name}, {"error", Message(deleted)}});
}

}  // namespace

FluxJobWriter::FluxJobWriter(kubernetes::Client& client,
                             FluxJobSource& source,
                             QueueMetrics& metrics,
                             const Clock& clock,
                             FluxJobTimes times)
    : client_(client), source_(source), metrics_(metrics), clock_(clock), planner_(times) {}

Millis FluxJobWriter::Now() const {
  return std::chrono::duration_cast<Millis>(clock_.Monotonic().time_since_epoch());
}

void FluxJobWriter::Changed(std::vector<JobSeen> jobs) {
  std::lock_guard lock(mutex_);
  const uint64_t left_out = planner_.left_out();
  for (const JobSeen& job : jobs) {
    pools_.insert(job.fact.pool());
    planner_.Observe(job.fact, job.position, Now());
    if (std::string event = EventObject(job.fact); !event.empty()) {
      events_.emplace_back(job.fact.workload().namespace_(), std::move(event));
    }
  }
  metrics_.FluxJobsLeftOut(planner_.left_out() - left_out);
  wake_.notify_one();
}

void FluxJobWriter::PoolsGained(const std::set<std::string>& pools) {
  std::lock_guard lock(mutex_);
  pools_ = pools;
  gained_ = true;
  // While comparisons fail, the next try is due when it is.
  if (comparisons_failed_ == 0) compare_at_ = Millis{0};
  wake_.notify_one();
}

void FluxJobWriter::PoolsLost(const std::set<std::string>& pools) {
  std::lock_guard lock(mutex_);
  for (const std::string& pool : pools) pools_.erase(pool);
  planner_.Lost(pools);
}

std::vector<std::string> FluxJobWriter::Waiting() {
  std::lock_guard lock(mutex_);
  return planner_.Waiting(kWaitingShown);
}

void FluxJobWriter::Moved(const std::vector<std::pair<std::string, int64_t>>& positions) {
  std::lock_guard lock(mutex_);
  for (const auto& [job_id, position] : positions) planner_.Move(job_id, position, Now());
  wake_.notify_one();
}

absl::Status FluxJobWriter::Ready() const {
  std::lock_guard lock(mutex_);
  return last_;
}

size_t FluxJobWriter::backlog() const {
  std::lock_guard lock(mutex_);
  return planner_.size();
}

absl::Status FluxJobWriter::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::vector<FluxJobWrite> writes = WaitForWork(stop);
    if (!writes.empty()) Write(writes);
  }
  return absl::OkStatus();
}

// Does the work that is not the planner's on the way: the comparison after a gain, and Events.
std::vector<FluxJobWrite> FluxJobWriter::WaitForWork(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const Millis now = Now();
  const Millis due = planner_.NextDue().value_or(now + kIdle);
  if (events_.empty() && due > now && compare_at_ > now) {
    wake_.wait_for(lock, stop, std::min(due - now, kIdle), [&] {
      return compare_at_ <= now || !events_.empty() || planner_.NextDue().value_or(due) < due;
    });
  }
  if (compare_at_ <= Now()) {
    compare_at_ = Now() + kCompareEvery;
    const bool gained = std::exchange(gained_, false);
    lock.unlock();
    Reconcile(gained);
    lock.lock();
  }
  const auto events = std::exchange(events_, {});
  std::vector<FluxJobWrite> writes = planner_.TakeDue(Now(), kBatch);
  lock.unlock();
  for (const auto& [space, event] : events) WriteEvent(space, event);
  return writes;
}

absl::Status FluxJobWriter::ListObjects(Comparison* found) {
  return client_
      .List(kubernetes::kFluxJobs,
            {},
            [&](std::string_view object) {
              Shown one = ReadShown(object);
              found->shown[one.job_id] = {one.version, one.resource_version};
              if (!one.final) found->unended.insert(one.job_id);
              if (!one.uid.empty()) found->orphans.emplace(one.job_id, std::move(one));
              return absl::OkStatus();
            })
      .status();
}

absl::Status FluxJobWriter::Compare(bool gained) {
  Comparison found;
  RETURN_IF_ERROR(ListObjects(&found));
  if (!gained && found.orphans.empty()) return absl::OkStatus();
  const auto see = [&](const events::v1::JobFact& fact) {
    if (!HasEnded(fact)) found.orphans.erase(fact.job_id());
    if (gained) Observe(fact, found.shown);
    found.unended.erase(fact.job_id());
  };
  RETURN_IF_ERROR(source_.LiveFacts(see));
  if (gained) {
    RETURN_IF_ERROR(source_.FactsOf({found.unended.begin(), found.unended.end()}, see));
  }
  for (const auto& [job_id, orphan] : found.orphans) Delete(orphan, client_);
  return absl::OkStatus();
}

void FluxJobWriter::Observe(const events::v1::JobFact& fact,
                            const std::unordered_map<std::string, ShownVersion>& shown) {
  const std::lock_guard lock(mutex_);
  if (!pools_.contains(fact.pool())) return;
  const auto it = shown.find(fact.job_id());
  if (it == shown.end()) {
    planner_.Observe(fact, 0, Now());
  } else if (it->second.version < fact.version() || !HasEnded(fact)) {
    planner_.ObserveShown(
        fact, std::min(it->second.version, fact.version()), it->second.resource_version, Now());
  }
}

void FluxJobWriter::Reconcile(bool gained) {
  absl::Status status = Compare(gained);
  std::lock_guard lock(mutex_);
  if (!status.ok()) {
    status = Annotate(status, "compare FluxJobs with queue.jobs");
    if (comparisons_failed_ == 0) {
      LogWarning("FluxJobs not compared, trying again", {{"error", Message(status)}});
    }
    gained_ = gained_ || gained;
    const Millis again = BackoffDelay(kCompareAgain, kCompareAgainMost, ++comparisons_failed_);
    compare_at_ = std::min(compare_at_, Now() + again);
    last_ = IsTransient(status) ? status : absl::OkStatus();
    return;
  }
  comparisons_failed_ = 0;
  last_ = absl::OkStatus();
  if (gained_) compare_at_ = Millis{0};  // others, meanwhile
}

void FluxJobWriter::Write(const std::vector<FluxJobWrite>& writes) {
  std::vector<std::string> ids;
  for (const FluxJobWrite& write : writes) ids.push_back(write.job_id);
  const auto jobs = source_.Jobs(ids);
  for (const FluxJobWrite& write : writes) {
    Outcome outcome{write.job_id, write.version, write.resource_version, jobs.status()};
    if (jobs.ok()) {
      const auto job = jobs->find(write.job_id);
      if (job == jobs->end()) {
        outcome.status = absl::NotFoundError("its row was pruned");
      } else {
        Show(write, job->second, &outcome);
      }
    }
    Settle(outcome);
  }
}

void FluxJobWriter::Show(const FluxJobWrite& write,
                         const FluxJobSource::Job& job,
                         Outcome* outcome) {
  // The planner hears of a later version right after us, and of the step that it tells.
  const bool later = job.fact.version() > write.version;
  if (!write.shown || later) {
    outcome->version = job.fact.version();
    const auto begun = clock_.Monotonic();
    const auto object = WriteOne(write, job);
    outcome->took = clock_.Monotonic() - begun;
    outcome->status = object.status();
    // Nothing is written after an end, but for what was rejected and is handed in again.
    if (object.ok() && !HasEnded(job.fact)) {
      outcome->resource_version = ReadShown(*object).resource_version;
    }
    metrics_.FluxJobWritten(outcome->status.ok());
  }
  if (outcome->status.ok() && write.step != JobStep::kNone && !later) {
    WriteEvent(job.fact.workload().namespace_(),
               StepEventObject(write.step, job.fact, write.position, job.details));
  }
}

absl::StatusOr<std::string> FluxJobWriter::WriteOne(const FluxJobWrite& write,
                                                    const FluxJobSource::Job& job) {
  if (!write.resource_version.empty()) {
    auto patched = Patch(write, job, write.resource_version);
    return absl::IsAborted(patched.status()) ? Overwrite(write, job) : patched;
  }
  auto created = client_.Create(kubernetes::kFluxJobs,
                                job.fact.workload().namespace_(),
                                FluxJobObject(job.fact, write.position, job.details));
  return absl::IsAlreadyExists(created.status()) ? Overwrite(write, job) : created;
}

// It is another object than we know of: our own (written by a predecessor, or by another replica
// that has or had the pool), or that of an earlier workload of the same name, which the garbage
// collector has not reached yet.
absl::StatusOr<std::string> FluxJobWriter::Overwrite(const FluxJobWrite& write,
                                                     const FluxJobSource::Job& job) {
  const std::string& space = job.fact.workload().namespace_();
  const std::string name = FluxJobName(job.fact.workload());
  ASSIGN_OR_RETURN(const std::string object, client_.Get(kubernetes::kFluxJobs, space, name));
  const Shown shown = ReadShown(object);
  if (shown.job_id == job.fact.job_id()) {
    if (shown.version <= job.fact.version()) {
      return Patch(write, job, shown.resource_version);
    }
    return MakeStatus(
        absl::StatusCode::kNotFound, "FluxJob {} shows version {} already", name, shown.version);
  }
  RETURN_IF_ERROR(client_.Delete(
      kubernetes::kFluxJobs, space, name, {.preconditions = {.uid = ObjectUid(object)}}));
  return Unavailable("FluxJob {} of an earlier workload was in the way", name);
}

absl::StatusOr<std::string> FluxJobWriter::Patch(const FluxJobWrite& write,
                                                 const FluxJobSource::Job& job,
                                                 const std::string& resource_version) {
  return client_.Patch(kubernetes::kFluxJobs,
                       job.fact.workload().namespace_(),
                       FluxJobName(job.fact.workload()),
                       kubernetes::PatchType::kMerge,
                       FluxJobPatch(job.fact, write.position, job.details, resource_version));
}

// One that cannot be written is lost: nothing waits for it.
void FluxJobWriter::WriteEvent(const std::string& space, const std::string& event) {
  const absl::Status status = client_.Create(kubernetes::kEvents, space, event).status();
  if (status.ok()) {
    metrics_.EventWritten();
  } else if (!absl::IsAlreadyExists(status)) {
    LogWarning("event not written", {{"namespace", space}, {"error", Message(status)}});
  }
}

void FluxJobWriter::Settle(const Outcome& outcome) {
  std::lock_guard lock(mutex_);
  if (outcome.took.has_value()) planner_.Took(*outcome.took);
  if (outcome.status.ok()) {
    planner_.Written(outcome.job_id, outcome.version, outcome.resource_version, Now());
    last_ = absl::OkStatus();
  } else if (absl::IsNotFound(outcome.status)) {
    planner_.Gone(outcome.job_id, outcome.version, Now());
  } else {
    if (last_.ok()) {
      LogWarning("FluxJob not written, trying again",
                 {{"job", outcome.job_id}, {"error", Message(outcome.status)}});
    }
    planner_.Failed(outcome.job_id, Now());
    // A FluxJob that the API server refuses, or that another writes at the same time, is no reason
    // to send our work to another replica.
    const bool away = IsTransient(outcome.status) && !absl::IsAborted(outcome.status);
    last_ = away ? outcome.status : absl::OkStatus();
  }
}

}  // namespace fluxqueue::queue
