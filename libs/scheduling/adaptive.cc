#include "libs/scheduling/adaptive.h"

#include <algorithm>
#include <limits>

#include "libs/base/int128.h"

namespace fluxqueue::scheduling {
namespace {

// kWholePool · 1 ms is 2^30; of that 2^-10 of the whole pool's ms are kept, so that sums of decades
// stay within 64 bits.
constexpr int kWorkShift = 20;
constexpr int64_t kLeastRunMs = 1000;

int64_t WorkOf(int64_t size, int64_t ms) {
  const Int128 work = (static_cast<Int128>(size) * ms) >> kWorkShift;
  return static_cast<int64_t>(std::min<Int128>(work, int64_t{1} << 55));
}

void AddTo(int64_t& sum, int64_t work) {
  if (__builtin_add_overflow(sum, work, &sum)) sum = std::numeric_limits<int64_t>::max();
}

bool AtMost(int64_t part, int64_t percent, int64_t whole) {
  return static_cast<Int128>(part) * 100 <= static_cast<Int128>(whole) * percent;
}

}  // namespace

// ---------------------------------------------------------------------------------- the histogram

int64_t WorkHistogram::Edge(size_t bucket) {
  // 2^(i/4) s in ns.
  constexpr int64_t kRoots[] = {1'000'000'000, 1'189'207'115, 1'414'213'562, 1'681'792'830};
  return static_cast<int64_t>((static_cast<Int128>(kRoots[bucket % 4]) << (bucket / 4)) /
                              1'000'000);
}

size_t WorkHistogram::BucketOf(int64_t run_ms) {
  size_t low = 0;  // the last that begins at or before
  size_t high = kBuckets;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (Edge(middle) <= run_ms ? low : high) = middle;
  }
  return low;
}

int64_t WorkHistogram::QuantileMs(int64_t per_10000) const {
  Int128 all = 0;
  for (const int64_t work : work_) all += work;
  Int128 sum = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    sum += work_[i];
    if (sum * 10000 > all * per_10000) return Edge(i);
  }
  return Edge(0);
}

void WorkHistogram::Halve() {
  for (int64_t& work : work_) work /= 2;
}

// ------------------------------------------------------------------------------------ the accuracy

Scale Accuracy::alpha() const {
  if (estimated == 0 || ran >= estimated) return {};
  return {.ran = ran, .estimated = estimated};
}

void Accuracy::Learn(int64_t size, int64_t estimate_ms, int64_t run_ms, bool may_judge) {
  const int64_t scaled_ms = alpha().Of(estimate_ms);
  AddTo(estimated, WorkOf(size, estimate_ms));
  AddTo(ran, WorkOf(size, run_ms));
  AddTo(error, WorkOf(size, std::abs(estimate_ms - run_ms)));
  AddTo(scaled_error, WorkOf(size, std::abs(scaled_ms - run_ms)));
  ++ends;
  if (!may_judge || (ends > kFirstEnds && ends % kEndsPerJudgement != 0)) return;
  raw = AtMost(error, raw ? kBadPercent : kGoodPercent, estimated);
  scaled = !raw && AtMost(scaled_error,
                          scaled ? kBadPercent : kGoodPercent,
                          std::min(ran, estimated));  // alpha · estimated
}

void Accuracy::Halve() {
  for (int64_t* sum : {&estimated, &ran, &error, &scaled_error}) *sum /= 2;
}

// -------------------------------------------------------------------------------- what happens

void Adaptive::Remember() {
  if (!before_.has_value()) before_ = Before{state_, machine_.state()};
}

void Adaptive::Turn(bool on) {
  Remember();
  machine_.Clear();
  reliability_.Forget();
  state_ = State{};
  state_.on = on;
}

void Adaptive::SetHindsight(bool hindsight) {
  if (state_.hindsight == hindsight) return;
  Remember();
  state_.hindsight = hindsight;
  machine_.SetHindsight(hindsight);
}

void Adaptive::Wait(
    OrderKey key, int64_t size, int64_t estimate_ms, int64_t now_ms, const std::string& user) {
  const VirtualJob* known = machine_.Find(key.submission);
  const bool waits = known != nullptr && known->waits;
  const bool same_estimate = waits && known->estimate_ms == estimate_ms;
  if (same_estimate && known->key == key && known->size == size) return;
  Remember();
  machine_.AdvanceTo(now_ms);
  int64_t price_ms = same_estimate ? known->price_ms : 0;
  if (state_.hindsight && !same_estimate && estimate_ms > 0) {
    price_ms = reliability_.PriceOf(user, estimate_ms);
  }
  if (!waits) {
    machine_.Wait({.key = key,
                   .size = size,
                   .estimate_ms = estimate_ms,
                   .since_ms = now_ms,
                   .waits = true,
                   .price_ms = price_ms});
  }
  machine_.Amend(key.submission, key, size, estimate_ms, price_ms);
}

void Adaptive::Start(
    OrderKey key, int64_t size, int64_t estimate_ms, int64_t started_ms, int64_t now_ms) {
  const VirtualJob* known = machine_.Find(key.submission);
  if (known != nullptr && known->started_ms != kUnset) return;
  Remember();
  machine_.AdvanceTo(now_ms);
  machine_.Start({.key = key,
                  .size = size,
                  .estimate_ms = estimate_ms,
                  .since_ms = now_ms,
                  .started_ms = started_ms});
}

