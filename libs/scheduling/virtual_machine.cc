#include "libs/scheduling/virtual_machine.h"

#include <algorithm>
#include <bit>

#include "libs/base/check.h"
#include "libs/base/int128.h"

namespace fluxqueue::scheduling {
namespace {

// What has outlived its planned end may end at any time: it counts as if it did so soon.
constexpr int64_t kSoonMs = 1000;
// A real start so soon after the virtual one is on time: its true end is waited for.
constexpr int64_t kOnTimeMs = 1000;

// Saturates at kNeverMs.
int64_t Later(int64_t time_ms, int64_t by_ms) {
  return by_ms > kNeverMs - time_ms ? kNeverMs : time_ms + by_ms;
}

// The end of one that begins then; unlimited ones have none.
int64_t EndOf(int64_t start_ms, int64_t run_ms) {
  return run_ms == 0 ? kNeverMs : Later(start_ms, run_ms);
}

// Unlimited ones are the longest.
int64_t LengthOf(const VirtualJob& job) {
  return job.estimate_ms == 0 ? kNeverMs : job.length_ms();
}

int64_t PriceOf(const VirtualJob& job) {
  return job.estimate_ms == 0 || job.price_ms == 0 ? LengthOf(job) : job.price_ms;
}

uint32_t Narrow(int64_t number) {
  return static_cast<uint32_t>(std::clamp<int64_t>(number, 0, UINT32_MAX));
}

}  // namespace

int64_t SizeOf(const Resources& amounts, const Resources& capacity) {
  int64_t size = 0;
  for (size_t i = 0; i < kShared; ++i) {
    if (capacity[i] <= 0) continue;
    const Int128 share = static_cast<Int128>(amounts[i]) * kWholePool / capacity[i];
    size = std::max(size, static_cast<int64_t>(std::min<Int128>(share, kWholePool)));
  }
  return size;
}

int64_t Scale::Of(int64_t estimate_ms) const {
  if (estimate_ms == 0 || ran >= estimated) return estimate_ms;
  const Int128 scaled = (static_cast<Int128>(estimate_ms) * ran + estimated - 1) / estimated;
  return std::max<int64_t>(1, static_cast<int64_t>(scaled));
}

// ------------------------------------------------------------------------------------- the trees

VirtualMachine::Least VirtualMachine::Least::Of(const OrderKey& /*key*/, const VirtualJob* job) {
  Least least;
  least.size.fill(UINT32_MAX);
  least.estimate_s.fill(UINT32_MAX);
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(job->size)));
  const auto kind = static_cast<size_t>(std::clamp(bits - 19, 0, kClasses - 1));
  least.size[kind] = Narrow(job->size);
  least.estimate_s[kind] = Narrow(LengthOf(*job) / 1000);
  return least;
}

void VirtualMachine::Least::Join(const Least& other) {
  for (size_t i = 0; i < kClasses; ++i) {
    size[i] = std::min(size[i], other.size[i]);
    estimate_s[i] = std::min(estimate_s[i], other.estimate_s[i]);
  }
}

bool VirtualMachine::Gap::Takes(const VirtualJob& job) const {
  return job.size <= free && (LengthOf(job) <= longest_ms || job.size <= extra);
}

bool VirtualMachine::Gap::MayTake(const Least& least) const {
  for (size_t i = 0; i < Least::kClasses; ++i) {
    if (least.size[i] <= free &&
        (least.estimate_s[i] <= longest_ms / 1000 || least.size[i] <= extra)) {
      return true;
    }
  }
  return false;
}

VirtualMachine::Short VirtualMachine::Short::Of(const std::pair<int64_t, uint64_t>& key,
                                                const VirtualJob* job) {
  return {Narrow(job->size), key.first, job->since_ms};
}

void VirtualMachine::Short::Join(const Short& other) {
  least_size = std::min(least_size, other.least_size);
  least_estimate_ms = std::min(least_estimate_ms, other.least_estimate_ms);
  oldest_ms = std::min(oldest_ms, other.oldest_ms);
}

// ------------------------------------------------------------------------------------ the records

const VirtualJob* VirtualMachine::Find(uint64_t submission) const {
  return jobs_.Find(submission);
}

