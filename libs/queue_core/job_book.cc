#include "libs/queue_core/job_book.h"

#include <algorithm>

#include "libs/base/check.h"
#include "libs/queue_core/queue_spec.h"

namespace fluxqueue::queue_core {
namespace {

using events::v1::QueueConfigured;
using model::JobState;

scheduling::QueueOrder OrderOf(const QueueConfigured& config) {
  return {config.priority(), config.weight(), config.queue()};
}

}  // namespace

Entry* JobBook::Find(std::string_view id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->get();
}

const Entry* JobBook::Find(std::string_view id) const {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->get();
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
  entry->job.user = users_(*entry->job.user);
  entry->job.amounts = amounts_(*entry->job.amounts);
  entry->remembered_in = batch_;
  entry->changed_in = batch_;
  Entry* added = entry.get();
  const bool inserted = jobs_.insert(std::move(entry)).second;
  CHECK(inserted, "job {} is known already", added->job.id);
  List(added);
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

void JobBook::List(Entry* entry) {
  by_name_.emplace(std::hash<std::string>()(FullName(entry->job)), entry);
}

void JobBook::Unlist(Entry* entry) {
  const auto [first, last] = by_name_.equal_range(std::hash<std::string>()(FullName(entry->job)));
  for (auto it = first; it != last; ++it) {
    if (it->second != entry) continue;
    by_name_.erase(it);
    return;
  }
}

Entry* JobBook::FindByName(const std::string& name) const {
  Entry* found = nullptr;
  const auto [first, last] = by_name_.equal_range(std::hash<std::string>()(name));
  for (auto it = first; it != last; ++it) {
    Entry* entry = it->second;
    const bool later = found == nullptr || found->job.submission < entry->job.submission;
    if (later && FullName(entry->job) == name) found = entry;
  }
  return found;
}

std::vector<Entry*> JobBook::DependentsOf(const std::string& target) const {
  std::vector<Entry*> entries;
  for (const uint64_t submission : dependents_.Of(target)) {
    entries.push_back(by_submission_.at(submission));
  }
  return entries;
}

void JobBook::End(Entry* entry) {
  CHECK(model::IsTerminal(entry->job.state), "job {} has not ended", entry->job.id);
  Edit(entry).ending = endings_.last() + 1;
  endings_.Add(EndingOf(entry->job));
  Unplace(entry);
  Unlist(entry);
  const std::string& id = entry->job.id;
  ended_.Put(id, entry->job.attempt);
  journal_[id].ended = std::move(jobs_.extract(jobs_.find(std::string_view(id))).value());
}

std::optional<uint32_t> JobBook::EndedAttempt(std::string_view id) const {
  const auto it = ended_.map().find(id);
  if (it == ended_.map().end()) return std::nullopt;
  return it->second;
}

void JobBook::Confirm(const std::string& id) {
  ended_.Erase(id);
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

void JobBook::SetConfig(Queue* queue, QueueConfig config) {
  if (queue->config != nullptr) served_.erase(OrderOf(*queue->config));
  queue->config = std::move(config);
  if (queue->config != nullptr) served_[OrderOf(*queue->config)] = queue;
  std::optional<scheduling::QueueSpec> spec;
  if (queue->config != nullptr) spec = SpecOf(*queue->config);
  tree_.Configure(queue->name, std::move(spec), now_ms_);
  entered_ = true;
  // Its jobs may have other ranks now.
  std::vector<Entry*> waiting;
  for (const auto& [key, entry] : queue->line) waiting.push_back(entry);
  for (Entry* entry : waiting) Place(entry);
}

void JobBook::Configure(const std::string& name, QueueConfig config) {
  configs_.Put(name, config);
  SetConfig(QueueOf(name), std::move(config));
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
  for (const std::unique_ptr<Entry>& entry : jobs_) {
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

std::vector<Entry*> JobBook::AdvanceTo(int64_t now_ms) {
  now_ms_ = now_ms;
  std::vector<Entry*> rung;
  while (!alarms_.empty() && alarms_.begin()->first.first <= now_ms) {
    Entry* entry = alarms_.begin()->second;
    // Its row says when it may be tried, not whether it stands in line.
    Edit(entry, /*row_changes=*/false);
    Place(entry);
    rung.push_back(entry);
  }
  return rung;
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
  ended_.Commit();
  configs_.Commit();
  tree_.Commit();
  endings_.Commit();
  predictor_.Commit();
  changed_rows_ = 0;
  ++batch_;
}

void JobBook::Rollback(int64_t now_ms) {
  now_ms_ = now_ms;
  for (const auto& [name, before, now] : configs_.Touched()) {
    SetConfig(QueueOf(name), before != nullptr ? *before : nullptr);
  }
  configs_.Rollback();
  ended_.Rollback();
  // First all out, then all in: two jobs may have swapped places.
  for (auto& [id, before] : journal_) {
    const auto it = jobs_.find(std::string_view(id));
    if (it == jobs_.end()) continue;
    Unplace(it->get());
    Unlist(it->get());
    jobs_.erase(it);
  }
  for (auto& [id, before] : journal_) {
    if (!before.job.has_value()) continue;
    auto entry = std::make_unique<Entry>();
    entry->job = std::move(*before.job);
    entry->job.in_cycle = false;  // the caller knows which cycle is in flight again
    Place(entry.get());
    List(entry.get());
    jobs_.insert(std::move(entry));
  }
  tree_.RestorePasts();
  endings_.Rollback();
  predictor_.Rollback();
  Commit();
}

void JobBook::Clear(int64_t now_ms) {
  Commit();
  holding_.clear();
  growing_.clear();
  replacing_.clear();
  alarms_.clear();
  expiries_.clear();
  served_.clear();
  jobs_.clear();
  by_name_.clear();
  by_submission_.clear();
  tree_.Clear();
  endings_.Clear();
  dependents_.Clear();
  predictor_.Clear();
  queues_.clear();
  configs_.Clear();
  ended_.Clear();
  now_ms_ = now_ms;
}

std::vector<const Entry*> JobBook::Jobs() const {
  std::vector<const Entry*> all;
  all.reserve(jobs_.size());
  for (const std::unique_ptr<Entry>& entry : jobs_) all.push_back(entry.get());
  std::sort(all.begin(), all.end(), [](const Entry* a, const Entry* b) {
    return a->job.submission < b->job.submission;
  });
  return all;
}

}  // namespace fluxqueue::queue_core