void Adaptive::End(uint64_t submission, int64_t now_ms, const std::string& user, bool succeeded) {
  const VirtualJob* known = machine_.Find(submission);
  if (known == nullptr || known->run_ms != kUnset) return;
  Remember();
  machine_.AdvanceTo(now_ms);
  known = machine_.Find(submission);
  if (known->started_ms == kUnset) {
    machine_.Forget(submission);
    return;
  }
  const VirtualJob job = *known;
  machine_.End(submission);
  if (job.estimate_ms == 0) return;  // unlimited: nothing was estimated
  if (state_.hindsight && !succeeded) return;
  Learn(job, std::max<int64_t>(1, now_ms - job.started_ms), user);
}

void Adaptive::Learn(const VirtualJob& job, int64_t run_ms, const std::string& user) {
  Accuracy& accuracy = state_.accuracy;
  accuracy.Learn(job.size, job.length_ms(), run_ms, /*may_judge=*/!state_.shut);
  const int64_t expected_ms =
      job.price_ms > 0 ? job.price_ms : accuracy.alpha().Of(job.estimate_ms);
  state_.histogram.Add(expected_ms, WorkOf(job.size, run_ms));
  if (state_.hindsight) {
    reliability_.Learn(user, job.estimate_ms, run_ms);
    if (accuracy.ends % kEndsPerHalving == 0) {
      accuracy.Halve();
      state_.histogram.Halve();
    }
  }
  machine_.SetScales(accuracy.alpha(), accuracy.scaled ? accuracy.alpha() : Scale{});
}

void Adaptive::Leave(uint64_t submission, int64_t now_ms) {
  const VirtualJob* known = machine_.Find(submission);
  // What has ended is a ghost, and nobody's any more.
  if (known == nullptr || known->run_ms != kUnset) return;
  Remember();
  machine_.AdvanceTo(now_ms);
  machine_.Forget(submission);
}

void Adaptive::Resize(uint64_t submission, int64_t size) {
  const VirtualJob* known = machine_.Find(submission);
  if (known == nullptr || known->size == size) return;
  Remember();
  machine_.Amend(submission, known->key, size, known->estimate_ms, known->price_ms);
}

void Adaptive::SetCapacity(int64_t capacity, int64_t now_ms) {
  if (machine_.state().capacity == capacity) return;
  Remember();
  machine_.AdvanceTo(now_ms);
  machine_.SetCapacity(capacity);
}

// --------------------------------------------------------------------------------- who goes first

bool Adaptive::Passes(int64_t estimate_ms,
                      int64_t since_ms,
                      int64_t now_ms,
                      int64_t quantile_ms) const {
  if (estimate_ms == kNeverMs) return false;
  const bool hindsight = state_.hindsight;
  const Int128 e =
      std::max(kLeastRunMs, hindsight ? estimate_ms : state_.accuracy.alpha().Of(estimate_ms));
  const int64_t share = hindsight ? kHindsightPassSharePer1000 : kPassSharePer1000;
  return e * e * 1000 <= static_cast<Int128>(share) * quantile_ms * (now_ms - since_ms + e);
}

bool Adaptive::ValveShut(int64_t now_ms) const {
  if (machine_.in_line().empty()) return false;
  const bool by_start = pins() && !machine_.pinned().empty();
  const VirtualJob* first = machine_.Find(by_start ? std::get<2>(*machine_.pinned().begin())
                                                   : machine_.in_line().begin()->submission);
  if (first->virtual_start_ms == kUnset) return false;
  const int64_t virtually = std::max<int64_t>(0, first->virtual_start_ms - first->since_ms);
  return now_ms - first->since_ms > kValveTimes * virtually + kValveMs;
}

void Adaptive::AddPassers(int64_t now_ms, int64_t free, size_t most, Choice* choice) const {
  const int64_t quantile_ms = state_.histogram.QuantileMs(kPassWorkPer10000);
  std::optional<std::pair<int64_t, uint64_t>> last;
  while (choice->passers.size() < most) {
    const auto next = machine_.shortest().First(
        last.has_value() ? &*last : nullptr,
        [&](const VirtualMachine::Short& all) {
          return all.least_size <= free &&
                 Passes(all.least_estimate_ms, all.oldest_ms, now_ms, quantile_ms);
        },
        [&](const auto& key, const VirtualJob* job) {
          return job->size <= free && Passes(key.first, job->since_ms, now_ms, quantile_ms);
        });
    if (!next.has_value()) return;
    last = next->first;
    free -= next->second->size;
    choice->passers.push_back(next->second->key);
  }
}

Adaptive::Choice Adaptive::Choose(int64_t now_ms, int64_t free, size_t most) {
  Remember();
  machine_.PassAt(now_ms);
  Choice choice;
  state_.shut = ValveShut(now_ms);
  if (!state_.shut) AddPassers(now_ms, free, most, &choice);
  if (!pins()) return choice;
  for (const auto& [rank, start_ms, submission] : machine_.pinned()) {
    if (choice.pinned.size() == most) break;
    choice.pinned.push_back(machine_.Find(submission)->key);
  }
  return choice;
}

int64_t Adaptive::PlanOf(uint64_t submission, int64_t estimate_ms) const {
  const VirtualJob* known = machine_.Find(submission);
  const int64_t price_ms = known == nullptr ? 0 : known->price_ms;
  return machine_.state().planned.Of(estimate_ms == 0 ? 0 : std::max(estimate_ms, price_ms));
}

// --------------------------------------------------------------------------------------- the batch

void Adaptive::Commit() {
  before_.reset();
  machine_.Commit();
  reliability_.Commit();
}

void Adaptive::Rollback() {
  if (!before_.has_value()) return;
  machine_.Rollback(before_->machine);
  reliability_.Rollback();
  state_ = before_->state;
  before_.reset();
}

void Adaptive::Set(const State& state, const VirtualState& machine) {
  state_ = state;
  machine_.Set(machine);
}

}  // namespace fluxqueue::scheduling
