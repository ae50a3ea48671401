#include "services/queue/adapters/rpc/read_api.h"

#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"
#include "libs/rpc/error_details.h"
#include "services/queue/adapters/rpc/requests.h"
#include "services/queue/domain/flux_job_view.h"
#include "services/queue/domain/job_message.h"

namespace fluxqueue::queue {
namespace {

constexpr int32_t kPage = 100;
constexpr int32_t kLargestPage = 1000;
constexpr size_t kMostNodes = 16;

absl::StatusOr<job_store::FactFilter> ToFilter(const v1::ListJobsRequest& request) {
  job_store::FactFilter filter{.pool = request.pool(),
                               .queue = request.queue(),
                               .space = request.namespace_(),
                               .kind = request.kind(),
                               .ended = request.ended()};
  for (const int state : request.states()) {
    if (!v1::State_IsValid(state) || state == v1::STATE_UNSPECIFIED) {
      return rpc::InField(InvalidArgument("states: {} is no state of a job", state), "states");
    }
    filter.states.emplace_back(model::Name(static_cast<model::JobState>(state)));
    filter.ended |= model::IsTerminal(static_cast<model::JobState>(state));
  }
  return filter;
}

v1::QueueInfo::Limits ToLimits(const events::v1::Limits& stored) {
  v1::QueueInfo::Limits limits;
  if (stored.has_running_jobs()) limits.set_running_jobs(stored.running_jobs());
  if (stored.has_queued_jobs()) limits.set_queued_jobs(stored.queued_jobs());
  for (const events::v1::Amount& amount : stored.amounts()) {
    scheduling::Resources one;
    one.Add(amount.resource(), amount.amount());
    (*limits.mutable_amounts())[amount.resource()] =
        scheduling::FormatAmount(amount.resource(), one.Of(amount.resource()));
  }
  if (stored.has_gpu_seconds()) {
    limits.set_gpu_hours(static_cast<double>(stored.gpu_seconds()) / 3600);
  }
  return limits;
}

v1::QueueInfo ToInfo(const job_store::QueueInfo& stored, const scheduling::Resources& held) {
  v1::QueueInfo info;
  info.set_pool(stored.pool);
  info.set_queue(stored.queue);
  info.set_strategy(stored.strategy);
  info.set_priority(static_cast<int32_t>(stored.priority));
  info.set_weight(static_cast<int32_t>(stored.weight));
  info.set_depth(static_cast<uint32_t>(stored.depth));
  *info.mutable_default_duration() = ToDuration(stored.default_duration_ms);
  *info.mutable_max_duration() = ToDuration(stored.max_duration_ms);
  info.set_exists(stored.exists);
  info.set_parent(stored.parent);
  info.set_order(stored.order);
  const auto any = [](const events::v1::Limits& limits) { return limits.ByteSizeLong() > 0; };
  if (any(stored.together)) *info.mutable_limits() = ToLimits(stored.together);
  if (any(stored.of_namespace)) *info.mutable_namespace_limits() = ToLimits(stored.of_namespace);
  if (any(stored.of_user)) *info.mutable_user_limits() = ToLimits(stored.of_user);
  for (size_t i = 0; i < scheduling::kShared; ++i) {
    const std::string name(scheduling::SharedName(i));
    if (held[i] != 0) (*info.mutable_use())[name] = scheduling::FormatAmount(name, held[i]);
  }
  for (const job_store::BudgetUse& use : stored.budgets) {
    v1::QueueInfo::Budget* budget = info.add_budgets();
    budget->set_resource(use.budget.resource);
    budget->set_period(std::string(scheduling::PeriodName(use.budget.period)));
    budget->set_hours(use.budget.hours);
    budget->set_used_hours(use.used_hours);
    budget->set_holds(use.budget.holds);
  }
  for (const auto& [name, jobs] : stored.jobs) {
    const auto state = model::ParseJobState(name);
    if (!state.has_value()) continue;
    v1::QueueInfo::Count* count = info.add_live();
    count->set_state(static_cast<v1::State>(*state));
    count->set_jobs(jobs);
  }
  return info;
}

// Of the jobs of an answer.
absl::Status AddNodes(job_store::JobStore& store, const std::vector<v1::Job*>& jobs) {
  std::vector<job_store::Job> stored;
  stored.reserve(jobs.size());
  for (const v1::Job* job : jobs) {
    stored.push_back({.id = job->id(), .attempt = job->attempt()});
  }
  RETURN_IF_ERROR(store.AddNodes(&stored));
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::vector<std::string>& nodes = stored[i].nodes;
    jobs[i]->set_node_count(static_cast<uint32_t>(nodes.size()));
    const size_t shown = std::min(nodes.size(), kMostNodes);
    for (size_t n = 0; n < shown; ++n) jobs[i]->add_nodes(nodes[n]);
  }
  return absl::OkStatus();
}

v1::State ToState(const std::string& name) {
  const auto state = model::ParseJobState(name);
  return state.has_value() ? static_cast<v1::State>(*state) : v1::STATE_UNSPECIFIED;
}

}  // namespace

