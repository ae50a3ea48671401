#include "libs/delivery/quarantine.h"

#include <algorithm>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/base/text.h"

namespace fluxqueue::delivery {
namespace {

constexpr std::chrono::seconds kLongestPause{3600};

// Of an object that has failed so often: a new version is tried at once when it failed once.
std::chrono::seconds PauseAfter(int64_t times) {
  if (times < 2) return std::chrono::seconds(0);
  return std::min(kLongestPause,
                  std::chrono::seconds(int64_t{1} << std::min<int64_t>(times - 1, 20)));
}

// Stands for all objects of a kind in a namespace. No uid has a slash.
std::string UidOfNamespace(const std::string& space) {
  return "namespace/" + space;
}

}  // namespace

Quarantine::Quarantine(const Clock& clock, const std::vector<std::string>& kinds) : clock_(clock) {
  for (const std::string& kind : kinds) totals_[kind] = 0;
}

bool Quarantine::IsLeftOut(const ObjectRef& object) {
  const bool deleted = object.version == kDeleted;
  if (!deleted && !object.space.empty() &&
      rows_.contains({object.kind, UidOfNamespace(object.space)})) {
    return true;
  }
  const auto known = rows_.find(KeyOf(object));
  if (known == rows_.end() || !known->second.row.held) return false;
  Entry& entry = known->second;
  if (entry.row.object.version == object.version) return true;
  if (deleted || clock_.Monotonic() >= entry.until) return false;
  entry.missed = true;
  return true;
}

absl::StatusOr<bool> Quarantine::Admit(const ObjectRef& object) {
  if (IsLeftOut(object)) return false;
  if (mark_) RETURN_IF_ERROR(mark_(&object));
  admitted_.push_back(object);
  return true;
}

absl::Status Quarantine::Handled() {
  if (admitted_.empty()) return absl::OkStatus();
  if (!rows_.empty()) {
    for (const ObjectRef& object : admitted_) {
      if (rows_.contains(KeyOf(object))) Erase(KeyOf(object));
    }
  }
  one_by_one_ -= std::min(one_by_one_, admitted_.size());
  admitted_.clear();
  return mark_ ? mark_(nullptr) : absl::OkStatus();
}

void Quarantine::Restore(std::vector<QuarantineRow> rows) {
  rows_.clear();
  dirty_.clear();
  erased_.clear();
  admitted_.clear();
  for (QuarantineRow& row : rows) {
    const Key key = KeyOf(row.object);
    if (row.held && !row.told) {
      dirty_.insert(key);
      Count(key.first);
    }
    rows_[key].row = std::move(row);
  }
}

void Quarantine::Condemn(const std::string& reason) {
  CHECK(!admitted_.empty(), "no object was admitted");
  const ObjectRef object = admitted_.back();
  one_by_one_ -= std::min<size_t>(one_by_one_, 1);
  admitted_.clear();
  Hold(object, reason);
}

void Quarantine::HoldUnread(const ObjectRef& object, const std::string& reason) {
  if (!IsLeftOut(object)) Hold(object, reason);
}

void Quarantine::Hold(const ObjectRef& object, const std::string& reason) {
  const Key key = KeyOf(object);
  Entry entry;
  if (const auto known = rows_.find(key); known != rows_.end()) entry = known->second;
  entry.row.object = object;
  entry.row.reason = Cut(reason, kMostReasonBytes);
  ++entry.row.times;
  entry.row.held = true;
  LogWarning("object put into quarantine: it is left out until it changes or is retried",
             {{"kind", object.kind},
              {"namespace", object.space},
              {"name", object.name},
              {"uid", object.uid},
              {"reason", entry.row.reason}});
  entry.failed = clock_.Monotonic();
  entry.until = entry.failed + PauseAfter(entry.row.times);
  entry.missed = false;
  rows_[key] = std::move(entry);
  dirty_.insert(key);
  erased_.erase(key);
  if (!object.space.empty()) SumUp(object.kind, object.space);
  MakeRoom();
  Count(object.kind);
}

void Quarantine::SumUp(const std::string& kind, const std::string& space) {
  std::vector<Key> same;
  int64_t times = 0;
  std::string reason;
  for (const auto& [key, entry] : rows_) {
    if (key.first != kind || entry.row.object.space != space || !entry.row.held) continue;
    same.push_back(key);
    times += entry.row.times;
    reason = entry.row.reason;
  }
  if (same.size() <= kMostOfNamespace) return;
  for (const Key& key : same) Erase(key);
  const std::string uid = UidOfNamespace(space);
  const std::string sum = fmt::format(
      "{} objects of its kind could not be handled, and all of the namespace are left out. One of "
      "them: {}",
      same.size(),
      reason);
  rows_[{kind, uid}] = {.row = {.object = {.kind = kind, .space = space, .uid = uid},
                                .reason = Cut(sum, kMostReasonBytes),
                                .times = times,
                                .held = true},
                        .failed = clock_.Monotonic()};
  dirty_.insert({kind, uid});
  erased_.erase({kind, uid});
}

void Quarantine::MakeRoom() {
  if (rows_.size() <= kMost) return;
  const auto oldest =
      std::min_element(rows_.begin(), rows_.end(), [](const auto& left, const auto& right) {
        return left.second.failed < right.second.failed;
      });
  Erase(Key(oldest->first));
}

void Quarantine::Erase(const Key& key) {
  rows_.erase(key);
  dirty_.erase(key);
  erased_.insert(key);
}

void Quarantine::ForgetSuspects() {
  std::vector<Key> suspects;
  for (const auto& [key, entry] : rows_) {
    if (!entry.row.held) suspects.push_back(key);
  }
  for (const Key& key : suspects) Erase(key);
}

void Quarantine::Retried(const std::vector<Key>& keys) {
  for (const Key& key : keys) {
    rows_.erase(key);
    dirty_.erase(key);
  }
}

Quarantine::Changes Quarantine::Pending(const std::vector<Key>& retried) const {
  Changes changes;
  for (const Key& key : dirty_) {
    if (std::find(retried.begin(), retried.end(), key) != retried.end()) continue;
    changes.upserts.push_back(rows_.at(key).row);
    changes.upserts.back().told = true;
  }
  changes.deletes.assign(erased_.begin(), erased_.end());
  return changes;
}

std::vector<QuarantineRow> Quarantine::Untold() const {
  std::vector<QuarantineRow> untold;
  for (const Key& key : dirty_) {
    const QuarantineRow& row = rows_.at(key).row;
    if (!row.told) untold.push_back(row);
  }
  return untold;
}

void Quarantine::Saved() {
  for (const Key& key : dirty_) rows_.at(key).row.told = true;
  dirty_.clear();
  erased_.clear();
}

std::optional<Quarantine::TimePoint> Quarantine::LookAt() const {
  std::optional<TimePoint> first;
  for (const auto& [key, entry] : rows_) {
    if (entry.missed && (!first.has_value() || entry.until < *first)) first = entry.until;
  }
  return first;
}

std::map<std::string, uint64_t> Quarantine::Totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

void Quarantine::Count(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  ++totals_[kind];
}

}  // namespace fluxqueue::delivery
