#include "services/queue/domain/flux_job_planner.h"

#include <algorithm>

#include "libs/base/backoff.h"
#include "libs/model/workload.h"

namespace fluxqueue::queue {
namespace {

// How much the latest write's time counts among those before it, and the longest that counts.
constexpr double kNewest = 1.0 / 16;
constexpr double kLongestSeconds = 1;
// How much the best time grows with each write, so that one that was never reached again is
// forgotten in some hundreds.
constexpr double kForgetBest = 1.002;
// A write that takes twice the best is as usual; one that takes more shows that others are at work.
constexpr double kUsual = 2;
// The first write of a job waits up to five times as long where the API server is slow.
constexpr double kLeastEase = 0.2;
// Of the writes, those of jobs that have ended and have no object, where others wait, too.
constexpr double kPartBesideOthers = 0.25;
// Writes a second of jobs that have ended, however slow the API server is.
constexpr double kLeastRate = 1;

bool IsTerminal(events::v1::JobState state) {
  return state == events::v1::JOB_STATE_SUCCEEDED || state == events::v1::JOB_STATE_FAILED ||
         state == events::v1::JOB_STATE_CANCELLED || state == events::v1::JOB_STATE_REJECTED;
}

bool IsStarting(events::v1::JobState state) {
  return state == events::v1::JOB_STATE_ALLOCATED || state == events::v1::JOB_STATE_BOUND;
}

JobStep StepOf(const events::v1::JobFact& fact) {
  switch (fact.state()) {
    case events::v1::JOB_STATE_PENDING:
      return fact.firm() && fact.start_ms() != 0 ? JobStep::kReserved : JobStep::kQueued;
    case events::v1::JOB_STATE_ALLOCATED:
      return JobStep::kAllocated;
    case events::v1::JOB_STATE_BOUND:
    case events::v1::JOB_STATE_RUNNING:
      return JobStep::kBound;
    default:
      return JobStep::kNone;
  }
}

}  // namespace

FluxJobPlanner::Entry* FluxJobPlanner::Note(const events::v1::JobFact& fact,
                                            int64_t position,
                                            Millis now) {
  if (model::IsClaim(fact.workload().kind())) return nullptr;
  auto [it, added] = jobs_.try_emplace(fact.job_id());
  Entry& entry = it->second;
  if (!added && fact.version() <= entry.version) return nullptr;
  if (added || !IsStarting(entry.state)) entry.held_since = now;
  if (added || fact.attempt() != entry.attempt) {
    entry.known_since = now;
    entry.told = entry.telling = JobStep::kNone;
  }
  if (added) entry.pool = pools_(fact.pool());
  entry.version = fact.version();
  entry.attempt = fact.attempt();
  entry.state = fact.state();
  entry.step = StepOf(fact);
  entry.position = position;
  return &entry;
}

void FluxJobPlanner::Observe(const events::v1::JobFact& fact, int64_t position, Millis now) {
  Entry* const entry = Note(fact, position, now);
  if (entry == nullptr) return;
  if (IsShown(*entry)) return Erase(fact.job_id());
  Schedule(fact.job_id(), *entry, now);
  LeaveOut();
}

void FluxJobPlanner::ObserveShown(const events::v1::JobFact& fact,
                                  uint64_t version,
                                  std::string resource_version,
                                  Millis now) {
  if (jobs_.contains(fact.job_id())) return Observe(fact, 0, now);
  Entry* const entry = Note(fact, 0, now);
  if (entry == nullptr) return;
  entry->written_version = version;
  entry->resource_version = std::move(resource_version);
  const bool shown = version == fact.version();
  entry->written_at = shown ? now : now - times_.interval;  // the next write need not wait
  if (shown && fact.state() == events::v1::JOB_STATE_RUNNING) entry->told = JobStep::kBound;
  Schedule(fact.job_id(), *entry, now);
}

void FluxJobPlanner::Move(const std::string& job_id, int64_t position, Millis now) {
  const auto it = jobs_.find(job_id);
  if (it == jobs_.end() || it->second.position == position) return;
  it->second.position = position;
  Schedule(it->first, it->second, now);
}

// A job that has ended, in its object too.
bool FluxJobPlanner::IsShown(const Entry& entry) {
  return entry.in_flight == 0 && IsTerminal(entry.state) && entry.written_version >= entry.version;
}

JobStep FluxJobPlanner::StepAt(const Entry& entry, Millis now) const {
  const bool late = IsStarting(entry.state) && now >= entry.held_since + times_.not_started_after;
  return late ? JobStep::kNotStarted : entry.step;
}

std::optional<Millis> FluxJobPlanner::TellAt(const Entry& entry) const {
  const JobStep step = entry.step;
  const bool at_once = entry.told == JobStep::kNone && entry.attempt <= 1;
  if (step > entry.told && step <= JobStep::kReserved) {
    return entry.known_since + times_.told_after;
  }
  if (step > entry.told && !at_once) return Millis(0);
  if (IsStarting(entry.state) && entry.told != JobStep::kNotStarted) {
    return entry.held_since + times_.not_started_after;
  }
  return std::nullopt;
}

std::optional<Millis> FluxJobPlanner::DueAt(const Entry& entry, Millis now) const {
  if (entry.failures > 0) {
    return now + BackoffDelay(times_.retry_min, times_.retry_max, entry.failures);
  }
  if (entry.written_version == 0) {
    const Millis delay(static_cast<int64_t>(static_cast<double>(times_.first_delay.count()) /
                                            std::max(Ease(), kLeastEase)));
    return entry.due.value_or(now + delay);
  }
  if (entry.written_version < entry.version) return entry.written_at + times_.interval;
  std::optional<Millis> due = TellAt(entry);
  if (entry.written_position != entry.position) {
    const Millis moved = entry.written_at + times_.position_interval;
    due = std::min(due.value_or(moved), moved);
  }
  return due;
}

// A job has at most one place in due_, the earliest at which it may be written; while it is in
// flight it has none, and gets it when the write has ended.
void FluxJobPlanner::Schedule(const std::string& job_id, Entry& entry, Millis now) {
  if (entry.in_flight != 0) return;
  std::optional<Millis> due = DueAt(entry, now);
  if (due) due = std::max(now, *due);
  SetDue(job_id, entry, due);
}

void FluxJobPlanner::SetDue(const std::string& job_id, Entry& entry, std::optional<Millis> due) {
  if (entry.due) (entry.in_ended ? ended_ : due_).erase({*entry.due, job_id});
  entry.due = due;
  entry.in_ended = entry.written_version == 0 && IsTerminal(entry.state);
  if (due) (entry.in_ended ? ended_ : due_).emplace(*due, job_id);
}

void FluxJobPlanner::LeaveOut() {
  while (ended_.size() > times_.most_ended) {
    Erase(std::string(ended_.begin()->second));
    ++left_out_;
  }
}

double FluxJobPlanner::Rate() const {
  const double most = times_.writes_per_second;
  return write_seconds_ * most > 1 ? 1 / write_seconds_ : most;
}

double FluxJobPlanner::Ease() const {
  return write_seconds_ > 0 ? std::min(1.0, kUsual * best_seconds_ / write_seconds_) : 1;
}

double FluxJobPlanner::LeisureRate(double part) const {
  return std::max(kLeastRate, part * Rate() * Ease() * Ease());
}

void FluxJobPlanner::Took(std::chrono::duration<double> write) {
  const double seconds = std::min(write.count(), kLongestSeconds);
  write_seconds_ += kNewest * (seconds - write_seconds_);
  best_seconds_ = best_seconds_ == 0 ? seconds : std::min(seconds, best_seconds_ * kForgetBest);
}

FluxJobWrite FluxJobPlanner::Take(std::set<std::pair<Millis, std::string>>& due,
                                  Millis now,
                                  int64_t* calls) {
  const std::string job_id = due.begin()->second;
  Entry& entry = jobs_.at(job_id);
  SetDue(job_id, entry, std::nullopt);
  entry.in_flight = entry.version;
  const std::optional<Millis> tell = TellAt(entry);
  entry.telling = tell && *tell <= now ? StepAt(entry, now) : JobStep::kNone;
  const bool shown = entry.failures == 0 && entry.written_version >= entry.version &&
                     entry.written_position == entry.position;
  entry.written_position = entry.position;
  *calls += (shown ? 0 : 1) + (entry.telling == JobStep::kNone ? 0 : 1);
  return {job_id, entry.version, entry.position, entry.resource_version, shown, entry.telling};
}

std::vector<FluxJobWrite> FluxJobPlanner::TakeDue(Millis now, size_t max) {
  std::vector<FluxJobWrite> writes;
  if (now < next_take_) return writes;
  int64_t calls = 0;
  const auto take = [&](auto& due, double rate) {
    const size_t most = std::min(max, static_cast<size_t>(std::max(1.0, rate)));
    while (!due.empty() && due.begin()->first <= now && writes.size() < most) {
      writes.push_back(Take(due, now, &calls));
    }
    return now + Millis(static_cast<int64_t>(1000 * static_cast<double>(calls) / rate));
  };
  if (now >= next_ended_) {
    const bool others_wait = !due_.empty() && due_.begin()->first <= now;
    next_ended_ = take(ended_, LeisureRate(others_wait ? kPartBesideOthers : 1));
  }
  const size_t ended = writes.size();
  next_take_ = take(due_, Rate());
  std::ranges::rotate(writes, writes.begin() + static_cast<std::ptrdiff_t>(ended));
  return writes;
}

void FluxJobPlanner::Written(const std::string& job_id,
                             uint64_t version,
                             std::string resource_version,
                             Millis now) {
  const auto it = jobs_.find(job_id);
  if (it == jobs_.end()) return;
  Entry& entry = it->second;
  if (version <= entry.in_flight) entry.told = std::max(entry.told, entry.telling);
  entry.in_flight = 0;
  entry.failures = 0;
  entry.written_version = std::max(entry.written_version, version);
  entry.resource_version = std::move(resource_version);
  entry.written_at = now;
  entry.telling = JobStep::kNone;
  if (IsShown(entry)) return Erase(job_id);
  Schedule(job_id, entry, now);
}

void FluxJobPlanner::Failed(const std::string& job_id, Millis now) {
  const auto it = jobs_.find(job_id);
  if (it == jobs_.end()) return;
  it->second.in_flight = 0;
  ++it->second.failures;
  Schedule(job_id, it->second, now);
}

void FluxJobPlanner::Gone(const std::string& job_id, uint64_t version, Millis now) {
  const auto it = jobs_.find(job_id);
  if (it == jobs_.end()) return;
  Entry& entry = it->second;
  if (entry.version <= version) return Erase(job_id);
  entry.in_flight = 0;
  entry.failures = 0;
  entry.written_version = std::max(entry.written_version, version);
  entry.written_at = now;
  entry.resource_version.clear();
  Schedule(job_id, entry, now);
}

void FluxJobPlanner::Erase(const std::string& job_id) {
  const auto it = jobs_.find(job_id);
  SetDue(job_id, it->second, std::nullopt);
  jobs_.erase(it);
}

void FluxJobPlanner::Lost(const std::set<std::string>& pools) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto job = it++;
    Entry& entry = job->second;
    if (!pools.contains(*entry.pool) || IsTerminal(entry.state)) continue;
    SetDue(job->first, entry, std::nullopt);
    jobs_.erase(job);
  }
}

std::vector<std::string> FluxJobPlanner::Waiting(size_t max) const {
  std::vector<std::pair<int64_t, std::string>> waiting;
  for (const auto& [job_id, entry] : jobs_) {
    if (entry.position > 0) waiting.emplace_back(entry.position, job_id);
  }
  const size_t shown = std::min(max, waiting.size());
  std::partial_sort(
      waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(shown), waiting.end());
  std::vector<std::string> jobs;
  for (size_t i = 0; i < shown; ++i) jobs.push_back(std::move(waiting[i].second));
  return jobs;
}

std::optional<Millis> FluxJobPlanner::NextDue() const {
  std::optional<Millis> next;
  if (!due_.empty()) next = std::max(due_.begin()->first, next_take_);
  if (!ended_.empty()) {
    const Millis ended = std::max({ended_.begin()->first, next_take_, next_ended_});
    next = std::min(next.value_or(ended), ended);
  }
  return next;
}

}  // namespace fluxqueue::queue
