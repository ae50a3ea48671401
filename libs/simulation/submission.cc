#include "libs/simulation/submission.h"

#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/constraints.h"
#include "libs/kubernetes/jobspec.h"
#include "libs/kubernetes/submission.h"
#include "libs/model/rules.h"

namespace fluxqueue::simulation {
namespace {

using events::v1::Envelope;

// As of a pool that nobody has configured otherwise.
constexpr int64_t kRejectAfterMs = 30'000;
constexpr int64_t kAnswerDeadlineMs = 10'000;
constexpr int64_t kRetryMinMs = 1'000;
constexpr int64_t kRetryMaxMs = 300'000;

Envelope ForPool() {
  Envelope message;
  message.set_pool(std::string(kPool));
  return message;
}

std::string ConstraintOf(const std::vector<std::string>& gpu_models) {
  kubernetes::PodSpec pod;
  if (!gpu_models.empty()) {
    const kubernetes::NodeExpression expression{std::string(kGpuModelLabel), "In", gpu_models};
    pod.required_node_terms = {{.expressions = {expression}, .fields = {}}};
  }
  absl::StatusOr<std::string> constraint = kubernetes::MakeConstraint(pod);
  CHECK(constraint.ok(), "{}", Message(constraint.status()));
  return *std::move(constraint);
}

}  // namespace

std::vector<Envelope> Beginning(const Machine& machine, const Setting& setting) {
  std::vector<Envelope> messages;
  auto* pool = messages.emplace_back(ForPool()).mutable_pool_configured();
  pool->set_engine("native");
  pool->set_policy(setting.policy);
  pool->set_rules(setting.rules == 0 ? model::kLatestRules : setting.rules);
  pool->set_answer_deadline_ms(kAnswerDeadlineMs);
  pool->set_retry_min_ms(kRetryMinMs);
  pool->set_retry_max_ms(kRetryMaxMs);
  const size_t queues = std::max<size_t>(setting.queues.size(), 1);
  for (size_t i = 0; i < queues; ++i) {
    auto* queue = messages.emplace_back(ForPool()).mutable_queue_configured();
    queue->set_queue(QueueName(i, queues));
    if (!setting.queues.empty()) queue->set_weight(setting.queues[i]);
    queue->set_strategy(setting.strategy);
    queue->set_order(setting.order);
    queue->set_queue_depth(setting.queue_depth);
    queue->set_reject_after_ms(kRejectAfterMs);
    queue->set_reservation_depth(setting.reservation_depth);
    queue->set_default_duration_ms(setting.default_duration.count());
    queue->set_predict_durations(setting.estimates == Estimates::kPredicted);
    if (setting.reserve_after) queue->set_reserve_after_ms(setting.reserve_after->count());
  }
  for (const events::v1::Node& node : machine.nodes) {
    *messages.emplace_back(ForPool()).mutable_node_upserted()->mutable_node() = node;
  }
  messages.emplace_back(ForPool()).mutable_inventory_synced()->set_nodes(
      static_cast<uint32_t>(machine.nodes.size()));
  return messages;
}

size_t QueueOf(const trace::TraceJob& job, size_t queues) {
  // FNV-1a, so that every machine puts it into the same.
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : job.user.empty() ? job.name : job.user) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return static_cast<size_t>(hash % queues);
}

std::string QueueName(size_t queue, size_t queues) {
  return queues == 1 ? std::string(kQueue) : fmt::format("queue-{}", queue + 1);
}

Submissions::Submissions(const Machine& machine, size_t queues)
    : counts_pods_(machine.Total("pods") > 0), queues_(queues) {}

const std::string& Submissions::JobspecOf(const trace::TraceJob& job) {
  std::string& text = jobspecs_[Shape(job.slots, job.requests, job.gpu_models)];
  if (text.empty()) {
    kubernetes::PodDemand demand;
    demand.requests = job.requests;
    if (counts_pods_) demand.requests["pods"] = 1;
    demand.constraint = ConstraintOf(job.gpu_models);
    text = kubernetes::MakeJobspec(demand, static_cast<uint32_t>(job.slots), Millis(0), {});
  }
  return text;
}

Envelope Submissions::Make(const trace::TraceJob& job, std::optional<Millis> duration, Millis now) {
  Envelope message = ForPool();
  auto* submitted = message.mutable_job_submitted();
  submitted->set_job_id(job.name);
  auto* workload = submitted->mutable_workload();
  workload->set_api_version("batch/v1");
  workload->set_kind("Job");
  workload->set_name(job.name);
  workload->set_uid(job.name);
  workload->set_completions(job.slots);
  workload->set_recreatable(true);
  submitted->set_queue(QueueName(QueueOf(job, queues_), queues_));
  submitted->set_user(job.user);
  if (duration.has_value()) submitted->set_duration_ms(duration->count());
  submitted->mutable_spec()->set_revision(1);
  submitted->mutable_spec()->set_slots(static_cast<uint32_t>(job.slots));
  submitted->mutable_spec()->set_jobspec(JobspecOf(job));
  kubernetes::SetAmounts(job.requests, static_cast<uint32_t>(job.slots), submitted->mutable_spec());
  submitted->set_created_ms(now.count());
  return message;
}

}  // namespace fluxqueue::simulation
