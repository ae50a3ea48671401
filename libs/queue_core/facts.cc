// What binder, cleanup and the matcher say of a job that holds something: bound, started, stopped,
// ended, its nodes lost.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/model/rules.h"
#include "libs/model/workload.h"
#include "libs/queue_core/attempt.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"
#include "libs/queue_core/resize.h"
#include "libs/queue_core/transitions.h"

namespace fluxqueue::queue_core {

using events::v1::JobFact;
using model::Fact;
using model::JobState;
using model::Verdict;

namespace {

std::string Sentence(const std::string& reason, const std::string& message) {
  if (reason.empty()) return message;
  return message.empty() ? reason : fmt::format("{}: {}", reason, message);
}

}  // namespace

Entry* QueueCore::Impl::Applies(std::string_view job_id, uint32_t attempt, Fact fact) {
  Entry* entry = book_.Find(job_id);
  if (entry != nullptr && attempt == entry->job.attempt &&
      model::Judge(entry->job.state, fact).verdict == Verdict::kApply) {
    return entry;
  }
  ++out_->stale;
  return nullptr;
}

Entry* QueueCore::Impl::AppliesToBound(std::string_view job_id, uint32_t attempt, Fact fact) {
  Entry* entry = Applies(job_id, attempt, fact);
  if (entry == nullptr || entry->job.state != JobState::kStopping) return entry;
  LearnBound(entry);
  return nullptr;
}

void QueueCore::Impl::OnBound(const events::v1::JobBound& bound) {
  Entry* entry = AppliesToBound(bound.job_id(), bound.attempt(), Fact::kBound);
  if (entry == nullptr) return;
  Job& job = book_.Edit(entry);
  if (job.state == JobState::kAllocated) Time(Timing::Kind::kBind, job, job.updated_ms);
  job.state = JobState::kBound;
  Say(entry);
}

void QueueCore::Impl::OnBindFailed(const events::v1::BindFailed& failed) {
  Entry* entry = Applies(failed.job_id(), failed.attempt(), Fact::kBindFailed);
  if (entry == nullptr) return;
  StopForFailure(entry,
                 entry->job.state != JobState::kAllocated,
                 reason::kBindFailed,
                 Sentence(failed.reason(), failed.message()));
}

void QueueCore::Impl::OnNodeLost(const events::v1::JobNodeLost& lost) {
  Entry* entry = AppliesToBound(lost.job_id(), lost.attempt(), Fact::kNodeLost);
  if (entry == nullptr) return;
  StopForFailure(entry,
                 /*may_be_bound=*/true,
                 reason::kNodeLost,
                 Sentence(fmt::format("node {}", lost.node()), lost.reason()));
}

void QueueCore::Impl::OnNodeGone(const events::v1::AllocationKey& key, const std::string& node) {
  Entry* entry = Applies(key.job_id(), key.attempt(), Fact::kNodeGone);
  if (entry == nullptr) return;
  std::string message = fmt::format("node {} is gone", node);
  if (IsClaim(entry->job)) {
    End(entry, JobState::kFailed, reason::kNodeLost, std::move(message));
    return;
  }
  StopForFailure(
      entry, entry->job.state != JobState::kAllocated, reason::kNodeLost, std::move(message));
}

void QueueCore::Impl::Stop(Entry* entry,
                           AfterStop after,
                           std::string reason,
                           std::string message,
                           std::optional<int64_t> grace_ms) {
  Job& job = book_.Edit(entry);
  // What the slots had that it was giving back counts no more.
  const int64_t known_ms = job.state == JobState::kStopping ? job.grace_ms : 0;
  job.grace_ms = grace_ms.value_or(known_ms);
  job.state = JobState::kStopping;
  job.after_stop = after;
  job.reason = std::move(reason);
  job.message = std::move(message);
  Say(entry);
}

void QueueCore::Impl::StopForFailure(Entry* entry,
                                     bool may_be_bound,
                                     const char* reason,
                                     std::string message) {
  FailureStop stop = AfterFailure(config(), entry->job, may_be_bound, std::move(message));
  book_.Edit(entry).requeue_is_failure = stop.after == JobFact::AFTER_STOP_REQUEUE;
  Stop(entry, stop.after, reason, std::move(stop.message));
}

void QueueCore::Impl::LearnBound(Entry* entry) {
  const Job& job = entry->job;
  if (job.workload->recreatable() || job.after_stop != JobFact::AFTER_STOP_REQUEUE) {
    ++out_->stale;
    return;
  }
  Stop(entry,
       JobFact::AFTER_STOP_FAIL,
       job.reason,
       fmt::format("{}; its pod had been bound, and no controller makes the {} again",
                   job.message,
                   job.workload->kind()));
}

void QueueCore::Impl::OnStopped(const events::v1::JobStopped& stopped) {
  Entry* entry = Applies(stopped.job_id(), stopped.attempt(), Fact::kStopped);
  if (entry == nullptr) return;
  const std::optional<Ending> ending = EndingAfterStop(entry->job);
  if (!ending.has_value()) return Requeue(entry);
  End(entry, ending->state, ending->reason, ending->message);
}

void QueueCore::Impl::Requeue(Entry* entry) {
  Job& job = book_.Edit(entry);
  Release(job, /*job_ended=*/false);
  attempts_.push_back(EndAttempt(job, kRequeued, state_.now_ms));
  job.attempt_since_ms = state_.now_ms;
  job.allocated_ms = 0;
  job.slot_ms = 0;
  if (job.reason == reason::kPreempted) adaptive_.GiveUpPlace(job, state_.now_ms);
  ++job.attempt;
  job.first_ms = 0;
  job.placement_hash = 0;
  job.start_ms = 0;
  job.ends_after_ms = 0;
  job.overran = false;
  job.released_slots.clear();
  job.vacated_slots.clear();
  job.lost.reset();
  job.held_slots = 0;
  job.grown = false;
  if (std::exchange(job.resized, false)) job.min_slots = 0;
  job.after_stop = JobFact::AFTER_STOP_UNSPECIFIED;
  job.grace_ms = 0;
  if (job.requeue_is_failure) {
    ++job.failures;
    Retry retry = RetryAfterFailure(config(), job, state_.now_ms);
    job.not_before_ms = retry.not_before_ms;
    SetWaiting(job, reason::kRetry, std::move(retry.message));
  } else {
    job.not_before_ms = 0;
    SetWaiting(job, reason::kQueued, fmt::format("in line again; {}", job.message));
  }
  job.requeue_is_failure = false;
  book_.Place(entry);
  Say(entry);
}

void QueueCore::Impl::OnStarted(const events::v1::JobStarted& started) {
  Entry* entry = AppliesToBound(started.job_id(), started.attempt(), Fact::kStarted);
  if (entry == nullptr) return;
  Job& job = book_.Edit(entry);
  // Of who runs before it is known to be bound, nothing is left to start.
  if (job.state == JobState::kAllocated) Time(Timing::Kind::kBind, job, job.updated_ms);
  if (job.state == JobState::kBound) Time(Timing::Kind::kStart, job, job.updated_ms);
  job.state = JobState::kRunning;
  job.start_ms = started.started_ms();
  Say(entry);
}

void QueueCore::Impl::OnPodEnded(const events::v1::PodEnded& ended) {
  Entry* entry = Applies(ended.job_id(), ended.attempt(), Fact::kPodEnded);
  if (entry == nullptr) return;
  const bool of_gang = model::IsGroup(entry->job.workload->kind());
  if (of_gang && !view_.HasRules(model::kGangsGiveBack)) return;
  // The slot of a pod that failed or went is wanted by its replacement; and JobEnded releases all.
  const bool is_free = ended.result() == events::v1::PodEnded::RESULT_SUCCEEDED || of_gang;
  if (!is_free || ended.part() != 0) return;
  // Of a slot that was vacated the success of its last pod may be heard of later.
  const auto among = [&ended](const std::vector<uint32_t>& rising) {
    return std::binary_search(rising.begin(), rising.end(), ended.slot());
  };
  const bool has = ended.slot() < std::max(entry->job.held_slots, entry->job.slots) ||
                   !view_.HasRules(model::kChecksSlots);
  if (!has || (among(entry->job.released_slots) && !among(entry->job.vacated_slots))) {
    ++out_->stale;
    return;
  }
  if (IsElastic(entry->job)) ++book_.Edit(entry).succeeded;
  if (!GivesSlotsBackEarly(entry->job)) return;
  CountSlotBack(book_.Edit(entry), state_.now_ms);
  std::vector<uint32_t>& slots = book_.Edit(entry).released_slots;
  slots.insert(std::lower_bound(slots.begin(), slots.end(), ended.slot()), ended.slot());
  Release(entry->job, /*job_ended=*/false)->add_slots(ended.slot());
}

void QueueCore::Impl::ReleaseSlots(const std::vector<uint32_t>& slots, Job& job) {
  events::v1::ReleaseRequested* release = Release(job, /*job_ended=*/false);
  for (const uint32_t slot : slots) {
    CountSlotBack(job, state_.now_ms);
    job.released_slots.insert(
        std::lower_bound(job.released_slots.begin(), job.released_slots.end(), slot), slot);
    release->add_slots(slot);
  }
}

void QueueCore::Impl::OnVacated(const events::v1::SlotsVacated& vacated) {
  Entry* entry = Applies(vacated.job_id(), vacated.attempt(), Fact::kVacated);
  if (entry == nullptr) return;
  const std::vector<uint32_t> slots = NewlyVacated(entry->job, vacated);
  if (slots.empty()) {
    ++out_->stale;
    return;
  }
  Job& job = book_.Edit(entry);
  AddVacated(slots, &job);
  ReleaseSlots(slots, job);
  if (Vacating(job).empty()) job.grace_ms = 0;
  job.reason = reason::kShrunk;
  job.message = fmt::format("goes on with {} of at most {} slots, {} fewer than before",
                            LiveSlots(job),
                            job.slots,
                            slots.size());
  Say(entry);
}

void QueueCore::Impl::OnEnded(const events::v1::JobEnded& ended) {
  Entry* entry = book_.Find(ended.job_id());
  if (entry == nullptr) {
    ++out_->stale;
    return;
  }
  const Ending ending = EndingBy(entry->job, ended.result(), ended.message());
  End(entry, ending.state, ending.reason, ending.message);
}

}  // namespace fluxqueue::queue_core
