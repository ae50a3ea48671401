#include "libs/queue_core/job.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "libs/model/workload.h"

namespace fluxqueue::queue_core {

namespace {

using scheduling::Resources;

constexpr char kGpuParts[] = "fluxqueue.io/gpu-milli";

// The numbers differ by the UNSPECIFIED of protobuf.
events::v1::Dependency::Condition ToProto(scheduling::Condition condition) {
  return static_cast<events::v1::Dependency::Condition>(static_cast<int>(condition) + 1);
}

std::vector<uint32_t> Without(const std::vector<uint32_t>& slots,
                              const std::vector<uint32_t>& these) {
  std::vector<uint32_t> rest;
  std::set_difference(
      slots.begin(), slots.end(), these.begin(), these.end(), std::back_inserter(rest));
  return rest;
}

void AddVacated(const Job& job, events::v1::JobFact* fact) {
  const bool reuses = job.resized || !job.vacated_slots.empty();
  if (!reuses || job.state == model::JobState::kStopping) return;
  for (const uint32_t slot : Vacating(job)) fact->add_vacate(slot);
  for (const uint32_t slot : Without(job.released_slots, job.vacated_slots)) {
    fact->add_done_slots(slot);
  }
}

}  // namespace

Resources ToResources(const AmountList& list) {
  Resources resources;
  for (const events::v1::Amount& amount : list) resources.Add(amount.resource(), amount.amount());
  return resources;
}

AmountList ToAmounts(const Resources& resources) {
  std::vector<std::pair<std::string, int64_t>> named = resources.others();
  named.emplace_back("cpu", resources[scheduling::kCpu]);
  named.emplace_back(kGpuParts, resources[scheduling::kGpu]);
  named.emplace_back("memory", resources[scheduling::kMemory]);
  std::sort(named.begin(), named.end());
  AmountList list;
  for (const auto& [name, amount] : named) {
    if (amount == 0) continue;
    events::v1::Amount* added = list.Add();
    added->set_resource(name);
    added->set_amount(amount);
  }
  return list;
}

std::vector<Dependency> ToDependencies(
    const google::protobuf::RepeatedPtrField<events::v1::Dependency>& list) {
  std::vector<Dependency> dependencies;
  for (const events::v1::Dependency& dependency : list) {
    const int condition = dependency.condition() - 1;
    dependencies.push_back({static_cast<scheduling::Condition>(condition), dependency.job()});
  }
  return dependencies;
}

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
  fact.set_slots(SlotsOf(job));
  fact.set_priority(job.priority);
  fact.set_created_ms(job.created_ms);
  fact.set_time_ms(job.updated_ms);
  fact.set_start_ms(job.start_ms);
  fact.set_placement_hash(job.placement_hash);
  fact.set_after_stop(job.after_stop);
  fact.set_duration_ms(job.effective_duration_ms);
  fact.set_revision(job.revision);
  fact.set_user(*job.user);
  fact.set_grace_ms(job.grace_ms);
  fact.set_firm(job.firm);
  if (job.slip != nullptr) *fact.mutable_slip() = *job.slip;
  fact.set_ends_after_ms(job.ends_after_ms);
  for (const LostSlot& lost : LostSlots(job)) fact.add_lost_slots(lost.slot);
  if (IsElastic(job)) {
    fact.set_min_slots(job.min_slots);
    fact.set_max_slots(job.slots);
    fact.set_resized(job.resized);
    AddVacated(job, &fact);
  }
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
  row.mutable_vacated_slots()->Add(job.vacated_slots.begin(), job.vacated_slots.end());
  row.set_requeue_is_failure(job.requeue_is_failure);
  row.set_begin_ms(job.begin_ms);
  for (const Dependency& dependency : job.depends_on) {
    events::v1::Dependency* added = row.add_depends_on();
    added->set_condition(ToProto(dependency.condition));
    added->set_job(dependency.job);
  }
  *row.mutable_amounts() = ToAmounts(*job.amounts);
  row.set_waiting_since_ms(job.submitted_ms);
  row.set_ending(job.ending);
  row.set_held_slots(job.held_slots);
  row.set_grown(job.grown);
  row.set_resized(job.resized);
  if (job.held_slots != 0) row.set_asked_slots(job.slots);
  row.set_succeeded(job.succeeded);
  row.set_first_ms(job.first_ms);
  row.set_overran(job.overran);
  if (job.unsaid_slip != nullptr) *row.mutable_unsaid_slip() = *job.unsaid_slip;
  row.set_attempt_since_ms(job.attempt_since_ms);
  row.set_allocated_ms(job.allocated_ms);
  row.set_slot_ms(job.slot_ms);
  row.set_jobspec_bytes(job.jobspec_bytes);
  if (job.qos != nullptr) row.set_qos(*job.qos);
  for (const LostSlot& lost : LostSlots(job)) {
    queue::v1::JobRow::Lost* added = row.add_lost_slots();
    added->set_slot(lost.slot);
    added->set_node(lost.node);
    added->set_lost_ms(lost.lost_ms);
    added->set_closed(lost.closed);
  }
  return row;
}

