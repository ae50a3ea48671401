#include "services/binder/adapters/jobs_handler.h"

#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kafka/topics.h"
#include "services/binder/adapters/binder_store.h"

namespace fluxqueue::binder {
namespace {

// How often the watch is asked whether it stands again.
constexpr Millis kViewCheck{500};
// How often what pods say of their wait is compared with what the queue says.
constexpr Millis kCompareInterval{10'000};
// How often the jobs are compared with those of the queue's table, and after a claim.
constexpr Millis kCatchUpInterval{30'000};
constexpr Millis kNextPageInterval{1000};
// While no partition is held there is but a turn now and then: it takes as much as a full inbox.
constexpr int kMostIdleTurns = 50;
// Where letters about pods come from.
constexpr const char* kStream = "binder/pods";

}  // namespace

absl::Status JobsHandler::Load(pqxx::transaction_base& tx, int partition) {
  pools_ = LoadPools(tx);
  const Millis now = Now();
  for (const StoredJob& stored : LoadJobs(tx, partition)) {
    RETURN_IF_ERROR(planner_.Restore(stored.job, stored.slots, now));
  }
  held_.insert(partition);
  catch_up_at_ = now;
  return absl::OkStatus();
}

void JobsHandler::Drop(int partition) {
  planner_.Drop(partition);
  waiting_.Drop(partition);
  // It may be of that partition; what is lost of others is said again, or with their next reason.
  deps_.pods.Clear();
  held_.erase(partition);
}

// Without jobs there is nothing to plan; answers are told of the pods that they have seen.
absl::Status JobsHandler::Idle() {
  absl::Status status;
  for (int turn = 0; turn < kMostIdleTurns && status.ok(); ++turn) {
    const Millis now = Now();
    status = TakeNews(now);
    if (status.ok()) status = intake_.Plan([&] { planner_.Plan(now, &sayings_); });
    if (status.ok()) {
      Commit();
    } else {
      Rollback();
    }
    if (!intake_.HasWork()) break;
  }
  return status;
}

bool JobsHandler::HasWork() const {
  return planner_.HasWork() || intake_.HasWork() || deps_.quarantine.HasPending();
}

absl::Status JobsHandler::Handle(const delivery::Record& record, delivery::Outbox&) {
  if (!record.envelope.has_job_fact()) return absl::OkStatus();
  const events::v1::JobFact& fact = record.envelope.job_fact();
  RETURN_IF_ERROR(planner_.Fold(record.partition, fact, Now(), AgeOf(fact)));
  waiting_.Learn(record.partition, fact, Now());
  if (!pools_.contains(fact.pool())) pools_wanted_.insert(fact.pool());
  return absl::OkStatus();
}

std::optional<std::chrono::steady_clock::time_point> JobsHandler::WakeAt() const {
  std::optional<Millis> wake = planner_.WakeAt();
  if (!in_view_ && intake_.listed()) {
    const Millis check = Now() + kViewCheck;
    wake = wake.has_value() ? std::min(*wake, check) : check;
  }
  if (!held_.empty()) wake = std::min(wake.value_or(catch_up_at_), catch_up_at_);
  if (SeesPods()) {
    Millis tell_at = waiting_.NextDue().value_or(compare_at_);
    if (!deps_.pods.idle()) tell_at = std::max(tell_at, Now() + kViewCheck);
    tell_at = std::min(tell_at, compare_at_);
    wake = std::min(wake.value_or(tell_at), tell_at);
  }
  const auto look_at = intake_.WakeAt();
  if (!wake.has_value()) return look_at;
  const std::chrono::steady_clock::time_point plan_at(*wake);
  return look_at.has_value() ? std::min(*look_at, plan_at) : plan_at;
}

absl::Status JobsHandler::TakeNews(Millis now) {
  RETURN_IF_ERROR(intake_.Take());
  in_view_ = intake_.listed() && deps_.pods_in_view();
  planner_.SetPodsInView(in_view_, now);
  return absl::OkStatus();
}

void JobsHandler::SayLeftOut(delivery::Outbox& outbox) {
  left_out_ = deps_.quarantine.Untold();
  for (const delivery::QuarantineRow& row : *left_out_) {
    delivery::DeadLetter letter = delivery::MakeLetter(row, kStream);
    letter.source = *held_.begin();
    outbox.AppendLetter(std::move(letter));
  }
}

absl::Status JobsHandler::Poll(delivery::Outbox& outbox) {
  const Millis now = Now();
  RETURN_IF_ERROR(TakeNews(now));
  sayings_.clear();
  RETURN_IF_ERROR(intake_.Plan([&] { planner_.Plan(now, &sayings_); }));
  SayLeftOut(outbox);
  for (const Saying& saying : sayings_) {
    const auto pool = pools_.find(saying.envelope.pool());
    CHECK(pool != pools_.end(), "pool {} was known when its job came", saying.envelope.pool());
    outbox.AppendToPool(saying.partition, pool->second, saying.envelope);
  }
  return absl::OkStatus();
}

bool JobsHandler::HasRows() const {
  return !pools_wanted_.empty() || planner_.HasRows(Now()) || IsCompareDue() || IsCatchUpDue();
}

void JobsHandler::CatchUp(pqxx::transaction_base& tx) {
  const Millis now = Now();
  const Missed missed = LoadMissed(tx, catch_up_after_);
  catch_up_after_ = missed.next;
  catch_up_at_ = now + (missed.next.empty() ? kCatchUpInterval : kNextPageInterval);
  size_t taken = 0;
  for (const events::v1::JobFact& fact : missed.facts) {
    const int partition = kafka::JobPartition(fact.job_id());
    if (!held_.contains(partition)) continue;
    if (const absl::Status status = planner_.Fold(partition, fact, now, AgeOf(fact));
        !status.ok()) {
      LogError("a row of queue.jobs cannot be followed",
               {{"job", fact.job_id()}, {"because", Message(status)}});
      continue;
    }
    ++taken;
    waiting_.Learn(partition, fact, now);
    if (!pools_.contains(fact.pool())) pools_wanted_.insert(fact.pool());
  }
  for (const std::string& job_id : missed.ends) taken += planner_.SayEndAgain(job_id);
  if (taken > 0) {
    LogInfo("jobs taken from the queue's table, their facts have not come yet",
            {{"jobs", fmt::format("{}", taken)}});
  }
}

absl::Status JobsHandler::Write(pqxx::transaction_base& tx) {
  if (IsCatchUpDue()) CatchUp(tx);
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
  RETURN_IF_ERROR(intake_.Plan([&] {
    for (const PlacementKey& key : wanted) {
      const auto row = placements.find({key.job_id, key.attempt});
      planner_.Placed(key, row == placements.end() ? nullptr : &row->second, now);
    }
    planner_.PlanPlaced(now);
  }));
  WriteRows(tx, planner_.Changes());
  if (IsCompareDue()) CompareWaits(tx);
  return absl::OkStatus();
}

void JobsHandler::CompareWaits(pqxx::transaction_base& tx) {
  // Also when it fails: what is committed with it does not wait for the queue's tables again.
  compare_at_ = Now() + kCompareInterval;
  std::optional<std::vector<events::v1::JobFact>> facts = LoadLackNodes(tx);
  if (!facts.has_value()) return;
  std::vector<LackingJob> lacking;
  for (events::v1::JobFact& fact : *facts) {
    const auto pool = pools_.find(fact.pool());
    const bool ours = pool != pools_.end() && held_.contains(pool->second);
    lacking.push_back({ours ? std::optional(pool->second) : std::nullopt, std::move(fact)});
  }
  lacking_ = std::move(lacking);
}

void JobsHandler::TellPods(Millis now) {
  const PodBoard& board = planner_.pods();
  // What was told before goes first.
  const size_t most = deps_.pods.idle() ? PodTeller::kMost : 0;
  if (!lacking_.has_value()) {
    if (SeesPods() && most > 0) deps_.pods.Tell(waiting_.TakeDue(board, most, now));
    return;
  }
  // The replica that holds the first partition.
  const bool first = held_.contains(0);
  if (first) {
    std::vector<events::v1::JobFact> facts;
    for (const LackingJob& job : *lacking_) facts.push_back(job.fact);
    deps_.lack(std::move(facts));
  }
  deps_.pods.Tell(waiting_.Compare(
      board,
      *lacking_,
      {.ours = first, .starts = [this](const PodFacts& pod) { return planner_.Follows(pod); }},
      most));
  lacking_.reset();
}

void JobsHandler::Commit() {
  deps_.submit(planner_.Commit());
  for (const Saying& saying : sayings_) {
    deps_.metrics.Said(saying);
    Trace(saying);
  }
  sayings_.clear();
  pools_wanted_.clear();
  if (left_out_.has_value()) deps_.quarantine.Saved();
  for (const delivery::QuarantineRow& row : left_out_.value_or(LeftOut{})) deps_.tell(row);
  left_out_.reset();
  TellPods(Now());
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
  left_out_.reset();
  lacking_.reset();
  sayings_.clear();
  pools_wanted_.clear();
}

Millis JobsHandler::AgeOf(const events::v1::JobFact& fact) const {
  const auto now = std::chrono::floor<Millis>(deps_.clock.Now().time_since_epoch());
  return std::max(Millis(0), now - Millis(fact.time_ms()));
}

Millis JobsHandler::Now() const {
  return std::chrono::floor<Millis>(deps_.clock.Monotonic().time_since_epoch());
}

}  // namespace fluxqueue::binder
