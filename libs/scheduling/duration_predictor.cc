#include "libs/scheduling/duration_predictor.h"

#include <algorithm>

namespace fluxqueue::scheduling {

void DurationPredictor::Remember(const Key& key) {
  const auto it = histories_.find(key);
  before_.try_emplace(key,
                      it == histories_.end() ? std::nullopt : std::optional<History>(it->second));
}

void DurationPredictor::Put(const Key& key, std::optional<History> history) {
  const auto it = histories_.find(key);
  if (it != histories_.end()) {
    by_learnt_.erase(it->second.learnt);
    histories_.erase(it);
  }
  if (!history.has_value()) return;
  by_learnt_[history->learnt] = key;
  histories_.emplace(key, *std::move(history));
}

void DurationPredictor::Learn(const std::string& user, uint64_t shape, int64_t run_ms) {
  const Key key{user, shape};
  Remember(key);
  const auto it = histories_.find(key);
  const uint64_t learnt = by_learnt_.empty() ? 1 : by_learnt_.rbegin()->first + 1;
  Put(key,
      History{.user = user,
              .shape = shape,
              .last_ms = std::max<int64_t>(run_ms, 1),
              .before_ms = it == histories_.end() ? 0 : it->second.last_ms,
              .learnt = learnt});
  if (histories_.size() <= kept_) return;
  const Key oldest = by_learnt_.begin()->second;
  Remember(oldest);
  Put(oldest, std::nullopt);
}

std::optional<int64_t> DurationPredictor::Predict(const std::string& user, uint64_t shape) const {
  const auto it = histories_.find({user, shape});
  if (it == histories_.end() || it->second.before_ms == 0) return std::nullopt;
  // Rounded up; neither sum nor half can leave 64 bits.
  const int64_t a = it->second.last_ms;
  const int64_t b = it->second.before_ms;
  return a / 2 + b / 2 + (a % 2 + b % 2 + 1) / 2;
}

std::vector<DurationPredictor::Change> DurationPredictor::Changes() const {
  std::vector<Change> changes;
  for (const auto& [key, before] : before_) {
    const auto it = histories_.find(key);
    if (it != histories_.end()) {
      changes.push_back({it->second, false});
    } else if (before.has_value()) {
      changes.push_back({*before, true});
    }
  }
  return changes;
}

void DurationPredictor::Rollback() {
  // First all out, then all in: numbers of learning were given twice.
  for (const auto& [key, before] : before_) Put(key, std::nullopt);
  for (auto& [key, before] : before_) Put(key, std::move(before));
  before_.clear();
}

void DurationPredictor::Set(const History& history) {
  Put({history.user, history.shape}, history);
}

void DurationPredictor::Clear() {
  histories_.clear();
  by_learnt_.clear();
  before_.clear();
}

std::vector<History> DurationPredictor::All() const {
  std::vector<History> all;
  for (const auto& [key, history] : histories_) all.push_back(history);
  return all;
}

}  // namespace fluxqueue::scheduling
