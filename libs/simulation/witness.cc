#include "libs/simulation/witness.h"

#include "libs/queue_core/reasons.h"

namespace fluxqueue::simulation {

using events::v1::JobFact;

Witness::Witness(const std::vector<std::string>& jobs)
    : waits_(jobs.size()), outcomes_(jobs.size()) {
  jobs_.reserve(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) jobs_.emplace(jobs[i], i);
}

std::optional<size_t> Witness::Find(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return std::nullopt;
  return found->second;
}

void Witness::Hear(size_t job, const JobFact& fact, Millis now) {
  if (fact.version() == 1) outcomes_[job].submitted = now;
  switch (fact.state()) {
    case events::v1::JOB_STATE_PENDING:
      return Wait(job, fact);
    case events::v1::JOB_STATE_SUBMITTED:
      return StopWaiting(job);
    case events::v1::JOB_STATE_ALLOCATED:
      return Start(job, now);
    case events::v1::JOB_STATE_SUCCEEDED:
      return Finish(job, true, now);
    case events::v1::JOB_STATE_FAILED:
    case events::v1::JOB_STATE_CANCELLED:
    case events::v1::JOB_STATE_REJECTED:
      return Finish(job, false, now);
    default:  // it holds what it was given
      return;
  }
}

void Witness::Wait(size_t job, const JobFact& fact) {
  outcomes_[job].end = Outcome::End::kWaits;
  if (fact.reason() == queue_core::reason::kReserved) {
    Millis& promised = outcomes_[job].promised;
    const Millis start(fact.start_ms());
    if (promised == Millis(0) || start < promised) promised = start;
  }
  if (fact.reason() == queue_core::reason::kHeld) return StopWaiting(job);
  Waiting& waits = waits_[job];
  const Rank rank{-int64_t{fact.priority()}, job};
  if (waits.queue == fact.queue() && waits.rank == rank) return;
  StopWaiting(job);
  waits = {fact.queue(), rank};
  lines_[waits.queue].insert(rank);
}

void Witness::StopWaiting(size_t job) {
  Waiting& waits = waits_[job];
  if (waits.queue.empty()) return;
  lines_[waits.queue].erase(waits.rank);
  waits.queue.clear();
}

void Witness::Start(size_t job, Millis now) {
  const Waiting& waits = waits_[job];
  Outcome& outcome = outcomes_[job];
  if (!waits.queue.empty()) outcome.backfilled = *lines_[waits.queue].begin() < waits.rank;
  StopWaiting(job);
  outcome.end = Outcome::End::kRuns;
  outcome.started = now;
}

void Witness::Finish(size_t job, bool succeeded, Millis now) {
  StopWaiting(job);
  Outcome& outcome = outcomes_[job];
  const bool ran = outcome.end == Outcome::End::kRuns;
  outcome.end = ran || succeeded ? Outcome::End::kEnded : Outcome::End::kRejected;
  outcome.ended = now;
  ++over_;
}

}  // namespace fluxqueue::simulation
