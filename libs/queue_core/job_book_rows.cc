// The book as rows, and what is known besides jobs and queues from them again.
#include <algorithm>
#include <utility>

#include "libs/queue_core/job_book.h"
#include "libs/queue_core/job_change.h"
#include "libs/queue_core/queue_spec.h"

#include "fmt/format.h"

namespace fluxqueue::queue_core {
namespace {

using queue::v1::UsageRow;

JobChange ToChange(const Job& job, const std::string& pool) {
  JobChange change;
  change.job_id = job.id;
  change.queue = job.queue;
  change.name_space = job.workload->namespace_();
  change.name = job.workload->name();
  change.kind = job.workload->kind();
  change.state = job.state;
  change.version = job.version;
  change.attempt = job.attempt;
  change.reason = job.reason;
  change.message = job.message;
  change.slots = SlotsOf(job);
  if (IsElastic(job)) change.most_slots = job.slots;
  change.priority = job.priority;
  change.created_ms = job.created_ms;
  change.start_ms = job.start_ms;
  change.updated_ms = job.updated_ms;
  change.placement_hash = job.placement_hash;
  change.ending = job.ending;
  change.user = *job.user;
  change.jobspec_bytes = job.jobspec_bytes;
  change.row = ToRow(job, pool).SerializeAsString();
  return change;
}

// In the order of scheduling::Level, and of PastRow.Level.
constexpr const char* kLevels[] = {"queue", "namespace", "user"};

UsageChange ToChange(const scheduling::PastRow& past) {
  UsageRow row;
  queue::v1::PastRow* kept = row.mutable_past();
  kept->set_queue(past.queue);
  kept->set_level(static_cast<queue::v1::PastRow::Level>(past.level));
  kept->set_name(past.name);
  kept->set_at_ms(past.past.at_ms);
  kept->set_cpu(past.past.used[scheduling::kCpu]);
  kept->set_memory(past.past.used[scheduling::kMemory]);
  kept->set_gpu(past.past.used[scheduling::kGpu]);
  for (const auto& [resource, used] : past.past.others) {
    queue::v1::PastRow::Used* other = kept->add_others();
    other->set_resource(resource);
    other->set_used(used);
  }
  for (const scheduling::Spent& one : past.past.spent) {
    queue::v1::PastRow::Spent* spent = kept->add_spent();
    spent->set_resource(one.resource);
    spent->set_period(ToPeriod(one.period));
    spent->set_since_ms(one.since_ms);
    spent->set_used(one.used);
  }
  // A queue's name has no slash.
  return {.kind = kLevels[static_cast<size_t>(past.level)],
          .name = fmt::format("{}/{}", past.queue, past.name),
          .deleted = past.past.at_ms == 0,
          .row = row.SerializeAsString()};
}

UsageChange ToChange(const scheduling::DurationPredictor::Change& change) {
  UsageRow row;
  queue::v1::HistoryRow* kept = row.mutable_history();
  kept->set_user(change.history.user);
  kept->set_shape(change.history.shape);
  kept->set_last_ms(change.history.last_ms);
  kept->set_before_ms(change.history.before_ms);
  kept->set_learnt(change.history.learnt);
  kept->set_declared_error(change.history.declared_error);
  kept->set_predicted_error(change.history.predicted_error);
  return {.kind = "history",
          .name = fmt::format("{:016x}/{}", change.history.shape, change.history.user),
          .deleted = change.forgotten,
          .row = row.SerializeAsString()};
}

}  // namespace

JobChange ChangeOf(std::string row) {
  queue::v1::JobRow parsed;
  parsed.ParseFromString(row);
  JobChange change = ToChange(FromRow(parsed), parsed.fact().pool());
  change.row = std::move(row);
  return change;
}

scheduling::PastRow FromRow(const queue::v1::PastRow& kept) {
  scheduling::PastRow row{
      .queue = kept.queue(),
      .level = static_cast<scheduling::Level>(kept.level()),
      .name = kept.name(),
      .past = {.used = {kept.cpu(), kept.memory(), kept.gpu()}, .at_ms = kept.at_ms()}};
  for (const queue::v1::PastRow::Used& other : kept.others()) {
    row.past.others.emplace_back(other.resource(), other.used());
  }
  for (const queue::v1::PastRow::Spent& spent : kept.spent()) {
    row.past.spent.push_back({.resource = spent.resource(),
                              .period = PeriodOf(spent.period()),
                              .since_ms = spent.since_ms(),
                              .used = spent.used()});
  }
  return row;
}

void JobBook::Describe(const std::string& pool, Changes* changes) const {
  std::vector<std::pair<uint64_t, const Job*>> changed;
  for (const auto& [id, before] : journal_) {
    if (before.changed == 0) continue;
    const Job* job = before.ended != nullptr ? &before.ended->job : nullptr;
    if (const Entry* entry = Find(id); entry != nullptr) job = &entry->job;
    if (job != nullptr) changed.emplace_back(before.changed, job);
  }
  std::sort(changed.begin(), changed.end());
  changes->jobs.reserve(changed.size());
  for (const auto& [place, job] : changed) changes->jobs.push_back(ToChange(*job, pool));

  for (const auto& [name, before, config] : configs_.Touched()) {
    QueueChange change{.queue = name, .deleted = *config == nullptr, .row = ""};
    if (!change.deleted) {
      queue::v1::QueueRow row;
      *row.mutable_config() = **config;
      change.row = row.SerializeAsString();
    }
    changes->queues.push_back(std::move(change));
  }
  for (const scheduling::PastRow& past : tree_.ChangedPasts()) {
    changes->usage.push_back(ToChange(past));
  }
  for (const auto& change : predictor_.Changes()) changes->usage.push_back(ToChange(change));
}

bool JobBook::AddUsage(const UsageRow& row) {
  switch (row.row_case()) {
    case UsageRow::kPast: {
      tree_.SetPast(FromRow(row.past()));
      return true;
    }
    case UsageRow::kHistory: {
      const queue::v1::HistoryRow& history = row.history();
      predictor_.Set({.user = history.user(),
                      .shape = history.shape(),
                      .last_ms = history.last_ms(),
                      .before_ms = history.before_ms(),
                      .learnt = history.learnt(),
                      .declared_error = history.declared_error(),
                      .predicted_error = history.predicted_error()});
      return true;
    }
    case UsageRow::kVirtualJob:  // those of adaptive_queues.h
    case UsageRow::kAdaptive:
    case UsageRow::kReliability:
    case UsageRow::ROW_NOT_SET:
      return false;
  }
  return false;
}

}  // namespace fluxqueue::queue_core
