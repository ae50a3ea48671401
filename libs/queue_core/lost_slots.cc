// What becomes of a job that loses slots while it runs (replacement.h).
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/queue_core/attempt.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/elastic.h"
#include "libs/queue_core/reasons.h"
#include "libs/queue_core/resize.h"

namespace fluxqueue::queue_core {

using events::v1::Outcome;

namespace {

// REQUIRES: the message names the slot.
std::string WhyLost(const events::v1::SlotsLost& lost, const LostSlot& slot) {
  const auto said = std::find_if(lost.slots().begin(), lost.slots().end(), [&](const auto& one) {
    return one.slot() == slot.slot;
  });
  return fmt::format("node {} {}", said->node(), said->reason());
}

}  // namespace

void QueueCore::Impl::OnSlotsLost(const events::v1::SlotsLost& lost) {
  Entry* entry = Applies(lost.job_id(), lost.attempt(), model::Fact::kSlotsLost);
  if (entry == nullptr) return;
  const std::vector<LostSlot> slots = replacement_.NewlyLost(entry->job, lost);
  if (slots.empty()) {
    ++out_->stale;
    return;
  }
  const std::string why = WhyLost(lost, slots.front());
  if (HasHadTooManySlots(entry->job)) {
    StopForFailure(entry, /*may_be_bound=*/true, reason::kSlotLost, why);
    return;
  }
  Job& job = book_.Edit(entry);
  std::vector<uint32_t> numbers;
  numbers.reserve(slots.size());
  for (const LostSlot& one : slots) numbers.push_back(one.slot);
  ReleaseSlots(numbers, job);
  job.reason = reason::kSlotLost;
  if (job.resized) {
    AddVacated(numbers, &job);
    job.message =
        fmt::format("{}: goes on with {} of {} slots, and grows", why, LiveSlots(job), job.slots);
    return Say(entry);
  }
  std::vector<LostSlot> all = LostSlots(job);
  all.insert(all.end(), slots.begin(), slots.end());
  std::sort(
      all.begin(), all.end(), [](const LostSlot& a, const LostSlot& b) { return a.slot < b.slot; });
  job.lost = std::make_shared<const std::vector<LostSlot>>(std::move(all));
  LookForOtherSlots();
  job.message = fmt::format("{}: {} of its {} slots {} looked for elsewhere, the others go on",
                            why,
                            MissingSlots(job),
                            job.slots,
                            MissingSlots(job) == 1 ? "is" : "are");
  Say(entry);
}

void QueueCore::Impl::LookForOtherSlots() {
  state_.replace_ms = std::max(state_.now_ms, state_.replace_paused_ms);
  state_.replace_left = 0;
}

void QueueCore::Impl::NoteReplacing(const events::v1::CycleRequested& cycle) {
  if (state_.suspects != nullptr || replacement_.IsPaused()) return;
  const uint32_t all = replacement_.Lacking();
  const auto& candidates = cycle.candidates();
  const auto first_other =
      std::find_if(candidates.begin(), candidates.end(), [](const events::v1::Candidate& one) {
        return !one.replace();
      });
  const auto named = static_cast<uint32_t>(first_other - candidates.begin());
  if (replacement_.IsDue()) {
    const uint32_t left = state_.replace_left == 0 ? all : std::min(state_.replace_left, all);
    state_.replace_left = left - std::min(left, named);
  }
  const bool all_named = named == all;
  if (all_named) state_.replace_after = 0;
  if (!all_named && named > 0) {
    state_.replace_after = book_.Find(std::prev(first_other)->job_id())->job.submission;
  }
  state_.replace_paused_ms = 0;
  state_.replace_ms = replacement_.TryNextAt();
}

void QueueCore::Impl::Replace(const Outcome& outcome) {
  // Its size has changed since it was asked.
  if (elastic_.Grows(outcome) != nullptr) return Grow(outcome);
  if (replacement_.Replaced(outcome) == nullptr) {
    if (outcome.kind() == Outcome::KIND_ALLOCATED) ++out_->stale;
    if (outcome.kind() == Outcome::KIND_BUSY) SayNoRoom(outcome);
    return;
  }
  Entry* entry = book_.Find(outcome.job_id());
  Job& job = book_.Edit(entry);
  const uint32_t more = outcome.slots() - std::max(job.held_slots, job.slots);
  CountMoreSlots(job, more, state_.now_ms);
  job.held_slots = outcome.slots();
  job.reason = reason::kReplaced;
  job.message = fmt::format(
      "goes on with {} other {} in place of what it lost", more, more == 1 ? "slot" : "slots");
  if (const uint32_t missing = MissingSlots(job); missing > 0) {
    job.message += fmt::format("; {} more {} looked for", missing, missing == 1 ? "is" : "are");
  }
  job.placement_hash = outcome.placement_hash();
  Say(entry);
}

void QueueCore::Impl::SayNoRoom(const Outcome& outcome) {
  Entry* entry = book_.Find(outcome.job_id());
  const bool asks =
      entry != nullptr && entry->job.attempt == outcome.attempt() && MissingSlots(entry->job) > 0;
  if (!asks) return;
  const Job& known = entry->job;
  std::string message =
      fmt::format("no other node has room for {} of its {} slots, which it has lost: {}",
                  MissingSlots(known),
                  known.slots,
                  outcome.reason());
  const bool due = state_.now_ms - known.updated_ms >= kSentenceIntervalMs;
  if (known.reason == reason::kSlotMissing && (message == known.message || !due)) return;
  Job& job = book_.Edit(entry);
  job.reason = reason::kSlotMissing;
  job.message = std::move(message);
  Say(entry);
}

}  // namespace fluxqueue::queue_core
