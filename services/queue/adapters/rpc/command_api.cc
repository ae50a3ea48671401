#include "services/queue/adapters/rpc/command_api.h"

#include <map>
#include <utility>

#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"
#include "services/queue/adapters/rpc/claim_request.h"
#include "services/queue/adapters/rpc/requests.h"
#include "services/queue/domain/job_message.h"

namespace fluxqueue::queue {
namespace {

using events::v1::JobFact;
using Outcome = ErrandResult::Outcome;

absl::Status HasEnded(const JobFact& job) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "job {} has ended ({}): nothing can be done to it any more",
                    job.job_id(),
                    model::Name(static_cast<model::JobState>(job.state())));
}

absl::Status Late() {
  return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                    "the deadline came before the pool's log was written; the call may still be "
                    "accepted: repeat it with the same client_id");
}

// The outcomes that do not depend on what was asked.
Reply ToReply(const std::string& pool, const ErrandResult& result) {
  switch (result.outcome) {
    case Outcome::kDone:
      return {};
    case Outcome::kRepeated:
      return {.repeated = true};
    case Outcome::kNotHeld:
      return {.elsewhere = pool};
    case Outcome::kNotLive:
      return {.status = MakeStatus(absl::StatusCode::kFailedPrecondition,
                                   "the job has ended meanwhile: nothing can be done to it")};
    case Outcome::kRefused:
      return {.status = result.why};
    case Outcome::kLate:
      return {.status = Late()};
    case Outcome::kFull:
      return {.status = MakeStatus(absl::StatusCode::kResourceExhausted,
                                   "{} commands and questions wait already, which is as many as "
                                   "may: call again later",
                                   CommandDesk::kMost)};
  }
  return {};
}

absl::Status TooManyClaims(const std::string& tenant, int64_t has, int64_t most) {
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    "claims of '{}' that have not ended: {}; allowed: {} (spec.claimQuota); "
                    "release some, or have it raised",
                    tenant,
                    has,
                    most);
}

absl::Status TooManyBytes(const std::string& tenant, int64_t would_have, int64_t most) {
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    "with this one the jobspecs of the claims of '{}' would have {} bytes; "
                    "allowed: {} (spec.claimBytes); release some, shorten their constraints, or "
                    "have it raised",
                    tenant,
                    would_have,
                    most);
}

// After it what is in the log and not read back counts no more.
constexpr std::chrono::minutes kLongestOnItsWay(10);

}  // namespace

// ---- commands and questions about a job that is there

void CommandApi::Put(Errand errand, const JobFact& job, const Answer& answer) {
  errand.done = [answer, job](ErrandResult result) {
    Reply reply = ToReply(job.pool(), result);
    reply.job = result.job.has_value() ? *std::move(result.job) : job;
    reply.position = result.position;
    reply.explanation = std::move(result.explanation);
    answer(std::move(reply));
  };
  desk_.Put(std::move(errand));
}

std::optional<Reply> CommandApi::Repeated(const std::string& client_id, const std::string& job_id) {
  if (client_id.empty()) return std::nullopt;
  if (absl::Status status = CheckText("client_id", client_id); !status.ok()) {
    return Reply{.status = std::move(status)};
  }
  const absl::StatusOr<std::optional<std::string>> known = facts_.Accepted(client_id);
  if (!known.ok()) return Reply{.status = known.status()};
  if (!known->has_value()) return std::nullopt;
  if (**known != job_id) {
    return Reply{.status =
                     MakeStatus(absl::StatusCode::kFailedPrecondition,
                                "client_id {} was used before, for another job: choose another",
                                client_id)};
  }
  absl::StatusOr<JobFact> job = FindJob(facts_, job_id);
  if (!job.ok()) return Reply{.status = job.status()};
  return Reply{.job = *std::move(job), .repeated = true};
}

void CommandApi::Command(events::v1::CommandAccepted command,
                         const std::string& job_id,
                         const Caller& caller,
                         const Answer& answer) {
  const absl::StatusOr<JobFact> job = judge_.FindJob(caller, facts_, job_id, ActOf(command));
  if (!job.ok()) return answer({.status = job.status()});
  if (std::optional<Reply> before = Repeated(command.client_id(), job_id)) {
    answer(*std::move(before));
    return;
  }
  absl::Status wanted = judge_.MayWant(caller, command, *job);
  if (wanted.ok()) wanted = CheckMove(command, caller);
  if (!wanted.ok()) return answer({.status = wanted});
  if (model::IsTerminal(static_cast<model::JobState>(job->state()))) {
    return answer({.status = HasEnded(*job)});
  }
  if (!feed_.Holds(job->pool())) return answer({.elsewhere = job->pool()});
  const absl::Status turn = TakeTurn(caller, job_id);
  if (!turn.ok()) return answer({.status = turn});
  command.set_asked_by(caller.who.user);
  Put({.pool = job->pool(),
       .job_id = job_id,
       .command = std::move(command),
       .deadline = caller.deadline,
       .done = {}},
      *job,
      answer);
}

