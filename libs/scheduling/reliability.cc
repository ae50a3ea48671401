#include "libs/scheduling/reliability.h"

#include <algorithm>
#include <cstdlib>

#include "libs/base/int128.h"

namespace fluxqueue::scheduling {
namespace {

// Of ratios and prices: sums of a few of them stay within 64 bits.
constexpr int64_t kMost = int64_t{1} << 56;

int64_t Bounded(Int128 number) {
  return static_cast<int64_t>(std::min<Int128>(number, kMost));
}

}  // namespace

int64_t Reliability::PriceOf(const std::string& user, int64_t declared_ms) const {
  const Record* record = records_.Find(user);
  if (record == nullptr) return declared_ms;
  const Int128 part = static_cast<Int128>(record->ratio) + record->deviation;
  return std::max<int64_t>(1, Bounded(static_cast<Int128>(declared_ms) * part / kOne));
}

void Reliability::Learn(const std::string& user, int64_t declared_ms, int64_t run_ms) {
  const int64_t ratio = Bounded(static_cast<Int128>(run_ms) * kOne / declared_ms);
  Record& record = records_.Edit(user);
  by_learnt_.erase(record.learnt);
  if (record.runs == 0) record = {.ratio = ratio, .deviation = std::abs(ratio - kOne) / kDoubt};
  record.runs = std::min(kRuns, record.runs + 1);
  const int64_t error = ratio - record.ratio;
  record.ratio += error / record.runs;
  record.deviation += (std::abs(error) - record.deviation) / record.runs;
  record.learnt = by_learnt_.empty() ? 1 : by_learnt_.rbegin()->first + 1;
  by_learnt_.emplace(record.learnt, user);
  if (by_learnt_.size() <= kept_) return;
  records_.Erase(by_learnt_.begin()->second);
  by_learnt_.erase(by_learnt_.begin());
}

void Reliability::Rollback() {
  records_.Rollback(
      [this](const std::string&, const Record& record) { by_learnt_.erase(record.learnt); },
      [this](const std::string& user, const Record& record) {
        by_learnt_.emplace(record.learnt, user);
      });
}

void Reliability::Forget() {
  records_.EraseAll();
  by_learnt_.clear();
}

void Reliability::Set(const std::string& user, const Record& record) {
  records_.Restore(user, record);
  by_learnt_.emplace(record.learnt, user);
}

}  // namespace fluxqueue::scheduling
