#include "libs/queue_core/job.h"

#include "libs/model/workload.h"

namespace fluxqueue::queue_core {

events::v1::JobFact ToFact(const Job& job, const std::string& pool) {
  events::v1::JobFact fact;
  fact.set_job_id(job.id);
  fact.set_version(job.version);
  fact.set_pool(pool);
  fact.set_queue(job.queue);
  *fact.mutable_workload() = *job.workload;
  fact.set_state(static_cast<events::v1::JobState>(job.state));
  fact.set_reason(job.reason);
  fact.set_message(job.message);
  fact.set_attempt(job.attempt);
  fact.set_slots(job.slots);
  fact.set_priority(job.priority);
  fact.set_created_ms(job.created_ms);
  fact.set_time_ms(job.updated_ms);
  fact.set_start_ms(job.start_ms);
  fact.set_placement_hash(job.placement_hash);
  fact.set_after_stop(job.after_stop);
  fact.set_duration_ms(job.effective_duration_ms);
  fact.set_revision(job.revision);
  return fact;
}

queue::v1::JobRow ToRow(const Job& job, const std::string& pool) {
  queue::v1::JobRow row;
  *row.mutable_fact() = ToFact(job, pool);
  row.set_submission(job.submission);
  if (job.duration_ms.has_value()) row.set_duration_ms(*job.duration_ms);
  row.set_hold(job.hold);
  row.set_failures(job.failures);
  row.set_not_before_ms(job.not_before_ms);
  row.set_unsatisfiable_since_ms(job.unsatisfiable_since_ms);
  row.mutable_released_slots()->Add(job.released_slots.begin(), job.released_slots.end());
  row.set_requeue_is_failure(job.requeue_is_failure);
  return row;
}

Job FromRow(const queue::v1::JobRow& row) {
  const events::v1::JobFact& fact = row.fact();
  Job job;
  job.id = fact.job_id();
  job.workload = std::make_shared<const events::v1::Workload>(fact.workload());
  job.queue = fact.queue();
  job.priority = fact.priority();
  if (row.has_duration_ms()) job.duration_ms = row.duration_ms();
  job.hold = row.hold();
  job.slots = fact.slots();
  job.revision = fact.revision();
  job.submission = row.submission();
  job.created_ms = fact.created_ms();
  job.state = static_cast<model::JobState>(fact.state());
  job.version = fact.version();
  job.attempt = fact.attempt();
  job.failures = row.failures();
  job.reason = fact.reason();
  job.message = fact.message();
  job.updated_ms = fact.time_ms();
  job.start_ms = fact.start_ms();
  job.placement_hash = fact.placement_hash();
  job.effective_duration_ms = fact.duration_ms();
  job.not_before_ms = row.not_before_ms();
  job.unsatisfiable_since_ms = row.unsatisfiable_since_ms();
  job.after_stop = fact.after_stop();
  job.requeue_is_failure = row.requeue_is_failure();
  job.released_slots.assign(row.released_slots().begin(), row.released_slots().end());
  return job;
}

bool IsClaim(const Job& job) {
  return model::IsClaim(job.workload->kind());
}

bool GivesSlotsBackEarly(const Job& job) {
  return job.workload->kind() == "Job" && job.workload->completions() <= job.slots;
}

}  // namespace fluxqueue::queue_core
