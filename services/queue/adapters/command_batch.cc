#include "services/queue/adapters/command_batch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "services/queue/adapters/queue_store.h"

namespace fluxqueue::queue {
namespace {

using Outcome = ErrandResult::Outcome;

// Of one batch.
constexpr size_t kMost = 1000;

bool IsClaim(const Errand& errand) {
  return errand.command.has_value() && errand.command->has_submit_claim();
}

// What stands for the errand in the tables.
const std::string& KeyOf(const Errand& errand) {
  return IsClaim(errand) ? errand.job_id : errand.command->client_id();
}

}  // namespace

void CommandBatch::Poll(std::chrono::steady_clock::time_point now, delivery::Outbox& outbox) {
  std::set<std::string> clients;
  std::vector<Errand> later;
  for (Errand& errand : desk_.Take(kMost)) {
    ErrandResult result = Judge(errand, now);
    if (result.cycle != 0) {
      errand.command->mutable_abandon_cycle()->set_cycle_id(result.cycle);
    }
    const bool says = result.outcome == Outcome::kDone && errand.command.has_value();
    // Which of two of the same id is the first is settled by their order.
    if (says && !KeyOf(errand).empty() && !clients.insert(KeyOf(errand)).second) {
      later.push_back(std::move(errand));
      continue;
    }
    if (says) Say(errand, outbox);
    taken_.push_back({std::move(errand), std::move(result)});
  }
  if (!later.empty()) desk_.Return(std::move(later));
}

ErrandResult CommandBatch::Judge(const Errand& errand,
                                 std::chrono::steady_clock::time_point now) const {
  if (now > errand.deadline) return {.outcome = Outcome::kLate};
  const std::optional<HeldPool> pool = find_(errand.pool);
  if (!pool.has_value()) return {.outcome = Outcome::kNotHeld};
  if (errand.known) return {.outcome = Outcome::kRepeated};
  if (IsClaim(errand)) return JudgeClaim(errand, *pool->core);
  if (errand.command.has_value() && errand.command->has_abandon_cycle()) {
    return JudgeAbandon(errand.command->abandon_cycle().cycle_id(), *pool->core);
  }
  if (pool->core->Find(errand.job_id) == nullptr) return {.outcome = Outcome::kNotLive};
  if (errand.command.has_value() && errand.command->has_move_job()) {
    const std::string& queue = errand.command->move_job().queue();
    const queue_core::Job& job = *pool->core->Find(errand.job_id);
    if (!model::kWaitingStates.Has(job.state) && job.queue != queue) {
      return {.outcome = Outcome::kRefused,
              .why = MakeStatus(absl::StatusCode::kFailedPrecondition,
                                "job {} is {}: what has started stays in its queue, which is {}; "
                                "only a job that waits can be moved",
                                errand.job_id,
                                model::Name(job.state),
                                job.queue)};
    }
    if (pool->core->FindQueue(queue) == nullptr) {
      return {.outcome = Outcome::kRefused,
              .why = MakeStatus(absl::StatusCode::kNotFound,
                                "there is no FluxQueue '{}' in pool {}: a job stays in its pool",
                                queue,
                                errand.pool)};
    }
  }
  return {};
}

ErrandResult CommandBatch::JudgeClaim(const Errand& errand, const queue_core::QueueCore& core) {
  if (core.Remembers(errand.job_id)) return {.outcome = Outcome::kRepeated};
  const events::v1::SubmitClaim& claim = errand.command->submit_claim();
  const events::v1::QueueConfigured* queue = core.FindQueue(claim.queue());
  const int64_t most = queue == nullptr ? 0 : queue->max_duration_ms();
  if (most == 0 || !claim.has_duration_ms()) return {};
  if (claim.duration_ms() > 0 && claim.duration_ms() <= most) return {};
  return {
      .outcome = Outcome::kRefused,
      .why = rpc::InField(
          InvalidArgument("duration: {} is more than FluxQueue '{}' allows; allowed: up to {} s",
                          claim.duration_ms() == 0
                              ? "unlimited"
                              : fmt::format("{} s", (claim.duration_ms() + 999) / 1000),
                          claim.queue(),
                          most / 1000),
          "duration")};
}

ErrandResult CommandBatch::JudgeAbandon(uint64_t named, const queue_core::QueueCore& core) {
  const uint64_t cycle = core.cycle_in_flight();
  if (cycle != 0 && (named == 0 || named == cycle)) return {.cycle = cycle};
  return {.outcome = Outcome::kRefused,
          .why = MakeStatus(absl::StatusCode::kFailedPrecondition,
                            "no cycle {}of pool {} waits for its answer{}",
                            named == 0 ? "" : fmt::format("{} ", named),
                            core.pool(),
                            cycle == 0 ? "" : fmt::format("; cycle {} does", cycle))};
}

void CommandBatch::Say(const Errand& errand, delivery::Outbox& outbox) {
  const int partition = find_(errand.pool)->partition;
  events::v1::Envelope envelope;
  envelope.set_pool(errand.pool);
  *envelope.mutable_command_accepted() = *errand.command;
  outbox.AppendToPool(partition, partition, std::move(envelope));
  ++commands_;
}

bool CommandBatch::Mark(const std::vector<std::string>& known, bool claims) {
  for (Taken& taken : taken_) {
    const Errand& errand = taken.errand;
    if (!errand.command.has_value() || IsClaim(errand) != claims) continue;
    if (taken.result.outcome != Outcome::kDone) continue;
    if (std::find(known.begin(), known.end(), KeyOf(errand)) != known.end()) {
      taken.errand.known = true;
    }
  }
  return !known.empty();
}

absl::Status CommandBatch::Write(pqxx::transaction_base& tx) {
  if (commands_ == 0) return absl::OkStatus();
  std::vector<std::string> claims;
  std::vector<AcceptedCommand> commands;
  for (const Taken& taken : taken_) {
    const Errand& errand = taken.errand;
    if (taken.result.outcome != Outcome::kDone || !errand.command.has_value()) continue;
    if (IsClaim(errand)) {
      claims.push_back(errand.job_id);
    } else if (!errand.command->client_id().empty()) {
      commands.push_back({errand.command->client_id(), errand.job_id});
    }
  }
  bool repeated = false;
  if (!claims.empty()) repeated = Mark(FindJobs(tx, claims), /*claims=*/true);
  if (!commands.empty()) repeated |= Mark(InsertCommands(tx, commands), /*claims=*/false);
  if (!repeated) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kAborted, "a command was accepted before: the batch again");
}

void CommandBatch::AddJob(const Errand& errand, ErrandResult* result) const {
  const std::optional<HeldPool> pool = find_(errand.pool);
  if (!pool.has_value()) return;
  const queue_core::Job* job = pool->core->Find(errand.job_id);
  if (job == nullptr) return;
  result->job = queue_core::ToFact(*job, errand.pool);
  result->position = static_cast<int64_t>(pool->core->Position(errand.job_id));
  if (errand.explain) result->explanation = pool->core->Explain(errand.job_id);
}

void CommandBatch::Commit() {
  for (Taken& taken : taken_) {
    AddJob(taken.errand, &taken.result);
    if (taken.errand.command.has_value()) metrics_.Command(*taken.errand.command, taken.result);
    taken.errand.done(std::move(taken.result));
  }
  taken_.clear();
  commands_ = 0;
}

void CommandBatch::Rollback() {
  std::vector<Errand> errands;
  errands.reserve(taken_.size());
  for (Taken& taken : taken_) errands.push_back(std::move(taken.errand));
  desk_.Return(std::move(errands));
  taken_.clear();
  commands_ = 0;
}

}  // namespace fluxqueue::queue