void VirtualMachine::Index(const VirtualJob& job) {
  const uint64_t submission = job.key.submission;
  if (job.virtual_start_ms == kUnset) {
    line_.Insert(job.key, &job);
    came_.insert({job.since_ms, submission});
  } else if (job.over) {
    over_.insert({job.virtual_end_ms, submission});
  } else {
    plans_.Insert({job.planned_end_ms, submission}, job.size);
    ends_.insert({job.virtual_end_ms, submission});
    used_ += job.size;
  }
  if (job.virtual_start_ms != kUnset) starts_.insert({job.virtual_start_ms, submission});
  if (!job.waits) return;
  shortest_.Insert({PriceOf(job), submission}, &job);
  in_line_.insert(job.key);
  if (job.virtual_start_ms != kUnset) {
    pinned_.insert({-job.key.rank, job.virtual_start_ms, submission});
  }
}

void VirtualMachine::Unindex(const VirtualJob& job) {
  const uint64_t submission = job.key.submission;
  if (job.virtual_start_ms == kUnset) {
    line_.Erase(job.key);
    came_.erase({job.since_ms, submission});
  } else if (job.over) {
    over_.erase({job.virtual_end_ms, submission});
  } else {
    plans_.Erase({job.planned_end_ms, submission});
    ends_.erase({job.virtual_end_ms, submission});
    used_ -= job.size;
  }
  if (job.virtual_start_ms != kUnset) starts_.erase({job.virtual_start_ms, submission});
  if (!job.waits) return;
  shortest_.Erase({PriceOf(job), submission});
  in_line_.erase(job.key);
  if (job.virtual_start_ms != kUnset) {
    pinned_.erase({-job.key.rank, job.virtual_start_ms, submission});
  }
}

template <typename F>
void VirtualMachine::Change(uint64_t submission, F change) {
  VirtualJob& job = jobs_.Edit(submission);
  Unindex(job);
  change(job);
  Index(job);
}

// Known only for what it did really, or holds virtually: then for nothing any more. But a machine
// that turns back may need it again.
void VirtualMachine::DropIfDone(uint64_t submission) {
  const VirtualJob* job = Find(submission);
  if (job == nullptr || !job->over || job->waits || job->run_ms == kUnset) return;
  if (state_.hindsight && job->virtual_end_ms >= state_.now_ms - kHindsightMs) return;
  Forget(submission);
}

void VirtualMachine::DropOld() {
  while (!over_.empty() && over_.begin()->first < state_.now_ms - kHindsightMs) {
    const uint64_t submission = over_.begin()->second;
    over_.erase(over_.begin());
    DropIfDone(submission);
  }
}

void VirtualMachine::Forget(uint64_t submission) {
  const VirtualJob* job = Find(submission);
  if (job == nullptr) return;
  Unindex(*job);
  if (!job->over) state_.due = true;
  jobs_.Erase(submission);
}

void VirtualMachine::Clear() {
  line_.clear();
  plans_.clear();
  ends_.clear();
  over_.clear();
  starts_.clear();
  came_.clear();
  pinned_.clear();
  in_line_.clear();
  shortest_.clear();
  used_ = 0;
  jobs_.EraseAll();
  state_ = VirtualState{};
}

// ---------------------------------------------------------------------------------- what happens

void VirtualMachine::SetScales(Scale predicted, Scale planned) {
  state_.predicted = predicted;
  state_.planned = planned;
}

void VirtualMachine::SetCapacity(int64_t capacity) {
  if (state_.capacity == capacity) return;
  state_.capacity = capacity;
  state_.due = true;
}

void VirtualMachine::Wait(const VirtualJob& job) {
  const uint64_t submission = job.key.submission;
  const VirtualJob* known_before = Find(submission);
  state_.due = true;
  if (known_before == nullptr) {
    Index(jobs_.Edit(submission) = job);
    return;
  }
  CHECK(!known_before->waits, "submission {} waits already", submission);
  Change(submission, [&](VirtualJob& known) {
    known.key = job.key;
    known.since_ms = job.since_ms;
    known.waits = true;
    known.started_ms = kUnset;
    known.run_ms = kUnset;
  });
}

void VirtualMachine::Start(const VirtualJob& job) {
  const uint64_t submission = job.key.submission;
  if (Find(submission) == nullptr) {
    VirtualJob& added = jobs_.Edit(submission);
    added = job;
    added.waits = false;
    added.virtual_start_ms = job.started_ms;
    added.planned_end_ms = EndOf(job.started_ms, job.length_ms());
    added.virtual_end_ms = std::max(state_.now_ms, added.planned_end_ms);
    Index(added);
    return;
  }
  Change(submission, [&](VirtualJob& known) {
    known.waits = false;
    known.started_ms = job.started_ms;
    const bool on_time = job.started_ms - known.virtual_start_ms < kOnTimeMs;
    if (known.runs_virtually() && on_time) {
      known.virtual_end_ms = EndOf(known.virtual_start_ms, known.length_ms());
    }
  });
}

