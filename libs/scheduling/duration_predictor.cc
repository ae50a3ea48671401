#include "libs/scheduling/duration_predictor.h"

#include <algorithm>

#include "libs/base/int128.h"

namespace fluxqueue::scheduling {
namespace {

constexpr int64_t kWhole = 1000;

// Of a time that was said, in thousandths. REQUIRES: `ran` is at least 1.
int64_t ErrorOf(int64_t said, int64_t ran) {
  const Int128 least = std::clamp<int64_t>(said, 0, ran);
  return kWhole - static_cast<int64_t>(least * kWhole / std::max(said, ran));
}

int64_t Decayed(int64_t sum) {
  return sum - sum / 4;
}

// Rounded up; neither sum nor half can leave 64 bits.
int64_t MeanOf(int64_t a, int64_t b) {
  return a / 2 + b / 2 + (a % 2 + b % 2 + 1) / 2;
}

}  // namespace

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

void DurationPredictor::Learn(const std::string& user,
                              uint64_t shape,
                              int64_t run_ms,
                              int64_t declared_ms) {
  const Key key{user, shape};
  Remember(key);
  const auto it = histories_.find(key);
  History history = it == histories_.end() ? History{.user = user, .shape = shape} : it->second;
  const int64_t ran_ms = std::max<int64_t>(run_ms, 1);
  history.declared_error = Decayed(history.declared_error) + ErrorOf(declared_ms, ran_ms);
  if (history.before_ms != 0) {
    const int64_t predicted_ms = MeanOf(history.last_ms, history.before_ms);
    history.predicted_error = Decayed(history.predicted_error) + ErrorOf(predicted_ms, ran_ms);
  }
  history.before_ms = history.last_ms;
  history.last_ms = ran_ms;
  history.learnt = by_learnt_.empty() ? 1 : by_learnt_.rbegin()->first + 1;
  Put(key, std::move(history));
  if (histories_.size() <= kept_) return;
  const Key oldest = by_learnt_.begin()->second;
  Remember(oldest);
  Put(oldest, std::nullopt);
}

std::optional<Prediction> DurationPredictor::Predict(const std::string& user,
                                                     uint64_t shape) const {
  const auto it = histories_.find({user, shape});
  if (it == histories_.end() || it->second.before_ms == 0) return std::nullopt;
  const History& history = it->second;
  return Prediction{.duration_ms = MeanOf(history.last_ms, history.before_ms),
                    .trusted = history.predicted_error < history.declared_error};
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
