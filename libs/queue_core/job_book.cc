#include "libs/queue_core/job_book.h"

#include <algorithm>
#include <limits>

#include "libs/base/check.h"

namespace fluxqueue::queue_core {
namespace {

using events::v1::QueueConfigured;
using model::JobState;

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
  change.slots = job.slots;
  change.priority = job.priority;
  change.created_ms = job.created_ms;
  change.start_ms = job.start_ms;
  change.updated_ms = job.updated_ms;
  change.placement_hash = job.placement_hash;
  change.row = ToRow(job, pool).SerializeAsString();
  return change;
}

// When the claim's time is over; 0: it is no claim that runs, or has no end.
int64_t ExpiryOf(const Job& job) {
  if (!IsClaim(job) || job.state != JobState::kRunning || job.effective_duration_ms == 0) return 0;
  const int64_t last = std::numeric_limits<int64_t>::max();
  if (job.effective_duration_ms > last - job.start_ms) return 0;
  return job.start_ms + job.effective_duration_ms;
}

scheduling::QueueOrder OrderOf(const QueueConfigured& config) {
  return {config.priority(), config.weight(), config.queue()};
}

}  // namespace

Entry* JobBook::Find(std::string_view id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second.get();
}

const Entry* JobBook::Find(std::string_view id) const {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second.get();
}

JobBook::Before& JobBook::Remember(const std::string& id, Entry* entry) {
  const auto [it, first] = journal_.try_emplace(id);
  if (first && entry != nullptr) it->second.job = entry->job;
  return it->second;
}

Entry* JobBook::Add(Job job) {
  Before& before = Remember(job.id, nullptr);
  if (before.changed == 0) before.changed = ++changed_rows_;
  before.ended.reset();
  auto entry = std::make_unique<Entry>();
  entry->job = std::move(job);
  entry->remembered_in = batch_;
  entry->changed_in = batch_;
  Entry* added = entry.get();
  const bool inserted = jobs_.emplace(added->job.id, std::move(entry)).second;
  CHECK(inserted, "job {} is known already", added->job.id);
  return added;
}

Job& JobBook::Edit(Entry* entry, bool row_changes) {
  if (entry->remembered_in != batch_) {
    Remember(entry->job.id, entry);
    entry->remembered_in = batch_;
  }
  if (row_changes && entry->changed_in != batch_) {
    journal_[entry->job.id].changed = ++changed_rows_;
    entry->changed_in = batch_;
  }
  return entry->job;
}

void JobBook::Place(Entry* entry) {
  const Job& job = entry->job;
  Queue* queue = QueueOf(job.queue);
  if (entry->counted_in != queue || entry->counted_as != job.state) {
    if (entry->counted_in != nullptr) {
      --entry->counted_in->counts[static_cast<size_t>(entry->counted_as)];
    }
    ++queue->counts[static_cast<size_t>(job.state)];
    entry->counted_in = queue;
    entry->counted_as = job.state;
  }

  const bool wants = job.state == JobState::kPending && !job.hold;
  const int64_t alarm = wants && job.not_before_ms > now_ms_ ? job.not_before_ms : 0;
  if (entry->alarm_ms != alarm) {
    if (entry->alarm_ms != 0) alarms_.erase({entry->alarm_ms, job.submission});
    if (alarm != 0) alarms_[{alarm, job.submission}] = entry;
    entry->alarm_ms = alarm;
  }

  const int64_t expiry = ExpiryOf(job);
  if (entry->expiry_ms != expiry) {
    if (entry->expiry_ms != 0) expiries_.erase({entry->expiry_ms, job.submission});
    if (expiry != 0) expiries_[{expiry, job.submission}] = entry;
    entry->expiry_ms = expiry;
  }

  Queue* line = wants && alarm == 0 ? queue : nullptr;
  const scheduling::OrderKey key{job.priority, job.submission};
  if (entry->in_line_of == line && (line == nullptr || entry->line_key == key)) return;
  if (entry->in_line_of != nullptr) entry->in_line_of->line.Erase(entry->line_key);
  if (line != nullptr) {
    line->line.Insert(key, entry);
    entered_ = true;
  }
  entry->in_line_of = line;
  entry->line_key = key;
}

void JobBook::Unplace(Entry* entry) {
  if (entry->counted_in != nullptr) {
    --entry->counted_in->counts[static_cast<size_t>(entry->counted_as)];
  }
  if (entry->in_line_of != nullptr) entry->in_line_of->line.Erase(entry->line_key);
  if (entry->alarm_ms != 0) alarms_.erase({entry->alarm_ms, entry->job.submission});
  if (entry->expiry_ms != 0) expiries_.erase({entry->expiry_ms, entry->job.submission});
  entry->counted_in = nullptr;
  entry->in_line_of = nullptr;
  entry->alarm_ms = 0;
  entry->expiry_ms = 0;
}

void JobBook::End(Entry* entry) {
  CHECK(model::IsTerminal(entry->job.state), "job {} has not ended", entry->job.id);
  Edit(entry);
  Unplace(entry);
  const std::string id = entry->job.id;
  const auto it = jobs_.find(id);
  ended_journal_.emplace_back(id, std::nullopt);
  ended_[id] = entry->job.attempt;
  journal_[id].ended = std::move(it->second);
  jobs_.erase(it);
}

std::optional<uint32_t> JobBook::EndedAttempt(std::string_view id) const {
  const auto it = ended_.find(id);
  if (it == ended_.end()) return std::nullopt;
  return it->second;
}

