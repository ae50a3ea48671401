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

void DurationPredictor::Learn(const std::string& user,
                              uint64_t shape,
                              int64_t run_ms,
                              int64_t declared_ms) {
  const Key key{user, shape};
  History& history = histories_.Edit(key);
  history.user = user;
  history.shape = shape;
  const int64_t ran_ms = std::max<int64_t>(run_ms, 1);
  history.declared_error = Decayed(history.declared_error) + ErrorOf(declared_ms, ran_ms);
  if (history.before_ms != 0) {
    const int64_t predicted_ms = MeanOf(history.last_ms, history.before_ms);
    history.predicted_error = Decayed(history.predicted_error) + ErrorOf(predicted_ms, ran_ms);
  }
  history.before_ms = history.last_ms;
  history.last_ms = ran_ms;
  const uint64_t next = by_learnt_.empty() ? 1 : by_learnt_.rbegin()->first + 1;
  by_learnt_.erase(std::exchange(history.learnt, next));
  by_learnt_.emplace(history.learnt, key);
  if (histories_.size() <= kept_) return;
  const auto oldest = by_learnt_.begin();
  histories_.Erase(oldest->second);
  by_learnt_.erase(oldest);
}

std::optional<Prediction> DurationPredictor::Predict(const std::string& user,
                                                     uint64_t shape) const {
  const History* history = histories_.Find({user, shape});
  if (history == nullptr || history->before_ms == 0) return std::nullopt;
  return Prediction{.duration_ms = MeanOf(history->last_ms, history->before_ms),
                    .trusted = history->predicted_error < history->declared_error};
}

std::vector<DurationPredictor::Change> DurationPredictor::Changes() const {
  std::vector<Change> changes;
  for (const auto& change : histories_.Changes()) {
    const bool forgotten = change.now == nullptr;
    changes.push_back({forgotten ? *change.before : *change.now, forgotten});
  }
  return changes;
}

void DurationPredictor::Rollback() {
  histories_.Rollback(
      [this](const Key& /*key*/, const History& history) { by_learnt_.erase(history.learnt); },
      [this](const Key& key, const History& history) { by_learnt_.emplace(history.learnt, key); });
}

void DurationPredictor::Set(const History& history) {
  const Key key{history.user, history.shape};
  histories_.Restore(key, history);
  by_learnt_.insert_or_assign(history.learnt, key);
}

void DurationPredictor::Clear() {
  histories_.Clear();
  by_learnt_.clear();
}

std::vector<History> DurationPredictor::All() const {
  std::vector<History> all;
  for (const auto& [key, history] : histories_.map()) all.push_back(history);
  return all;
}

}  // namespace fluxqueue::scheduling
