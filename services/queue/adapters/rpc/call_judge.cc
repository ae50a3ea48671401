#include "services/queue/adapters/rpc/call_judge.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "libs/access/queue_limits.h"
#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/model/slip.h"
#include "libs/model/workload.h"
#include "libs/queue_core/job.h"
#include "libs/rpc/error_details.h"
#include "services/queue/adapters/rpc/requests.h"
#include "services/queue/domain/flux_job_view.h"

namespace fluxqueue::queue {
namespace {

using access::Act;
using access::Right;
using access::Verdict;
using access::Way;
using events::v1::CommandAccepted;
using events::v1::JobFact;
using events::v1::Slip;

access::User UserOf(const Caller& caller) {
  return {.name = caller.who.user,
          .groups = caller.who.groups,
          .uid = caller.who.uid,
          .extra = caller.who.extra};
}

bool IsClaim(const std::string& kind, const std::string& space) {
  return model::IsClaim(kind) && space.empty();
}

access::Job ToJob(const JobFact& fact) {
  const bool claim = IsClaim(fact.workload().kind(), fact.workload().namespace_());
  return {.claim = claim,
          .space = fact.workload().namespace_(),
          .name = claim ? fact.job_id() : FluxJobName(fact.workload()),
          .user = fact.user(),
          .pool = fact.pool(),
          .queue = fact.queue()};
}

access::Job ToJob(const v1::Job& job) {
  JobFact fact;
  fact.set_job_id(job.id());
  fact.set_pool(job.pool());
  fact.set_queue(job.queue());
  fact.set_user(job.user());
  fact.mutable_workload()->set_kind(job.kind());
  fact.mutable_workload()->set_namespace_(job.namespace_());
  fact.mutable_workload()->set_name(job.name());
  return ToJob(fact);
}

v1::Job SizeAndTimes(const v1::Job& job) {
  v1::Job left;
  left.set_state(job.state());
  left.set_slots(job.slots());
  left.set_max_slots(job.max_slots());
  *left.mutable_duration() = job.duration();
  *left.mutable_created() = job.created();
  *left.mutable_updated() = job.updated();
  if (job.has_start()) *left.mutable_start() = job.start();
  left.set_firm(job.firm());
  return left;
}

// Of a service account; anybody else has none.
std::string SpaceOf(std::string_view user) {
  constexpr std::string_view kAccount = "system:serviceaccount:";
  if (user.substr(0, kAccount.size()) != kAccount) return "";
  user.remove_prefix(kAccount.size());
  return std::string(user.substr(0, user.find(':')));
}

absl::Status Denied(const Caller& caller,
                    const Right& right,
                    std::string_view verb,
                    std::string_view queue) {
  return MakeStatus(absl::StatusCode::kPermissionDenied,
                    "{}",
                    access::Refusal(UserOf(caller), right, verb, queue));
}

absl::Status Against(const std::optional<std::string>& problem, absl::StatusCode code) {
  return problem ? MakeStatus(code, "queue: {}", *problem) : absl::OkStatus();
}

// The way up from the queue, where it is one of the pool; else empty.
Way WayOf(const std::string& pool, const std::string& queue, const access::QueuesByName& queues) {
  const auto found = queues.find(queue);
  if (found == queues.end() || access::PoolOfObject(found->second) != pool) return {};
  return access::WayUp(found->second, queues);
}

using UseByQueue = std::map<std::string, job_store::QueueUse>;

// The queue is `above`, or below it.
bool IsBelow(std::string queue, const std::string& above, const UseByQueue& use) {
  // A cycle of parents is cut off.
  for (size_t steps = 0; steps <= use.size(); ++steps) {
    if (queue == above) return true;
    const auto at = use.find(queue);
    if (at == use.end() || at->second.parent.empty()) return false;
    queue = at->second.parent;
  }
  return false;
}

access::JobUse UseBelow(const std::string& above, const UseByQueue& use) {
  access::JobUse sum;
  for (const auto& [queue, own] : use) {
    if (IsBelow(queue, above, use)) sum.Add({own.jobs, own.jobspec_bytes});
  }
  return sum;
}

absl::Status NoSuchQueue(const std::string& pool, const std::string& queue) {
  return MakeStatus(absl::StatusCode::kNotFound,
                    "there is no FluxQueue '{}' in pool {}: a job stays in its pool",
                    queue,
                    pool);
}

}  // namespace

Act ActOf(const CommandAccepted& command) {
  switch (command.command_case()) {
    case CommandAccepted::kCancelJob:
      return Act::kCancel;
    case CommandAccepted::kHoldJob:
    case CommandAccepted::kReleaseJob:
      return Act::kHold;
    case CommandAccepted::kSetPriority:
      return Act::kPrioritise;
    case CommandAccepted::kMoveJob:
      return Act::kMove;
    case CommandAccepted::kSubmitClaim:
    case CommandAccepted::kAbandonCycle:
    case CommandAccepted::COMMAND_NOT_SET:
      break;
  }
  CHECK(false, "a command about no job that is there: {}", command.ShortDebugString());
  return Act::kView;
}

absl::Status CallJudge::Identify(Caller* caller) const {
  if (caller->token.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(access::User user, authority_->WhoseIs(caller->token));
  caller->token.clear();
  caller->who = {.user = std::move(user.name),
                 .groups = std::move(user.groups),
                 .uid = std::move(user.uid),
                 .extra = std::move(user.extra)};
  return rpc::CheckTokenCaller(caller->who);
}

absl::StatusOr<JobFact> CallJudge::FindJob(const Caller& caller,
                                           job_store::FactStore& facts,
                                           const std::string& job_id,
                                           Act act) const {
  absl::StatusOr<JobFact> job = queue::FindJob(facts, job_id);
  if (Passes(caller)) return job;
  if (absl::IsNotFound(job.status())) RETURN_IF_ERROR(CanBeAsked(caller));
  if (!job.ok()) return job;
  RETURN_IF_ERROR(MayDoTo(caller, act, *job));
  return job;
}

absl::Status CallJudge::CanBeAsked(const Caller& caller) const {
  if (Passes(caller)) return absl::OkStatus();
  return authority_->Allows(UserOf(caller), RightTo(Act::kView, access::Job())).status();
}

absl::Status CallJudge::MayDoTo(const Caller& caller, Act act, const JobFact& fact) const {
  if (Passes(caller)) return absl::OkStatus();
  const access::Job job = ToJob(fact);
  ASSIGN_OR_RETURN(const bool may, MayDo(caller, act, job));
  if (may) return absl::OkStatus();
  if (act == Act::kView) return NoSuchJob(fact.job_id());
  ASSIGN_OR_RETURN(const bool sees, MayDo(caller, Act::kView, job));
  if (!sees) return NoSuchJob(fact.job_id());
  return Denied(caller, RightTo(act, job), SubjectVerb(act), job.queue);
}

absl::StatusOr<bool> CallJudge::MayDo(const Caller& caller, Act act, const access::Job& job) const {
  const access::User user = UserOf(caller);
  const bool own = IsHisOwn(act, job, user);
  // Of his own claims it is asked once for all of them.
  const access::Job asked = own ? access::Job{.claim = true} : job;
  ASSIGN_OR_RETURN(const Verdict verdict, authority_->Judge(user, RightTo(act, asked)));
  if (verdict == Verdict::kDenied) return false;
  if (own || verdict == Verdict::kAllowed) return true;
  return Granted(caller, SubjectVerb(act), job.pool, job.queue);
}

absl::StatusOr<bool> CallJudge::Granted(const Caller& caller,
                                        std::string_view verb,
                                        const std::string& pool,
                                        const std::string& queue) const {
  ASSIGN_OR_RETURN(const access::QueuesByName queues, authority_->QueueAndAbove(queue));
  return access::Grants(WayOf(pool, queue, queues), verb, caller.who.user, caller.who.groups);
}

absl::Status CallJudge::MayWant(const Caller& caller,
                                const CommandAccepted& command,
                                const JobFact& job) const {
  if (Passes(caller)) return absl::OkStatus();
  if (command.has_set_priority()) return MayRaise(command.set_priority().priority(), job);
  if (command.has_move_job()) return MayMove(caller, command.move_job().queue(), job);
  return absl::OkStatus();
}

absl::Status CallJudge::MayRaise(int32_t priority, const JobFact& job) const {
  ASSIGN_OR_RETURN(const access::QueuesByName queues, authority_->QueueAndAbove(job.queue()));
  const auto problem =
      access::PriorityProblem(priority, job.priority(), WayOf(job.pool(), job.queue(), queues));
  if (!problem) return absl::OkStatus();
  return rpc::InField(InvalidArgument("priority: {}", *problem), "priority");
}

absl::Status CallJudge::MayMove(const Caller& caller,
                                const std::string& queue,
                                const JobFact& job) const {
  RETURN_IF_ERROR(CheckName("queue", queue));
  ASSIGN_OR_RETURN(const access::QueuesByName queues, authority_->QueueAndAbove(queue));
  const Way way = WayOf(job.pool(), queue, queues);
  if (way.empty()) return NoSuchQueue(job.pool(), queue);
  const std::string& space = job.workload().namespace_();
  RETURN_IF_ERROR(Takes(job.user(), space.empty() ? SpaceOf(job.user()) : space, way));
  // Its maker may have it there, as far as he is known by his name.
  if (access::SubmitProblem(job.user(), {}, way)) {
    RETURN_IF_ERROR(Against(access::SubmitProblem(caller.who.user, caller.who.groups, way),
                            absl::StatusCode::kPermissionDenied));
  }
  return Against(access::PriorityProblem(job.priority(), std::nullopt, way),
                 absl::StatusCode::kFailedPrecondition);
}

absl::Status CallJudge::TakesAsNew(const Caller& caller,
                                   const std::string& queue,
                                   const v1::JobRow& job,
                                   const UseByQueue& use) const {
  const JobFact& fact = job.fact();
  if (Passes(caller) || fact.queue() == queue) return absl::OkStatus();
  ASSIGN_OR_RETURN(const access::QueuesByName queues, authority_->QueueAndAbove(queue));
  const Way way = WayOf(fact.pool(), queue, queues);
  if (way.empty()) return NoSuchQueue(fact.pool(), queue);
  const std::string& space = fact.workload().namespace_();
  const std::string claimers = space.empty() ? SpaceOf(fact.user()) : space;
  access::AskedJob asked{.user = fact.user(),
                         .space = claimers,
                         .qos = job.qos(),
                         .priority = fact.priority(),
                         .amounts = queue_core::ToResources(job.amounts())};
  if (job.has_duration_ms()) asked.duration_ms = job.duration_ms();
  RETURN_IF_ERROR(Against(access::LimitProblem(asked, way), absl::StatusCode::kFailedPrecondition));
  if (space.empty()) return absl::OkStatus();
  const access::JobUse own{.jobs = 1, .jobspec_bytes = job.jobspec_bytes()};
  for (const kubernetes::FluxQueue* at : way) {
    const std::string& name = at->meta.name;
    const access::JobUse before = IsBelow(fact.queue(), name, use) ? own : access::JobUse();
    RETURN_IF_ERROR(
        Against(access::QuotaProblem(space, own.jobspec_bytes, before, UseBelow(name, use), *at),
                absl::StatusCode::kResourceExhausted));
  }
  return absl::OkStatus();
}

absl::Status CallJudge::MayClaim(const Caller& caller,
                                 const std::string& pool,
                                 const events::v1::SubmitClaim& claim) const {
  if (Passes(caller)) return absl::OkStatus();
  constexpr std::string_view kClaimVerb = "claim";
  RETURN_IF_ERROR(CheckName("queue", claim.queue()));
  const Right right = access::RightToClaim(claim.queue());
  ASSIGN_OR_RETURN(const Verdict verdict, authority_->Judge(UserOf(caller), right));
  ASSIGN_OR_RETURN(const access::QueuesByName queues, authority_->QueueAndAbove(claim.queue()));
  const Way way = WayOf(pool, claim.queue(), queues);
  const bool granted = access::Grants(way, kClaimVerb, caller.who.user, caller.who.groups);
  if (verdict == Verdict::kDenied || (verdict == Verdict::kNoOpinion && !granted))
    return Denied(caller, right, kClaimVerb, claim.queue());
  if (way.empty()) return NoSuchQueue(pool, claim.queue());
  RETURN_IF_ERROR(Takes(caller.who.user, SpaceOf(caller.who.user), way));
  RETURN_IF_ERROR(Against(access::SubmitProblem(caller.who.user, caller.who.groups, way),
                          absl::StatusCode::kPermissionDenied));
  if (const auto problem = access::PriorityProblem(claim.priority(), std::nullopt, way)) {
    return rpc::InField(InvalidArgument("priority: {}", *problem), "priority");
  }
  return absl::OkStatus();
}

absl::StatusOr<ClaimQuota> CallJudge::QuotaFor(const std::string& pool,
                                               const std::string& queue) const {
  ClaimQuota quota;
  if (authority_ == nullptr) return quota;
  ASSIGN_OR_RETURN(const access::QueuesByName queues, authority_->QueueAndAbove(queue));
  const auto lower = [](std::optional<int64_t>& most, const std::optional<int64_t>& here) {
    if (here && (!most || *here < *most)) most = here;
  };
  for (const kubernetes::FluxQueue* at : WayOf(pool, queue, queues)) {
    lower(quota.claims, at->claim_quota);
    lower(quota.bytes, at->claim_bytes);
  }
  return quota;
}

absl::Status CallJudge::Takes(const std::string& user,
                              const std::string& space,
                              const Way& way) const {
  kubernetes::StringMap labels;
  const bool selects = std::any_of(
      way.begin(), way.end(), [](const auto* at) { return at->namespace_selector.has_value(); });
  if (selects && !space.empty()) {
    ASSIGN_OR_RETURN(const auto known, authority_->LabelsOf(space));
    if (known.has_value()) labels = *known;
  }
  return Against(access::TakesProblem({user, space, labels}, way),
                 absl::StatusCode::kFailedPrecondition);
}

absl::Status CallJudge::MayAbandon(const Caller& caller, const std::string& pool) const {
  return Allowed(caller, "pool", access::RightToAbandon(pool));
}

absl::Status CallJudge::MaySeeQueues(const Caller& caller, const std::string& queue) const {
  return Allowed(caller, "queue", access::RightToQueues(queue));
}

absl::Status CallJudge::Allowed(const Caller& caller,
                                std::string_view field,
                                const Right& right) const {
  if (Passes(caller)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckName(field, right.name));
  ASSIGN_OR_RETURN(const bool may, authority_->Allows(UserOf(caller), right));
  return may ? absl::OkStatus() : Denied(caller, right, "", "");
}

absl::StatusOr<JobScope> CallJudge::MayList(const Caller& caller,
                                            std::string_view verb,
                                            job_store::FactFilter asked) const {
  JobScope scope{.filter = std::move(asked)};
  if (authority_ == nullptr) return scope;
  scope.tenant = access::TenantOf(caller.who.user);
  job_store::FactFilter& filter = scope.filter;
  RETURN_IF_ERROR(CheckName("queue", filter.queue));
  RETURN_IF_ERROR(CheckName("namespace", filter.space));
  const access::User user = UserOf(caller);
  const bool claims = model::IsClaim(filter.kind) && filter.space.empty();
  const Right right =
      claims ? access::RightToClaims(verb) : access::RightToJobs(verb, filter.space);
  ASSIGN_OR_RETURN(const Verdict verdict, authority_->Judge(user, right));
  if (verdict == Verdict::kAllowed) {
    const bool all = claims || !filter.space.empty();
    if (all) return scope;
    ASSIGN_OR_RETURN(filter.claims, authority_->Allows(user, access::RightToClaims(verb)));
    return scope;
  }
  // Then the queue that he asks for may grant it.
  const std::string_view view = SubjectVerb(Act::kView);
  if (verdict == Verdict::kDenied || filter.queue.empty()) return Denied(caller, right, "", "");
  ASSIGN_OR_RETURN(const access::QueuesByName queues, authority_->QueueAndAbove(filter.queue));
  const auto queue = queues.find(filter.queue);
  if (filter.pool.empty() && queue != queues.end()) {
    filter.pool = access::PoolOfObject(queue->second);
  }
  if (!access::Grants(WayOf(filter.pool, filter.queue, queues), view, user.name, user.groups)) {
    return Denied(caller, right, view, filter.queue);
  }
  scope.only_in_queue = true;
  return scope;
}

void CallJudge::Redact(const Caller& caller, v1::ExplainResponse* response) const {
  if (Passes(caller)) return;
  for (v1::Job& job : *response->mutable_ahead()) {
    const absl::StatusOr<bool> may = MayDo(caller, Act::kView, ToJob(job));
    if (!may.ok() || !*may) job = SizeAndTimes(job);
  }
}

void CallJudge::Redact(const Caller& caller,
                       const SpaceOfJob& space_of,
                       v1::GetJobResponse* response) const {
  if (Passes(caller)) return;
  const auto names_a_job = [](const v1::GetJobResponse::Promise& promise) {
    return !promise.by().empty() && (promise.cause() == model::CauseName(Slip::CAUSE_AHEAD) ||
                                     promise.cause() == model::CauseName(Slip::CAUSE_OVERRUN));
  };
  auto& promises = *response->mutable_promises();
  if (std::none_of(promises.begin(), promises.end(), names_a_job)) return;
  const auto may = authority_->Allows(UserOf(caller), access::RightToJobs("list", ""));
  if (may.ok() && *may) return;
  const std::string& space = response->job().namespace_();
  for (v1::GetJobResponse::Promise& promise : promises) {
    if (!names_a_job(promise)) continue;
    if (space.empty() || space_of(promise.by()) != space) promise.clear_by();
  }
}

}  // namespace fluxqueue::queue
