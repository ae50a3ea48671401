#include "libs/simulation/submission.h"

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
  pool->set_rules(model::kLatestRules);
  pool->set_answer_deadline_ms(kAnswerDeadlineMs);
  pool->set_retry_min_ms(kRetryMinMs);
  pool->set_retry_max_ms(kRetryMaxMs);
  auto* queue = messages.emplace_back(ForPool()).mutable_queue_configured();
  queue->set_queue(std::string(kQueue));
  queue->set_strategy(setting.strategy);
  queue->set_queue_depth(setting.queue_depth);
  queue->set_reject_after_ms(kRejectAfterMs);
  queue->set_reservation_depth(setting.reservation_depth);
  queue->set_default_duration_ms(setting.default_duration.count());
  queue->set_predict_durations(setting.estimates == Estimates::kPredicted);
  for (const events::v1::Node& node : machine.nodes) {
    *messages.emplace_back(ForPool()).mutable_node_upserted()->mutable_node() = node;
  }
  messages.emplace_back(ForPool()).mutable_inventory_synced()->set_nodes(
      static_cast<uint32_t>(machine.nodes.size()));
  return messages;
}

Submissions::Submissions(const Machine& machine) : counts_pods_(machine.Total("pods") > 0) {}

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
  submitted->set_queue(std::string(kQueue));
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