void JobBook::Confirm(std::string_view id) {
  const auto it = ended_.find(id);
  if (it == ended_.end()) return;
  ended_journal_.emplace_back(it->first, it->second);
  ended_.erase(it);
}

Queue* JobBook::QueueOf(const std::string& name) {
  std::unique_ptr<Queue>& queue = queues_[name];
  if (queue == nullptr) {
    queue = std::make_unique<Queue>();
    queue->name = name;
  }
  return queue.get();
}

bool JobBook::Exists(const std::string& queue) const {
  const auto it = queues_.find(queue);
  return it != queues_.end() && it->second->config != nullptr;
}

void JobBook::SetConfig(Queue* queue, std::shared_ptr<const QueueConfigured> config) {
  if (queue->config != nullptr) served_.erase(OrderOf(*queue->config));
  queue->config = std::move(config);
  if (queue->config != nullptr) served_[OrderOf(*queue->config)] = queue;
}

void JobBook::Configure(const std::string& name, std::shared_ptr<const QueueConfigured> config) {
  Queue* queue = QueueOf(name);
  queue_journal_.emplace_back(name, queue->config);
  SetConfig(queue, std::move(config));
}

Entry* JobBook::Head() const {
  for (const auto& [order, queue] : served_) {
    if (!queue->line.empty()) return queue->line.begin()->second;
  }
  return nullptr;
}

std::vector<Entry*> JobBook::JobsOf(const std::string& queue, JobState state) {
  std::vector<Entry*> found;
  const auto it = queues_.find(queue);
  if (it == queues_.end() || it->second->counts[static_cast<size_t>(state)] == 0) return found;
  for (const auto& [id, entry] : jobs_) {
    if (entry->job.state == state && entry->job.queue == queue) found.push_back(entry.get());
  }
  std::sort(found.begin(), found.end(), [](const Entry* a, const Entry* b) {
    return a->job.submission < b->job.submission;
  });
  return found;
}

std::vector<Entry*> JobBook::SetAside() {
  std::vector<Entry*> found;
  for (const auto& [when, entry] : alarms_) {
    if (entry->job.unsatisfiable_since_ms != 0) found.push_back(entry);
  }
  return found;
}

void JobBook::AdvanceTo(int64_t now_ms) {
  now_ms_ = now_ms;
  while (!alarms_.empty() && alarms_.begin()->first.first <= now_ms) {
    Entry* entry = alarms_.begin()->second;
    // Its row says when it may be tried, not whether it stands in line.
    Edit(entry, /*row_changes=*/false);
    Place(entry);
  }
}

std::vector<Entry*> JobBook::Expired() const {
  std::vector<Entry*> expired;
  for (const auto& [when, entry] : expiries_) {
    if (when.first > now_ms_) break;
    expired.push_back(entry);
  }
  return expired;
}

std::optional<int64_t> JobBook::NextAlarm() const {
  std::optional<int64_t> next;
  for (const auto* times : {&alarms_, &expiries_}) {
    if (times->empty()) continue;
    const int64_t first = times->begin()->first.first;
    next = next.has_value() ? std::min(*next, first) : first;
  }
  return next;
}

void JobBook::Commit() {
  journal_.clear();
  ended_journal_.clear();
  queue_journal_.clear();
  changed_rows_ = 0;
  ++batch_;
}

void JobBook::Rollback(int64_t now_ms) {
  now_ms_ = now_ms;
  for (auto it = queue_journal_.rbegin(); it != queue_journal_.rend(); ++it) {
    SetConfig(QueueOf(it->first), std::move(it->second));
  }
  for (auto it = ended_journal_.rbegin(); it != ended_journal_.rend(); ++it) {
    if (it->second.has_value()) {
      ended_[it->first] = *it->second;
    } else {
      ended_.erase(it->first);
    }
  }
  // First all out, then all in: two jobs may have swapped places.
  for (auto& [id, before] : journal_) {
    const auto it = jobs_.find(id);
    if (it == jobs_.end()) continue;
    Unplace(it->second.get());
    jobs_.erase(it);
  }
  for (auto& [id, before] : journal_) {
    if (!before.job.has_value()) continue;
    auto entry = std::make_unique<Entry>();
    entry->job = std::move(*before.job);
    entry->job.in_cycle = false;  // the caller knows which cycle is in flight again
    Place(entry.get());
    jobs_.emplace(id, std::move(entry));
  }
  Commit();
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

  std::map<std::string, const Queue*> queues;
  for (const auto& [name, config] : queue_journal_) queues[name] = queues_.at(name).get();
  for (const auto& [name, queue] : queues) {
    QueueChange change{.queue = name, .deleted = queue->config == nullptr, .row = ""};
    if (!change.deleted) {
      queue::v1::QueueRow row;
      *row.mutable_config() = *queue->config;
      change.row = row.SerializeAsString();
    }
    changes->queues.push_back(std::move(change));
  }
}

void JobBook::Clear(int64_t now_ms) {
  Commit();
  alarms_.clear();
  expiries_.clear();
  served_.clear();
  jobs_.clear();
  queues_.clear();
  ended_.clear();
  now_ms_ = now_ms;
}

std::vector<const Entry*> JobBook::Jobs() const {
  std::vector<const Entry*> all;
  all.reserve(jobs_.size());
  for (const auto& [id, entry] : jobs_) all.push_back(entry.get());
  std::sort(all.begin(), all.end(), [](const Entry* a, const Entry* b) {
    return a->job.submission < b->job.submission;
  });
  return all;
}

}  // namespace fluxqueue::queue_core
