#include "libs/simulation/simulator.h"

#include <algorithm>
#include <optional>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/model/workload.h"

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
      attempts_(ids_.size()),
      witness_(ids_) {
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
    if (progress && witness_.over() >= told + kProgressEvery) {
      told = witness_.over();
      progress(told);
    }
  }
  return witness_.Take();
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
    if (attempts_[end.job] != end.attempt) continue;  // it was stopped before
    events::v1::JobEnded* ended = Append().mutable_job_ended();
    ended->set_job_id(ids_[end.job]);
    ended->set_result(script_.Fails(end.job) ? events::v1::JobEnded::RESULT_FAILED
                                             : events::v1::JobEnded::RESULT_SUCCEEDED);
  }
  for (auto next = script_.NextTime(); next && *next <= now_; next = script_.NextTime()) {
    Envelope message = script_.Take();
    if (!IsHandedInForNothing(message)) log_.push_back(std::move(message));
  }
  if (log_.empty()) Append().mutable_tick();
}

bool Simulator::IsHandedInForNothing(const Envelope& message) const {
  if (message.job_submitted().after_version() == 0) return false;
  const std::optional<size_t> job = witness_.Find(message.job_submitted().job_id());
  return job && !witness_.IsRejected(*job);
}

absl::Status Simulator::ReadLog() {
  for (; !log_.empty(); log_.pop_front()) {
    const Envelope& message = log_.front();
    // Poison has changed nothing: a dead letter.
    if (absl::Status status = queue_.Handle(message, now_, &said_by_queue_);
        !status.ok() && !IsPoison(status)) {
      return status;
    }
    queue_.Commit();
    if (absl::Status status = matcher_.Handle(message, now_, &said_by_matcher_);
        !status.ok() && !IsPoison(status)) {
      return status;
    }
    matcher_.Commit();
    // `message` stays where it is: a deque does not move what it holds.
    for (Envelope& said : said_by_queue_.pool) log_.push_back(std::move(said));
    for (Envelope& said : said_by_matcher_) log_.push_back(std::move(said));
    for (const Envelope& said : said_by_queue_.jobs) {
      const JobFact& fact = said.job_fact();
      const std::optional<size_t> job = witness_.Find(fact.job_id());
      if (!job) continue;  // the script does not ask about it
      witness_.Hear(*job, fact, now_);
      React(*job, fact);
    }
    said_by_queue_.pool.clear();
    said_by_queue_.jobs.clear();
    said_by_matcher_.clear();
  }
  return absl::OkStatus();
}

void Simulator::React(size_t job, const JobFact& fact) {
  switch (fact.state()) {
    case events::v1::JOB_STATE_ALLOCATED:
      return Start(job, fact);
    case events::v1::JOB_STATE_STOPPING: {
      attempts_[job] = 0;
      events::v1::JobStopped* stopped = Append().mutable_job_stopped();
      stopped->set_job_id(fact.job_id());
      stopped->set_attempt(fact.attempt());
      return;
    }
    case events::v1::JOB_STATE_RUNNING: {  // that came from here
      if (fact.vacate().empty()) return;
      events::v1::SlotsVacated* vacated = Append().mutable_slots_vacated();
      vacated->set_job_id(fact.job_id());
      vacated->set_attempt(fact.attempt());
      *vacated->mutable_slots() = fact.vacate();
      return;
    }
    default:  // it waits, or is over
      attempts_[job] = 0;
  }
}

void Simulator::Start(size_t job, const JobFact& fact) {
  if (!nodes_.empty()) witness_.SetPlaces(job, PlacesOf(fact));
  if (model::IsClaim(fact.workload().kind())) return;  // the queue starts and ends it itself
  attempts_[job] = fact.attempt();
  events::v1::JobStarted* started = Append().mutable_job_started();
  started->set_job_id(fact.job_id());
  started->set_attempt(fact.attempt());
  started->set_started_ms(now_.count());
  if (const std::optional<Millis> run = script_.RunTimeOf(job)) {
    ends_.push({now_ + *run, starts_++, job, fact.attempt()});
  }
}

std::vector<Place> Simulator::PlacesOf(const JobFact& fact) const {
  const graph::Placement* placement =
      matcher_.engine().Find({fact.job_id(), fact.attempt(), /*part=*/0});
  CHECK(placement != nullptr, "job {} is allocated and holds nothing", fact.job_id());
  std::vector<Place> places;
  for (const graph::PlacedSlot& slot : placement->slots) {
    const auto node = nodes_.find(slot.node);
    if (node != nodes_.end()) places.push_back({node->second, slot.devices});
  }
  return places;
}

}  // namespace fluxqueue::simulation