Job FromRow(const queue::v1::JobRow& row) {
  const events::v1::JobFact& fact = row.fact();
  Job job;
  job.id = fact.job_id();
  job.workload = std::make_shared<const events::v1::Workload>(fact.workload());
  job.user = std::make_shared<const std::string>(fact.user());
  job.queue = fact.queue();
  job.priority = fact.priority();
  if (row.has_duration_ms()) job.duration_ms = row.duration_ms();
  job.hold = row.hold();
  job.slots = row.held_slots() == 0 ? fact.slots() : row.asked_slots();
  job.min_slots = fact.min_slots();
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
  job.firm = fact.firm();
  if (fact.has_slip()) job.slip = std::make_shared<const events::v1::Slip>(fact.slip());
  job.ends_after_ms = fact.ends_after_ms();
  job.promised_ms = IsPromised(job) ? job.start_ms : 0;
  job.promised_firm = job.firm;
  job.overran = row.overran();
  if (row.has_unsaid_slip()) {
    job.unsaid_slip = std::make_shared<const events::v1::Slip>(row.unsaid_slip());
  }
  job.not_before_ms = row.not_before_ms();
  job.unsatisfiable_since_ms = row.unsatisfiable_since_ms();
  job.after_stop = fact.after_stop();
  job.requeue_is_failure = row.requeue_is_failure();
  job.grace_ms = fact.grace_ms();
  job.released_slots.assign(row.released_slots().begin(), row.released_slots().end());
  job.vacated_slots.assign(row.vacated_slots().begin(), row.vacated_slots().end());
  job.begin_ms = row.begin_ms();
  job.depends_on = ToDependencies(row.depends_on());
  job.amounts = std::make_shared<const Resources>(ToResources(row.amounts()));
  // Rows of a version that did not know it: here, and below.
  job.submitted_ms = row.waiting_since_ms() == 0 ? fact.created_ms() : row.waiting_since_ms();
  job.ending = row.ending();
  job.held_slots = row.held_slots();
  job.grown = row.grown();
  job.resized = row.resized();
  job.succeeded = row.succeeded();
  job.first_ms = row.first_ms();
  job.attempt_since_ms = row.attempt_since_ms() == 0 ? job.submitted_ms : row.attempt_since_ms();
  job.allocated_ms = row.allocated_ms();
  if (job.allocated_ms == 0 && model::kHoldingStates.Has(job.state)) {
    job.allocated_ms = fact.start_ms() == 0 ? fact.time_ms() : fact.start_ms();
  }
  job.slot_ms = row.slot_ms();
  job.jobspec_bytes = row.jobspec_bytes();
  if (!row.qos().empty()) job.qos = std::make_shared<const std::string>(row.qos());
  std::vector<LostSlot> lost_slots;
  for (const queue::v1::JobRow::Lost& lost : row.lost_slots()) {
    lost_slots.push_back({lost.slot(), lost.node(), lost.lost_ms(), lost.closed()});
  }
  if (!lost_slots.empty()) {
    job.lost = std::make_shared<const std::vector<LostSlot>>(std::move(lost_slots));
  }
  return job;
}

std::string FullName(const Job& job) {
  return job.workload->namespace_() + "/" + job.workload->name();
}

uint64_t ShapeOf(const Job& job) {
  // FNV-1a: kept in rows.
  uint64_t hash = 14695981039346656037ULL;
  const auto add = [&hash](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  };
  add(std::to_string(job.slots));
  for (const events::v1::Amount& amount : ToAmounts(*job.amounts)) {
    add(amount.resource());
    add(std::to_string(amount.amount()));
  }
  return hash;
}

scheduling::Ending EndingOf(const Job& job) {
  return {job.ending, job.id, FullName(job), job.state == model::JobState::kSucceeded};
}

bool IsClaim(const Job& job) {
  return model::IsClaim(job.workload->kind());
}

bool IsElastic(const Job& job) {
  return job.min_slots != 0;
}

uint32_t SlotsOf(const Job& job) {
  if (job.held_slots == 0 || job.lost != nullptr) return job.slots;
  const size_t given_back = job.vacated_slots.size() - Vacating(job).size();
  return job.held_slots - static_cast<uint32_t>(given_back);
}

uint32_t LiveSlots(const Job& job) {
  const uint32_t all = job.held_slots == 0 ? job.slots : job.held_slots;
  return all - static_cast<uint32_t>(job.released_slots.size());
}

std::vector<uint32_t> Vacating(const Job& job) {
  return Without(job.vacated_slots, job.released_slots);
}

const std::vector<LostSlot>& LostSlots(const Job& job) {
  static const std::vector<LostSlot> kNone;
  return job.lost == nullptr ? kNone : *job.lost;
}

uint32_t MissingSlots(const Job& job) {
  constexpr model::StateSet kGoesOn = {
      model::JobState::kAllocated, model::JobState::kBound, model::JobState::kRunning};
  if (job.lost == nullptr || !kGoesOn.Has(job.state)) return 0;
  const size_t others = std::max(job.held_slots, job.slots) - job.slots;
  return static_cast<uint32_t>(job.lost->size() - std::min(others, job.lost->size()));
}

bool GivesSlotsBackEarly(const Job& job) {
  const bool one_pod_a_slot =
      model::IsGroup(job.workload->kind()) ||
      (job.workload->kind() == "Job" && job.workload->completions() <= SlotsOf(job));
  return one_pod_a_slot && !job.grown && !job.resized && job.vacated_slots.empty();
}

}  // namespace fluxqueue::queue_core