void VirtualMachine::End(uint64_t submission) {
  if (Find(submission) == nullptr) return;
  if (state_.hindsight) return EndInHindsight(submission);
  Change(submission, [&](VirtualJob& known) {
    known.run_ms = std::max<int64_t>(1, state_.now_ms - known.started_ms);
    if (!known.runs_virtually()) return;
    known.virtual_end_ms = std::max(state_.now_ms, known.virtual_start_ms + known.run_ms);
  });
  DropIfDone(submission);
}

void VirtualMachine::Amend(
    uint64_t submission, OrderKey key, int64_t size, int64_t estimate_ms, int64_t price_ms) {
  const VirtualJob* job = Find(submission);
  if (job == nullptr) return;
  VirtualJob amended = *job;
  amended.key = key;
  amended.size = size;
  amended.estimate_ms = estimate_ms;
  amended.price_ms = price_ms;
  if (amended == *job) return;
  state_.due = true;
  Change(submission, [&](VirtualJob& known) { known = amended; });
}

// -------------------------------------------------------------------------------------- hindsight

void VirtualMachine::EndInHindsight(uint64_t submission) {
  const int64_t now_ms = state_.now_ms;
  const int64_t earliest_ms = now_ms - kHindsightMs;
  std::optional<int64_t> wrong_since;
  Change(submission, [&](VirtualJob& known) {
    known.run_ms = std::max<int64_t>(1, now_ms - known.started_ms);
    const int64_t assumed_ms = known.virtual_end_ms;
    if (known.virtual_start_ms == kUnset || (known.over && assumed_ms < earliest_ms)) return;
    const int64_t end_ms = std::max(known.virtual_start_ms + known.run_ms, earliest_ms);
    if (end_ms == assumed_ms) return;
    if (known.over || end_ms < now_ms) wrong_since = std::min(assumed_ms, end_ms);
    known.virtual_end_ms = end_ms;
    known.over = false;
  });
  if (wrong_since.has_value()) TurnBack(*wrong_since);
  DropIfDone(submission);
}

void VirtualMachine::TurnBack(int64_t to_ms) {
  const int64_t now_ms = state_.now_ms;
  Reopen(to_ms);
  // Who came later is not in line yet.
  const std::vector<std::pair<int64_t, uint64_t>> later(came_.upper_bound({to_ms, UINT64_MAX}),
                                                        came_.end());
  for (const auto& [since_ms, submission] : later) line_.Erase(Find(submission)->key);
  state_.now_ms = to_ms;
  EndUpTo(to_ms);
  Pass();
  for (const auto& [since_ms, submission] : later) {
    AdvanceTo(since_ms);
    const VirtualJob* job = Find(submission);
    line_.Insert(job->key, job);
    state_.due = true;
  }
  AdvanceTo(now_ms);
}

// What started from then on waits, and what ended runs.
void VirtualMachine::Reopen(int64_t to_ms) {
  const std::vector<std::pair<int64_t, uint64_t>> started(starts_.lower_bound({to_ms, 0}),
                                                          starts_.end());
  for (const auto& [start_ms, submission] : started) {
    Change(submission, [](VirtualJob& job) {
      job.virtual_start_ms = kUnset;
      job.planned_end_ms = kUnset;
      job.virtual_end_ms = kUnset;
      job.over = false;
    });
  }
  const std::vector<std::pair<int64_t, uint64_t>> ended(over_.lower_bound({to_ms, 0}), over_.end());
  for (const auto& [end_ms, submission] : ended) {
    Change(submission, [](VirtualJob& job) { job.over = false; });
  }
}

// -------------------------------------------------------------------------------------- the passes

void VirtualMachine::AdvanceTo(int64_t now_ms) {
  if (now_ms <= state_.now_ms) return;
  if (state_.due) {
    EndUpTo(state_.now_ms);
    Pass();
  }
  while (!ends_.empty() && ends_.begin()->first < now_ms) {
    state_.now_ms = std::max(state_.now_ms, ends_.begin()->first);
    EndUpTo(state_.now_ms);
    Pass();
  }
  state_.now_ms = now_ms;
}