absl::Status ReadApi::ListJobs(const Caller& caller,
                               const v1::ListJobsRequest& request,
                               v1::ListJobsResponse* response) {
  ASSIGN_OR_RETURN(job_store::FactFilter filter, ToFilter(request));
  ASSIGN_OR_RETURN(const JobScope scope, judge_.MayList(caller, "list", std::move(filter)));
  if (request.page_size() < 0 || request.page_size() > kLargestPage) {
    return rpc::InField(InvalidArgument("page_size: {}; allowed: 0 (which is {}) to {}",
                                        request.page_size(),
                                        kPage,
                                        kLargestPage),
                        "page_size");
  }
  const auto size = static_cast<size_t>(request.page_size() == 0 ? kPage : request.page_size());
  // One more, to see whether there are any behind the page.
  ASSIGN_OR_RETURN(std::vector<events::v1::JobFact> facts,
                   facts_.Page(scope.filter, request.page_token(), size + 1));
  const bool more = facts.size() > size;
  if (more) facts.pop_back();
  if (more) response->set_next_page_token(facts.back().job_id());
  std::vector<v1::Job*> jobs;
  for (const events::v1::JobFact& fact : facts) {
    jobs.push_back(response->add_jobs());
    *jobs.back() = ToMessage(fact);
  }
  return AddNodes(jobs_, jobs);
}

absl::Status ReadApi::FindJob(const Caller& caller,
                              const v1::FindJobRequest& request,
                              v1::FindJobResponse* response) {
  const absl::Status no_such_job =
      MakeStatus(absl::StatusCode::kNotFound,
                 "there is no job {} in namespace {}; its name has its kind before it, as in "
                 "job-hello",
                 request.flux_job(),
                 request.namespace_());
  ASSIGN_OR_RETURN(const std::vector<events::v1::JobFact> facts,
                   facts_.Named(request.namespace_(), WorkloadName(request.flux_job())));
  for (const events::v1::JobFact& fact : facts) {
    if (FluxJobName(fact.workload()) != request.flux_job()) continue;
    const absl::Status may = judge_.MayDoTo(caller, access::Act::kView, fact);
    if (absl::IsNotFound(may)) return no_such_job;
    RETURN_IF_ERROR(may);
    *response->mutable_job() = ToMessage(fact);
    return AddNodes(jobs_, {response->mutable_job()});
  }
  RETURN_IF_ERROR(judge_.CanBeAsked(caller));
  return no_such_job;
}