absl::Status CommandApi::TakeTurn(const Caller& caller, const std::string& job_id) {
  if (!judge_.on()) return absl::OkStatus();
  return rate_.Take(access::TenantOf(caller.who.user), job_id, std::chrono::steady_clock::now());
}

absl::Status CommandApi::CheckMove(const events::v1::CommandAccepted& command,
                                   const Caller& caller) {
  if (!command.has_move_job()) return absl::OkStatus();
  const events::v1::MoveJob& move = command.move_job();
  ASSIGN_OR_RETURN(const std::optional<v1::JobRow> row, facts_.FindRow(move.job_id()));
  if (!row.has_value()) return NoSuchJob(move.job_id());
  const JobFact& fact = row->fact();
  std::map<std::string, job_store::QueueUse> use;
  if (const std::string& space = fact.workload().namespace_(); !space.empty()) {
    ASSIGN_OR_RETURN(use, facts_.UseOf(fact.pool(), space));
  }
  return judge_.TakesAsNew(caller, move.queue(), *row, use);
}

void CommandApi::Position(const std::string& job_id,
                          bool explain,
                          const Caller& caller,
                          const Answer& answer) {
  const absl::StatusOr<JobFact> job = judge_.FindJob(caller, facts_, job_id, access::Act::kView);
  if (!job.ok()) return answer({.status = job.status()});
  // An ended job has no place, and nobody needs be asked.
  if (model::IsTerminal(static_cast<model::JobState>(job->state()))) return answer({.job = *job});
  Put({.pool = job->pool(),
       .job_id = job_id,
       .command = std::nullopt,
       .explain = explain,
       .deadline = caller.deadline,
       .done = {}},
      *job,
      answer);
}

void CommandApi::AbandonCycle(const std::string& pool,
                              uint64_t cycle_id,
                              const Caller& caller,
                              const Answer& answer) {
  const absl::Status may = judge_.MayAbandon(caller, pool);
  if (!may.ok()) return answer({.status = may});
  events::v1::CommandAccepted command;
  command.set_asked_by(caller.who.user);
  command.mutable_abandon_cycle()->set_cycle_id(cycle_id);
  Errand errand{.pool = pool,
                .job_id = "",
                .command = std::move(command),
                .deadline = caller.deadline,
                .done = {}};
  errand.done = [answer, pool](const ErrandResult& result) {
    Reply reply = ToReply(pool, result);
    reply.cycle = result.cycle;
    answer(std::move(reply));
  };
  desk_.Put(std::move(errand));
}

// ---- claims

void CommandApi::SubmitClaim(const v1::SubmitClaimRequest& request,
                             const Caller& caller,
                             const Answer& answer) {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  absl::StatusOr<ClaimRequest> read =
      ReadClaim(request, std::chrono::duration_cast<Millis>(wall).count());
  if (!read.ok()) return answer({.status = read.status()});
  events::v1::SubmitClaim& submit = *read->command.mutable_submit_claim();
  const absl::Status may = judge_.MayClaim(caller, read->pool, submit);
  if (!may.ok()) return answer({.status = may});
  if (judge_.on()) submit.set_user(caller.who.user);
  Claim claim{.pool = read->pool,
              .job_id = submit.job_id(),
              .user = submit.user(),
              .wants = [](const JobFact&) { return true; },
              .until = caller.deadline,
              .answer = answer};
  if (read->wait > Millis(0)) {
    claim.wants = IsDecided;
    claim.until = std::min(claim.until, std::chrono::steady_clock::now() + read->wait);
  }
  absl::StatusOr<std::optional<JobFact>> known = facts_.Find(claim.job_id);
  if (!known.ok()) return answer({.status = known.status()});
  if (known->has_value()) return AwaitKnown(claim, **std::move(known));
  if (!feed_.Holds(claim.pool)) return answer({.elsewhere = claim.pool});
  const absl::Status turn = TakeTurn(caller, "");
  if (!turn.ok()) return answer({.status = turn});
  auto place = MakeRoom(claim.pool, submit, caller);
  if (!place.ok()) return answer({.status = place.status()});
  PutClaim(claim, std::move(read->command), caller, *std::move(place));
}