void VirtualMachine::PassAt(int64_t now_ms) {
  AdvanceTo(now_ms);
  EndUpTo(state_.now_ms);
  if (state_.due) Pass();
  DropOld();
}

void VirtualMachine::EndUpTo(int64_t now_ms) {
  while (!ends_.empty() && ends_.begin()->first <= now_ms) {
    const uint64_t submission = ends_.begin()->second;
    Change(submission, [](VirtualJob& job) { job.over = true; });
    DropIfDone(submission);
    state_.due = true;
  }
}

void VirtualMachine::Pass() {
  state_.due = false;
  while (!line_.empty()) {
    const VirtualJob& first = *line_.begin()->second;
    if (SizeNow(first) > free()) {
      if (free() >= 0) Backfill(first);
      return;
    }
    StartVirtually(first);
  }
}

void VirtualMachine::Backfill(const VirtualJob& first) {
  Gap gap = GapBeside(first);
  OrderKey last = first.key;
  while (true) {
    gap.free = free();
    const auto next = line_.First(
        &last,
        [&gap](const Least& least) { return gap.MayTake(least); },
        [&gap](const OrderKey&, const VirtualJob* job) { return gap.Takes(*job); });
    if (!next.has_value()) return;
    last = next->first;
    if (LengthOf(*next->second) > gap.longest_ms) gap.extra -= next->second->size;
    StartVirtually(*next->second);
  }
}

VirtualMachine::Gap VirtualMachine::GapBeside(const VirtualJob& first) const {
  // By plan, until enough has ended.
  int64_t ended = free();
  const int64_t need = SizeNow(first);
  int64_t shadow_ms = kNeverMs;
  const auto reached = plans_.First(
      nullptr,
      [&](const Sum& sum) {
        if (ended + sum.size >= need) return true;
        ended += sum.size;  // all of this subtree, which stands before what is looked at next
        return false;
      },
      [&](const auto&, int64_t size) {
        ended += size;
        return ended >= need;
      });
  if (reached.has_value()) shadow_ms = reached->first.first;
  if (shadow_ms == kNeverMs) return {.free = free(), .longest_ms = 0, .extra = 0};
  shadow_ms = std::max(shadow_ms, state_.now_ms + kSoonMs);
  int64_t by_then = free();
  plans_.UpTo({shadow_ms, UINT64_MAX}, [&](const Sum& sum) { by_then += sum.size; });
  // The longest estimate that, multiplied, ends in time.
  const Scale& scale = state_.planned;
  const Int128 longest =
      scale.ran >= scale.estimated ? static_cast<Int128>(shadow_ms - state_.now_ms)
      : scale.ran == 0
          ? static_cast<Int128>(kNeverMs - 1)
          : static_cast<Int128>(shadow_ms - state_.now_ms) * scale.estimated / scale.ran;
  return {.free = free(),
          .longest_ms = static_cast<int64_t>(std::min<Int128>(longest, kNeverMs - 1)),
          .extra = by_then - need};
}

void VirtualMachine::StartVirtually(const VirtualJob& job) {
  Change(job.key.submission, [this](VirtualJob& known) {
    const int64_t now = state_.now_ms;
    known.virtual_start_ms = now;
    known.planned_end_ms = EndOf(now, state_.planned.Of(known.length_ms()));
    if (known.run_ms != kUnset) {
      known.virtual_end_ms = now + known.run_ms;
    } else if (known.started_ms != kUnset || state_.hindsight) {
      known.virtual_end_ms = EndOf(now, known.length_ms());
    } else {
      known.virtual_end_ms = EndOf(now, state_.predicted.Of(known.estimate_ms));
    }
  });
}

// ---- the batch
void VirtualMachine::Rollback(const VirtualState& state) {
  jobs_.Rollback([this](uint64_t, const VirtualJob& job) { Unindex(job); },
                 [this](uint64_t, const VirtualJob& job) { Index(job); });
  state_ = state;
}

void VirtualMachine::Set(const VirtualJob& job) {
  Index(jobs_.Restore(job.key.submission, job));
}

std::map<uint64_t, VirtualJob> VirtualMachine::All() const {
  return {jobs_.map().begin(), jobs_.map().end()};
}

}  // namespace fluxqueue::scheduling
