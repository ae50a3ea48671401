#include "libs/verify/row_tables.h"

#include "libs/queue_core/job_change.h"
#include "libs/scheduling/dependencies.h"

namespace fluxqueue::verify {
namespace {

using matcher_core::AllocationKey;
using Held = replay::v1::MatcherTables::Held;

std::optional<std::string> OrNothing(const std::string& bytes) {
  return bytes.empty() ? std::nullopt : std::optional(bytes);
}

AllocationKey KeyOf(const Held& held) {
  return {held.job_id(), held.attempt(), held.part()};
}

void Fill(const AllocationKey& key, const std::string& placement, Held* held) {
  held->set_job_id(key.job_id);
  held->set_attempt(key.attempt);
  held->set_part(key.part);
  held->set_placement(placement);
}

}  // namespace

QueueTables::QueueTables(const replay::v1::QueueTables& saved)
    : pool_(saved.pool()),
      queues_(saved.queues().begin(), saved.queues().end()),
      cycles_(saved.cycles().begin(), saved.cycles().end()) {
  for (const auto& [id, job] : saved.jobs()) {
    jobs_[id] = queue_core::ChangeOf(job.row());
    if (job.ending() != 0) endings_[job.ending()] = id;
  }
  for (const auto& usage : saved.usage()) usage_[{usage.kind(), usage.name()}] = usage.row();
}

void QueueTables::WriteJob(const queue_core::JobChange& change) {
  queue_core::JobChange& job = jobs_[change.job_id];
  endings_.erase(job.ending);
  job = change;
  if (job.ending == 0) return;
  endings_[job.ending] = change.job_id;
  const uint64_t last = endings_.rbegin()->first;
  while (endings_.begin()->first + scheduling::kEndingsKept <= last) {
    jobs_.erase(endings_.begin()->second);
    endings_.erase(endings_.begin());
  }
}

void QueueTables::Write(const queue_core::Changes& changes) {
  if (changes.empty()) return;
  pool_ = changes.pool;
  for (const queue_core::JobChange& job : changes.jobs) WriteJob(job);
  for (const queue_core::QueueChange& queue : changes.queues) {
    if (queue.deleted) {
      queues_.erase(queue.queue);
    } else {
      queues_[queue.queue] = queue.row;
    }
  }
  for (const queue_core::UsageChange& usage : changes.usage) {
    if (usage.deleted) {
      usage_.erase({usage.kind, usage.name});
    } else {
      usage_[{usage.kind, usage.name}] = usage.row;
    }
  }
  for (const queue_core::CycleRequest& cycle : changes.cycles_requested) {
    cycles_[cycle.cycle_id] = cycle.requested;
  }
  for (const uint64_t id : changes.cycles_answered) cycles_.erase(id);
}

queue_core::Rows QueueTables::Rows() const {
  queue_core::Rows rows;
  rows.pool = pool_;
  for (const auto& [name, row] : queues_) rows.queues.push_back(row);
  for (const auto& [id, job] : jobs_) {
    if (job.ending == 0) rows.jobs.push_back(job.row);
  }
  for (const auto& [key, row] : usage_) rows.usage.push_back(row);
  for (const auto& [ending, id] : endings_) rows.endings.push_back(jobs_.at(id).row);
  for (const auto& [id, row] : cycles_) rows.cycles_unanswered.push_back(row);
  return rows;
}

queue_core::Changes QueueTables::All() const {
  queue_core::Changes all;
  for (const auto& [id, job] : jobs_) all.jobs.push_back(job);
  for (const auto& [name, row] : queues_) all.queues.push_back({.queue = name, .row = row});
  for (const auto& [key, row] : usage_) {
    all.usage.push_back({.kind = key.first, .name = key.second, .row = row});
  }
  for (const auto& [id, requested] : cycles_) all.cycles_requested.push_back({id, requested});
  all.pool = pool_;
  return all;
}

replay::v1::QueueTables QueueTables::Save() const {
  replay::v1::QueueTables saved;
  saved.set_pool(pool_);
  for (const auto& [id, job] : jobs_) {
    auto& row = (*saved.mutable_jobs())[id];
    row.set_row(job.row);
    row.set_ending(job.ending);
  }
  for (const auto& [name, row] : queues_) (*saved.mutable_queues())[name] = row;
  for (const auto& [key, row] : usage_) {
    auto* usage = saved.add_usage();
    usage->set_kind(key.first);
    usage->set_name(key.second);
    usage->set_row(row);
  }
  for (const auto& [id, row] : cycles_) (*saved.mutable_cycles())[id] = row;
  return saved;
}

MatcherTables::MatcherTables(const replay::v1::MatcherTables& saved)
    : pool_(OrNothing(saved.pool())), forecast_(OrNothing(saved.forecast())) {
  for (const Held& held : saved.allocations()) {
    allocations_[KeyOf(held)] = {KeyOf(held), held.placement(), held.placement_hash()};
  }
  for (const auto& node : saved.nodes()) {
    nodes_[node.name()] = {node.name(), node.uid(), node.ordinal(), node.node(), node.present()};
  }
  for (const auto& spec : saved.specs()) {
    specs_[{spec.job_id(), spec.part()}] = {
        spec.job_id(), spec.part(), spec.revision(), spec.slots(), spec.jobspec()};
  }
  for (const Held& held : saved.reservations()) {
    reservations_[KeyOf(held)] = {KeyOf(held), held.placement()};
  }
  if (!saved.answer().empty()) answer_ = {saved.answered_cycle(), saved.answer()};
}

void MatcherTables::Write(const matcher_core::Changes& changes) {
  for (const AllocationKey& key : changes.released) allocations_.erase(key);
  for (const matcher_core::AllocationRow& row : changes.allocations) {
    allocations_[row.key] = row;
    if (row.released) allocations_.erase(row.key);
  }
  for (const std::string& name : changes.nodes_dropped) nodes_.erase(name);
  for (const matcher_core::NodeRow& row : changes.nodes) nodes_[row.name] = row;
  for (const auto& key : changes.specs_dropped) specs_.erase(key);
  for (const matcher_core::SpecRow& row : changes.specs) specs_[{row.job_id, row.part}] = row;
  for (const AllocationKey& key : changes.reservations_dropped) reservations_.erase(key);
  for (const matcher_core::ReservationRow& row : changes.reservations) reservations_[row.key] = row;
  if (!changes.answers.empty()) answer_ = changes.answers.back();
  if (changes.pool) pool_ = changes.pool;
  if (changes.forecast) forecast_ = changes.forecast;
}

matcher_core::Rows MatcherTables::Rows() const {
  matcher_core::Rows rows;
  for (const auto& [key, row] : allocations_) rows.allocations.push_back(row);
  for (const auto& [name, row] : nodes_) rows.nodes.push_back(row);
  for (const auto& [key, row] : specs_) rows.specs.push_back(row);
  for (const auto& [key, row] : reservations_) rows.reservations.push_back(row);
  if (answer_) rows.answers.push_back(*answer_);
  rows.pool = pool_;
  rows.forecast = forecast_;
  return rows;
}

matcher_core::Changes MatcherTables::All() const {
  matcher_core::Rows rows = Rows();
  matcher_core::Changes all;
  all.allocations = std::move(rows.allocations);
  all.nodes = std::move(rows.nodes);
  all.specs = std::move(rows.specs);
  all.reservations = std::move(rows.reservations);
  all.answers = std::move(rows.answers);
  all.pool = std::move(rows.pool);
  all.forecast = std::move(rows.forecast);
  return all;
}

replay::v1::MatcherTables MatcherTables::Save() const {
  replay::v1::MatcherTables saved;
  for (const auto& [key, row] : allocations_) {
    Held* held = saved.add_allocations();
    Fill(key, row.placement, held);
    held->set_placement_hash(row.placement_hash);
  }
  for (const auto& [name, row] : nodes_) {
    auto* node = saved.add_nodes();
    node->set_name(row.name);
    node->set_uid(row.uid);
    node->set_ordinal(row.ordinal);
    node->set_node(row.node);
    node->set_present(row.present);
  }
  for (const auto& [key, row] : specs_) {
    auto* spec = saved.add_specs();
    spec->set_job_id(row.job_id);
    spec->set_part(row.part);
    spec->set_revision(row.revision);
    spec->set_slots(row.slots);
    spec->set_jobspec(row.jobspec);
  }
  for (const auto& [key, row] : reservations_) Fill(key, row.placement, saved.add_reservations());
  if (answer_) {
    saved.set_answered_cycle(answer_->cycle_id);
    saved.set_answer(answer_->answer);
  }
  saved.set_pool(pool_.value_or(""));
  saved.set_forecast(forecast_.value_or(""));
  return saved;
}

}  // namespace fluxqueue::verify
