#include "libs/simulation/simulator.h"

#include <algorithm>
#include <optional>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/model/workload.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::simulation {
namespace {

using events::v1::Envelope;
using events::v1::JobFact;

constexpr Millis kTick{1'000};
// Deadlines one after another with nothing else to come: more than any retry or grace needs.
constexpr uint64_t kMostIdleTicks = 100'000;
// Jobs between two calls of Progress.
constexpr size_t kProgressEvery = 256;

}  // namespace

Simulator::Simulator(std::string pool,
                     std::vector<std::string> jobs,
                     const std::vector<std::string>& nodes,
                     Script& script)
    : pool_(std::move(pool)),
      ids_(std::move(jobs)),
      script_(script),
      queue_(pool_),
      matcher_(pool_),
      live_(ids_.size()),
      outcomes_(ids_.size()) {
  jobs_.reserve(ids_.size());
  for (size_t i = 0; i < ids_.size(); ++i) jobs_.emplace(ids_[i], i);
  for (size_t i = 0; i < nodes.size(); ++i) nodes_.emplace(nodes[i], static_cast<uint32_t>(i));
}

absl::StatusOr<std::vector<Outcome>> Simulator::Run(const Progress& progress) {
  size_t told = 0;
  while (const std::optional<Millis> next = NextTime()) {
    now_ = *next;
    AppendDue();
    RETURN_IF_ERROR(ReadLog());
    if (idle_ticks_ > kMostIdleTicks) {
      return Internal("the queue names one deadline after another, and nothing comes of them");
    }
    if (progress && over_ >= told + kProgressEvery) {
      progress(over_);
      told = over_;
    }
  }
  return std::move(outcomes_);
}

std::optional<Millis> Simulator::NextTime() {
  std::optional<Millis> next = script_.NextTime();
  if (!ends_.empty() && (!next || ends_.top().time < *next)) next = ends_.top().time;
  std::optional<Millis> deadline = queue_.NextDeadline();
  // The time of a deadline has been read, and it stands: the live queue would look again, too.
  if (deadline && *deadline <= now_) deadline = now_ + kTick;
  idle_ticks_ = deadline && !next ? idle_ticks_ + 1 : 0;
  if (deadline && (!next || *deadline < *next)) next = deadline;
  return next;
}

Envelope& Simulator::Append() {
  Envelope& message = log_.emplace_back();
  message.set_pool(pool_);
  return message;
}

void Simulator::AppendDue() {
  for (; !ends_.empty() && ends_.top().time <= now_; ends_.pop()) {
    const End& end = ends_.top();
    if (live_[end.job].attempt != end.attempt) continue;  // it was stopped before
    events::v1::JobEnded* ended = Append().mutable_job_ended();
    ended->set_job_id(ids_[end.job]);
    ended->set_result(events::v1::JobEnded::RESULT_SUCCEEDED);
  }
  for (auto next = script_.NextTime(); next && *next <= now_; next = script_.NextTime()) {
    log_.push_back(script_.Take());
  }
  if (log_.empty()) Append().mutable_tick();
}

absl::Status Simulator::ReadLog() {
  for (; !log_.empty(); log_.pop_front()) {
    const Envelope& message = log_.front();
    if (message.has_job_submitted()) {
      const auto job = jobs_.find(message.job_submitted().job_id());
      if (job != jobs_.end()) outcomes_[job->second].submitted = now_;
    }
    RETURN_IF_ERROR(queue_.Handle(message, now_, &said_by_queue_));
    queue_.Commit();
    RETURN_IF_ERROR(matcher_.Handle(message, now_, &said_by_matcher_));
    matcher_.Commit();
    // `message` stays where it is: a deque does not move what it holds.
    for (Envelope& said : said_by_queue_.pool) log_.push_back(std::move(said));
    for (Envelope& said : said_by_matcher_) log_.push_back(std::move(said));
    for (const Envelope& fact : said_by_queue_.jobs) Hear(fact.job_fact());
    said_by_queue_.pool.clear();
    said_by_queue_.jobs.clear();
    said_by_matcher_.clear();
  }
  return absl::OkStatus();
}

void Simulator::Hear(const JobFact& fact) {
  const auto found = jobs_.find(fact.job_id());
  if (found == jobs_.end()) return;  // the script does not ask about it
  const size_t job = found->second;
  switch (fact.state()) {
    case events::v1::JOB_STATE_PENDING:
      return Wait(job, fact);
    case events::v1::JOB_STATE_ALLOCATED:
      return Start(job, fact);
    case events::v1::JOB_STATE_STOPPING: {
      live_[job].attempt = 0;
      events::v1::JobStopped* stopped = Append().mutable_job_stopped();
      stopped->set_job_id(fact.job_id());
      stopped->set_attempt(fact.attempt());
      return;
    }
    case events::v1::JOB_STATE_SUBMITTED:
      return StopWaiting(job);
    case events::v1::JOB_STATE_SUCCEEDED:
      return Finish(job, Outcome::End::kEnded);
    case events::v1::JOB_STATE_FAILED:
    case events::v1::JOB_STATE_CANCELLED:
    case events::v1::JOB_STATE_REJECTED:
      return Finish(job, Outcome::End::kRejected);
    default:  // it runs: that came from here
      return;
  }
}

void Simulator::Wait(size_t job, const JobFact& fact) {
  Live& live = live_[job];
  live.attempt = 0;
  outcomes_[job].end = Outcome::End::kWaits;
  if (fact.reason() == queue_core::reason::kHeld) return StopWaiting(job);
  const Rank rank{-int64_t{fact.priority()}, job};
  if (live.queue == fact.queue() && live.rank == rank) return;
  StopWaiting(job);
  live.queue = fact.queue();
  live.rank = rank;
  waiting_[live.queue].insert(rank);
}

void Simulator::StopWaiting(size_t job) {
  Live& live = live_[job];
  if (live.queue.empty()) return;
  waiting_[live.queue].erase(live.rank);
  live.queue.clear();
}

void Simulator::Start(size_t job, const JobFact& fact) {
  Live& live = live_[job];
  Outcome& outcome = outcomes_[job];
  if (!live.queue.empty()) outcome.backfilled = *waiting_[live.queue].begin() < live.rank;
  StopWaiting(job);
  live.attempt = fact.attempt();
  outcome.end = Outcome::End::kRuns;
  outcome.started = now_;
  outcome.places.clear();
  if (!nodes_.empty()) {
    const graph::Placement* placement =
        matcher_.engine().Find({fact.job_id(), fact.attempt(), /*part=*/0});
    CHECK(placement != nullptr, "job {} is allocated and holds nothing", fact.job_id());
    for (const graph::PlacedSlot& slot : placement->slots) {
      const auto node = nodes_.find(slot.node);
      if (node != nodes_.end()) outcome.places.push_back({node->second, slot.devices});
    }
  }
  if (model::IsClaim(fact.workload().kind())) return;  // the queue starts and ends it itself
  events::v1::JobStarted* started = Append().mutable_job_started();
  started->set_job_id(fact.job_id());
  started->set_attempt(fact.attempt());
  started->set_started_ms(now_.count());
  if (const std::optional<Millis> run = script_.RunTimeOf(job)) {
    ends_.push({now_ + *run, starts_++, job, fact.attempt()});
  }
}

void Simulator::Finish(size_t job, Outcome::End end) {
  StopWaiting(job);
  live_[job].attempt = 0;
  outcomes_[job].end = end;
  outcomes_[job].ended = now_;
  ++over_;
}

}  // namespace fluxqueue::simulation
