#include "services/binder/adapters/jobs_handler.h"

#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "services/binder/adapters/binder_store.h"

namespace fluxqueue::binder {
namespace {

// How often the watch is asked whether it stands again.
constexpr Millis kViewCheck{500};

}  // namespace

absl::Status JobsHandler::Load(pqxx::transaction_base& tx, int partition) {
  pools_ = LoadPools(tx);
  const Millis now = Now();
  for (const StoredJob& stored : LoadJobs(tx, partition)) {
    RETURN_IF_ERROR(planner_.Restore(stored.job, stored.slots, now));
  }
  return absl::OkStatus();
}

absl::Status JobsHandler::Handle(const delivery::Record& record, delivery::Outbox&) {
  if (!record.envelope.has_job_fact()) return absl::OkStatus();
  const events::v1::JobFact& fact = record.envelope.job_fact();
  RETURN_IF_ERROR(planner_.Fold(record.partition, fact, Now()));
  if (!pools_.contains(fact.pool())) pools_wanted_.insert(fact.pool());
  return absl::OkStatus();
}

std::optional<std::chrono::steady_clock::time_point> JobsHandler::WakeAt() const {
  std::optional<Millis> wake = planner_.WakeAt();
  if (!in_view_ && pods_listed_) {
    const Millis check = Now() + kViewCheck;
    wake = wake.has_value() ? std::min(*wake, check) : check;
  }
  if (!wake.has_value()) return std::nullopt;
  return std::chrono::steady_clock::time_point(*wake);
}

void JobsHandler::TakeNews(Millis now) {
  for (News& news : deps_.inbox.Take()) {
    if (auto* pod = std::get_if<kubernetes::Seen<PodFacts>>(&news)) {
      planner_.PodSeen(std::move(pod->object));
    } else if (auto* gone = std::get_if<kubernetes::Gone>(&news)) {
      planner_.PodGone(gone->uid);
    } else if (auto* result = std::get_if<CallResult>(&news)) {
      planner_.Answer(std::move(*result));
    } else {
      pods_listed_ = true;
    }
  }
  in_view_ = pods_listed_ && deps_.pods_in_view();
  planner_.SetPodsInView(in_view_, now);
}

absl::Status JobsHandler::Poll(delivery::Outbox& outbox) {
  const Millis now = Now();
  TakeNews(now);
  sayings_.clear();
  planner_.Plan(now, &sayings_);
  for (const Saying& saying : sayings_) {
    const auto pool = pools_.find(saying.envelope.pool());
    CHECK(pool != pools_.end(), "pool {} was known when its job came", saying.envelope.pool());
    outbox.AppendToPool(saying.partition, pool->second, saying.envelope);
  }
  return absl::OkStatus();
}

bool JobsHandler::HasRows() const {
  return !pools_wanted_.empty() || planner_.HasRows(Now());
}

absl::Status JobsHandler::Write(pqxx::transaction_base& tx) {
  if (!pools_wanted_.empty()) pools_ = LoadPools(tx);
  for (const std::string& pool : pools_wanted_) {
    if (!pools_.contains(pool)) {
      return Unavailable("pool '{}' has jobs and no row in admission.pools: is admission running?",
                         pool);
    }
  }
  const Millis now = Now();
  const std::vector<PlacementKey> wanted = planner_.WantedPlacements(now);
  const auto placements = LoadPlacements(tx, wanted);
  for (const PlacementKey& key : wanted) {
    const auto row = placements.find({key.job_id, key.attempt});
    planner_.Placed(key, row == placements.end() ? nullptr : &row->second, now);
  }
  planner_.PlanPlaced(now);
  WriteRows(tx, planner_.Changes());
  return absl::OkStatus();
}

void JobsHandler::Commit() {
  deps_.submit(planner_.Commit());
  for (const Saying& saying : sayings_) {
    deps_.metrics.Said(saying);
    Trace(saying);
  }
  sayings_.clear();
  pools_wanted_.clear();
  deps_.metrics.Following(planner_.jobs(), planner_.pods().size());
  deps_.metrics.AnswersDropped(planner_.dropped_answers());
}

void JobsHandler::Trace(const Saying& saying) const {
  if (!saying.envelope.has_job_bound()) return;
  const events::v1::JobBound& bound = saying.envelope.job_bound();
  const tracing::Time end = deps_.clock.Now();
  deps_.tracer.JobSpan(bound.job_id(), bound.attempt(), "bind", end - saying.after, end);
}

void JobsHandler::Rollback() {
  planner_.Rollback();
  sayings_.clear();
  pools_wanted_.clear();
}

Millis JobsHandler::Now() const {
  return std::chrono::floor<Millis>(deps_.clock.Monotonic().time_since_epoch());
}

}  // namespace fluxqueue::binder