void CommandApi::PutClaim(const Claim& claim,
                          events::v1::CommandAccepted command,
                          const Caller& caller,
                          std::shared_ptr<void> place) {
  // Before whoever makes the next one is answered.
  const uint64_t counted = feed_.Await(
      claim.job_id,
      std::chrono::steady_clock::now() + kLongestOnItsWay,
      [](const JobFact&) { return true; },
      [place = std::move(place)](const auto&) mutable { place.reset(); });
  const uint64_t waiter = feed_.Await(
      claim.job_id, claim.until, claim.wants, [this, claim](std::optional<JobFact> job) {
        if (job.has_value()) return Tell(claim, *std::move(job), /*repeated=*/false);
        workers_.Post([this, claim] { AnswerAsItIs(claim, /*repeated=*/false); });
      });
  command.set_asked_by(caller.who.user);
  Errand errand{.pool = claim.pool,
                .job_id = claim.job_id,
                .command = std::move(command),
                .deadline = caller.deadline,
                .done = {}};
  errand.done = [this, claim, counted, waiter](const ErrandResult& result) {
    // It is in the log: the waiters are told when it has been read back.
    if (result.outcome == Outcome::kDone) return;
    feed_.Forget(counted);
    if (!feed_.Forget(waiter)) return;
    if (result.outcome != Outcome::kRepeated) return claim.answer(ToReply(claim.pool, result));
    workers_.Post([this, claim] {
      absl::StatusOr<JobFact> job = FindJob(facts_, claim.job_id);
      if (!job.ok()) return claim.answer({.status = job.status()});
      AwaitKnown(claim, *std::move(job));
    });
  };
  desk_.Put(std::move(errand));
}

absl::StatusOr<std::shared_ptr<void>> CommandApi::MakeRoom(const std::string& pool,
                                                           const events::v1::SubmitClaim& submit,
                                                           const Caller& caller) {
  ASSIGN_OR_RETURN(const ClaimQuota quota, judge_.QuotaFor(pool, submit.queue()));
  if (quota.empty()) return std::shared_ptr<void>();
  const std::string tenant(access::TenantOf(caller.who.user));
  const auto bytes = static_cast<int64_t>(submit.spec().jobspec().size());
  // First: what has left the way when the tables are asked is in them.
  ClaimsUnderWay::Entered entered = under_way_.Enter(tenant, bytes);
  ASSIGN_OR_RETURN(
      const job_store::ClaimUse has,
      tenant == caller.who.user ? facts_.ClaimsOf(tenant) : facts_.ClaimsOfAll(tenant + ":"));
  const int64_t claims = has.claims + entered.all.claims;
  if (quota.claims && claims > *quota.claims) {
    return TooManyClaims(tenant, claims - 1, *quota.claims);
  }
  if (quota.bytes && has.bytes + entered.all.bytes > *quota.bytes) {
    return TooManyBytes(tenant, has.bytes + entered.all.bytes, *quota.bytes);
  }
  return std::move(entered.place);
}

bool CommandApi::IsFor(const Claim& claim, const JobFact& job) {
  return claim.user.empty() || claim.user == job.user();
}

void CommandApi::Tell(const Claim& claim, JobFact job, bool repeated) {
  if (IsFor(claim, job)) {
    return claim.answer({.job = std::move(job), .repeated = repeated});
  }
  claim.answer({.status = MakeStatus(absl::StatusCode::kFailedPrecondition,
                                     "client_id: it was used before, by somebody else: choose "
                                     "another")});
}

void CommandApi::AwaitKnown(const Claim& claim, JobFact job) {
  if (claim.wants(job) || !IsFor(claim, job)) return Tell(claim, std::move(job), /*repeated=*/true);
  if (!feed_.Holds(claim.pool)) return claim.answer({.elsewhere = claim.pool});
  const uint64_t waiter = feed_.Await(
      claim.job_id, claim.until, claim.wants, [this, claim](std::optional<JobFact> fact) {
        if (fact.has_value()) return Tell(claim, *std::move(fact), /*repeated=*/true);
        workers_.Post([this, claim] { AnswerAsItIs(claim, /*repeated=*/true); });
      });
  // It may have become as wanted before the waiter was there.
  absl::StatusOr<JobFact> again = FindJob(facts_, claim.job_id);
  if (again.ok() && !claim.wants(*again)) return;
  if (!feed_.Forget(waiter)) return;
  if (!again.ok()) return claim.answer({.status = again.status()});
  Tell(claim, *std::move(again), /*repeated=*/true);
}

void CommandApi::AnswerAsItIs(const Claim& claim, bool repeated) {
  absl::StatusOr<std::optional<JobFact>> job = facts_.Find(claim.job_id);
  if (!job.ok()) return claim.answer({.status = job.status()});
  if (!job->has_value()) return claim.answer({.status = Late()});
  Tell(claim, **std::move(job), repeated);
}

}  // namespace fluxqueue::queue