absl::Status ReadApi::GetJob(const Caller& caller,
                             const v1::GetJobRequest& request,
                             v1::GetJobResponse* response) {
  ASSIGN_OR_RETURN(const events::v1::JobFact fact,
                   judge_.FindJob(caller, facts_, request.job_id(), access::Act::kView));
  *response->mutable_job() = ToMessage(fact);
  const job_store::Job key{.id = fact.job_id(), .attempt = fact.attempt()};
  ASSIGN_OR_RETURN(const std::vector<job_store::JobSlot> slots, jobs_.Slots(key));
  for (const job_store::JobSlot& slot : slots) {
    v1::GetJobResponse::Slot* shown = response->add_slots();
    shown->set_slot(static_cast<uint32_t>(slot.slot));
    shown->set_node(slot.node);
    shown->set_released(slot.released);
  }
  ASSIGN_OR_RETURN(const std::vector<job_store::JobEvent> events, jobs_.Events(fact.job_id()));
  response->set_history_before(static_cast<uint64_t>(job_store::LeftOut(events)));
  for (const job_store::JobEvent& event : events) {
    v1::GetJobResponse::Transition* shown = response->add_history();
    shown->set_version(static_cast<uint64_t>(event.version));
    *shown->mutable_time() = ToTimestamp(event.time_ms);
    shown->set_state(ToState(event.state));
    shown->set_attempt(static_cast<uint32_t>(event.attempt));
    shown->set_reason(event.reason);
    shown->set_message(event.message);
  }
  ASSIGN_OR_RETURN(const std::vector<job_store::Promise> promises, jobs_.Promises(fact.job_id()));
  for (const job_store::Promise& promise : promises) {
    v1::GetJobResponse::Promise* shown = response->add_promises();
    *shown->mutable_told() = ToTimestamp(promise.told_ms);
    if (promise.start_ms != 0) *shown->mutable_start() = ToTimestamp(promise.start_ms);
    shown->set_firm(promise.firm);
    shown->set_kept(promise.kept);
    shown->set_cause(promise.cause);
    shown->set_by(promise.by);
  }
  const auto space_of = [this](const std::string& job_id) {
    const auto other = facts_.Find(job_id);
    return other.ok() && other->has_value() ? (*other)->workload().namespace_() : std::string();
  };
  judge_.Redact(caller, space_of, response);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::QueueInfo>> ReadApi::Queues() {
  ASSIGN_OR_RETURN(const std::vector<job_store::QueueInfo> queues, jobs_.Queues(/*ended=*/false));
  ASSIGN_OR_RETURN(auto held, jobs_.Held());
  std::vector<v1::QueueInfo> infos;
  for (const job_store::QueueInfo& queue : queues) {
    infos.push_back(ToInfo(queue, held[{queue.pool, queue.queue}]));
  }
  return infos;
}

absl::Status ReadApi::ListQueues(const Caller& caller,
                                 const v1::ListQueuesRequest& request,
                                 v1::ListQueuesResponse* response) {
  RETURN_IF_ERROR(judge_.MaySeeQueues(caller, ""));
  ASSIGN_OR_RETURN(std::vector<v1::QueueInfo> queues, Queues());
  for (v1::QueueInfo& queue : queues) {
    if (request.pool().empty() || request.pool() == queue.pool()) {
      response->add_queues()->Swap(&queue);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadApi::GetQueue(const Caller& caller,
                               const v1::GetQueueRequest& request,
                               v1::GetQueueResponse* response) {
  if (request.queue().empty()) {
    return rpc::InField(InvalidArgument("queue: name one; ListQueues has them"), "queue");
  }
  RETURN_IF_ERROR(judge_.MaySeeQueues(caller, request.queue()));
  const std::string pool = PoolOf(request.pool());
  ASSIGN_OR_RETURN(std::vector<v1::QueueInfo> queues, Queues());
  for (v1::QueueInfo& queue : queues) {
    if (queue.pool() != pool || queue.queue() != request.queue()) continue;
    response->mutable_queue()->Swap(&queue);
    return absl::OkStatus();
  }
  return MakeStatus(absl::StatusCode::kNotFound,
                    "there is no queue {} in pool {}; ListQueues has those that are",
                    request.queue(),
                    pool);
}

}  // namespace fluxqueue::queue
