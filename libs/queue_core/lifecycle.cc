// What becomes of a job: submitted, updated, bound, started, stopped, ended.
#include <algorithm>
#include <utility>

#include "libs/base/backoff.h"
#include "libs/base/check.h"
#include "libs/queue_core/attempt.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"

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

// --------------------------------------------------------------------------------- from admission

void QueueCore::Impl::OnSubmitted(const events::v1::JobSubmitted& submitted) {
  // Before its last release is confirmed the matcher has not forgotten its jobspec: it would do so
  // behind the new one.
  if (book_.Find(submitted.job_id()) != nullptr || book_.EndedAttempt(submitted.job_id())) {
    ++out_->stale;
    return;
  }
  const bool again = submitted.after_version() != 0;
  if (again) book_.TakeEndBack(submitted.job_id());
  Job job;
  job.id = submitted.job_id();
  job.version = submitted.after_version();
  job.attempt = submitted.after_attempt() + 1;
  job.workload = std::make_shared<const events::v1::Workload>(submitted.workload());
  job.queue = submitted.queue();
  job.priority = submitted.priority();
  if (submitted.has_duration_ms()) job.duration_ms = submitted.duration_ms();
  job.hold = submitted.hold();
  job.slots = submitted.spec().slots();
  job.min_slots = submitted.spec().min_slots();
  job.revision = submitted.spec().revision();
  job.submission = ++state_.last_submission;
  job.created_ms = submitted.created_ms();
  job.submitted_ms = state_.now_ms;
  job.attempt_since_ms = state_.now_ms;
  job.user = std::make_shared<const std::string>(submitted.user());
  job.begin_ms = submitted.begin_ms();
  job.amounts =
      std::make_shared<const scheduling::Resources>(ToResources(submitted.spec().amounts()));
  job.depends_on = ToDependencies(submitted.depends_on());
  const std::string never = Resolve(job);
  SetWaiting(
      job, reason::kQueued, again ? "in line: handed in again after it was rejected" : "in line");
  Entry* entry = book_.Add(std::move(job));
  BindDependents(entry);
  Say(entry);
  if (!never.empty()) {
    End(entry, JobState::kCancelled, reason::kDependencyNeverSatisfied, never);
  } else if (WaitsForItself(*entry)) {
    RefuseCycle(entry);
  }
}

void QueueCore::Impl::OnUpdated(const events::v1::JobUpdated& updated) {
  Entry* entry = book_.Find(updated.job_id());
  if (entry == nullptr) {
    ++out_->stale;
    return;
  }
  if (updated.cancel()) {
    CancelJob(entry, reason::kCancelled, "cancelled by its user");
    return;
  }
  const bool resized = updated.has_spec() && updated.spec().revision() > entry->job.revision;
  const bool hold_changed = (updated.has_hold() && updated.hold() != entry->job.hold) ||
                            (updated.has_begin_ms() && updated.begin_ms() != entry->job.begin_ms);
  const std::string queue_before = entry->job.queue;
  Job changed = entry->job;
  if (!TakeAttributes(updated, changed)) {
    ++out_->stale;
    return;
  }
  book_.Edit(entry) = std::move(changed);
  if (model::kWaitingStates.Has(entry->job.state)) {
    UpdateWaiting(entry, resized, hold_changed, entry->job.queue != queue_before);
  } else {
    UpdateHolding(entry, resized);
  }
}

bool QueueCore::Impl::TakeAttributes(const events::v1::JobUpdated& updated, Job& job) {
  bool changed = false;
  const auto take = [&changed](auto& field, const auto& value) {
    if (field == value) return;
    field = value;
    changed = true;
  };
  if (updated.has_hold()) take(job.hold, updated.hold());
  if (updated.has_priority()) take(job.priority, updated.priority());
  // What it holds it was given under the limits of its queue: it stays there.
  if (updated.has_queue() && model::kWaitingStates.Has(job.state)) {
    take(job.queue, updated.queue());
  }
  if (updated.has_begin_ms()) take(job.begin_ms, updated.begin_ms());
  if (updated.has_duration_ms()) {
    take(job.duration_ms, std::optional<int64_t>(updated.duration_ms()));
  }
  if (updated.has_spec() && updated.spec().revision() > job.revision) {
    job.revision = updated.spec().revision();
    job.slots = updated.spec().slots();
    job.min_slots = updated.spec().min_slots();
    job.amounts = book_.Shared(ToResources(updated.spec().amounts()));
    changed = true;
  }
  return changed;
}

void QueueCore::Impl::UpdateWaiting(Entry* entry, bool resized, bool hold_changed, bool moved) {
  Job& job = book_.Edit(entry);
  const bool was_submitted = job.state == JobState::kSubmitted;
  const bool queue_exists = book_.Exists(job.queue);
  if (resized || moved || job.hold || !queue_exists || job.begin_ms > state_.now_ms) Disown(job);
  const bool is_other = resized || (IsIndependent() && (moved || hold_changed));
  if (is_other) job.first_ms = 0;
  if (is_other && job.unsatisfiable_since_ms != 0) {
    // As it is now it has not been tried.
    job.unsatisfiable_since_ms = 0;
    job.not_before_ms = 0;
  }
  state_.line_changed = true;
  // Whatever changed, the last refusal may not hold for it any more.
  if (state_.blocked_head == job.submission) state_.blocked_head = 0;
  if (was_submitted || !queue_exists || resized || hold_changed || moved) {
    job.start_ms = 0;
    if (job.not_before_ms > state_.now_ms) {
      SetWaiting(job, reason::kRetry, fmt::format("waits for attempt {}", job.attempt));
    } else {
      SetWaiting(job, reason::kQueued, "in line");
    }
  }
  book_.Place(entry);
  Say(entry);
}

void QueueCore::Impl::UpdateHolding(Entry* entry, bool resized) {
  const Job& job = entry->job;
  // Only an allocation can be given up for another; what runs and nobody makes again goes on.
  const bool requeue = resized && job.state != JobState::kStopping &&
                       (job.state == JobState::kAllocated || job.workload->recreatable());
  if (requeue) {
    book_.Edit(entry).requeue_is_failure = false;
    Stop(entry,
         JobFact::AFTER_STOP_REQUEUE,
         reason::kResized,
         fmt::format("its pods ask for something else now (revision {})", job.revision));
    return;
  }
  book_.Place(entry);
  Say(entry);
}

void QueueCore::Impl::OnWithdrawn(const events::v1::JobWithdrawn& withdrawn) {
  Entry* entry = book_.Find(withdrawn.job_id());
  if (entry == nullptr) {
    ++out_->stale;
    return;
  }
  CancelJob(entry, reason::kWithdrawn, withdrawn.reason());
}

void QueueCore::Impl::CancelJob(Entry* entry, const char* reason, std::string message) {
  const Job& job = entry->job;
  if (model::kWaitingStates.Has(job.state) || IsClaim(job)) {
    End(entry, JobState::kCancelled, reason, std::move(message));
  } else if (job.state != JobState::kStopping || job.after_stop == JobFact::AFTER_STOP_REQUEUE) {
    Stop(entry, JobFact::AFTER_STOP_CANCEL, reason, std::move(message));
  } else {
    ++out_->stale;
  }
}

void QueueCore::Impl::SetWaiting(Job& job, const char* reason, std::string message) {
  if (!book_.Exists(job.queue)) {
    job.state = JobState::kSubmitted;
    job.reason = reason::kNoQueue;
    job.message = fmt::format(
        "FluxQueue {} does not exist in pool {}: make it, or name another", job.queue, pool_);
    return;
  }
  job.state = JobState::kPending;
  if (job.hold) {
    job.reason = reason::kHeld;
    job.message = "held by its user (fluxqueue.io/hold, or a command)";
  } else if (!job.depends_on.empty()) {
    job.reason = reason::kDependency;
    job.message = DependencySentence(job);
  } else if (job.begin_ms > state_.now_ms) {
    job.reason = reason::kNotYet;
    job.message = fmt::format("not to be started before {}", FormatTime(job.begin_ms));
  } else {
    job.reason = reason;
    job.message = std::move(message);
  }
}

void QueueCore::Impl::Disown(Job& job) {
  if (!job.in_cycle) return;
  // The answer will name the attempt that was asked for, which is then an old one.
  ++job.attempt;
  job.in_cycle = false;
}

// ------------------------------------------------------------------------ from binder and cleanup

void QueueCore::Impl::OnBound(const events::v1::JobBound& bound) {
  Entry* entry = Applies(bound.job_id(), bound.attempt(), Fact::kBound);
  if (entry == nullptr) return;
  if (entry->job.state == JobState::kStopping) {
    LearnBound(entry);
    return;
  }
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
  Entry* entry = Applies(lost.job_id(), lost.attempt(), Fact::kNodeLost);
  if (entry == nullptr) return;
  if (entry->job.state == JobState::kStopping) {
    LearnBound(entry);
    return;
  }
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

void QueueCore::Impl::Stop(Entry* entry, AfterStop after, std::string reason, std::string message) {
  Job& job = book_.Edit(entry);
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
  Job& job = book_.Edit(entry);
  AfterStop after = JobFact::AFTER_STOP_REQUEUE;
  const uint32_t next = job.failures + 2;  // the try that would follow, counting failures only
  if (may_be_bound && !job.workload->recreatable()) {
    after = JobFact::AFTER_STOP_FAIL;
    message += fmt::format("; no controller makes the {} again", job.workload->kind());
  } else if (config().max_attempts() != 0 && next > config().max_attempts()) {
    after = JobFact::AFTER_STOP_FAIL;
    message += fmt::format("; that was attempt {} of {}", next - 1, config().max_attempts());
  }
  job.requeue_is_failure = after == JobFact::AFTER_STOP_REQUEUE;
  Stop(entry, after, reason, std::move(message));
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
  const Job& job = entry->job;
  switch (job.after_stop) {
    case JobFact::AFTER_STOP_REQUEUE:
      Requeue(entry);
      return;
    case JobFact::AFTER_STOP_CANCEL:
      End(entry, JobState::kCancelled, nullptr, job.message);
      return;
    default:
      End(entry, JobState::kFailed, nullptr, job.message);
  }
}

void QueueCore::Impl::Requeue(Entry* entry) {
  Job& job = book_.Edit(entry);
  Release(job, /*job_ended=*/false, std::nullopt);
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
  job.held_slots = 0;
  job.grown = false;
  job.after_stop = JobFact::AFTER_STOP_UNSPECIFIED;
  job.grace_ms = 0;
  if (job.requeue_is_failure) {
    ++job.failures;
    const Millis delay = BackoffDelay(Millis(config().retry_min_ms()),
                                      Millis(config().retry_max_ms()),
                                      static_cast<int>(std::min<uint32_t>(job.failures, 1000)));
    job.not_before_ms = state_.now_ms + delay.count();
    SetWaiting(job,
               reason::kRetry,
               fmt::format("attempt {} in {:.1f} s; {}: {}",
                           job.attempt,
                           static_cast<double>(delay.count()) / 1000,
                           job.reason,
                           job.message));
  } else {
    job.not_before_ms = 0;
    SetWaiting(job, reason::kQueued, fmt::format("in line again; {}", job.message));
  }
  job.requeue_is_failure = false;
  book_.Place(entry);
  Say(entry);
}

void QueueCore::Impl::OnStarted(const events::v1::JobStarted& started) {
  Entry* entry = Applies(started.job_id(), started.attempt(), Fact::kStarted);
  if (entry == nullptr) return;
  if (entry->job.state == JobState::kStopping) {
    LearnBound(entry);
    return;
  }
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
  // The slot of a pod that failed or went is wanted by its replacement; and JobEnded releases all.
  if (ended.result() != events::v1::PodEnded::RESULT_SUCCEEDED || ended.part() != 0) return;
  const std::vector<uint32_t>& known = entry->job.released_slots;
  if (std::binary_search(known.begin(), known.end(), ended.slot())) {
    ++out_->stale;
    return;
  }
  if (IsElastic(entry->job)) ++book_.Edit(entry).succeeded;
  if (!GivesSlotsBackEarly(entry->job)) return;
  CountSlotBack(book_.Edit(entry), state_.now_ms);
  std::vector<uint32_t>& slots = book_.Edit(entry).released_slots;
  slots.insert(std::lower_bound(slots.begin(), slots.end(), ended.slot()), ended.slot());
  Release(entry->job, /*job_ended=*/false, ended.slot());
}

void QueueCore::Impl::OnEnded(const events::v1::JobEnded& ended) {
  Entry* entry = book_.Find(ended.job_id());
  if (entry == nullptr) {
    ++out_->stale;
    return;
  }
  // How it was being stopped says what a bad end means.
  const AfterStop after = entry->job.after_stop;
  const std::string why = entry->job.message;
  switch (ended.result()) {
    case events::v1::JobEnded::RESULT_SUCCEEDED:
      End(entry, JobState::kSucceeded, "", ended.message());
      return;
    case events::v1::JobEnded::RESULT_DELETED:
      if (after == JobFact::AFTER_STOP_FAIL) {
        End(entry, JobState::kFailed, nullptr, why);
      } else if (after == JobFact::AFTER_STOP_CANCEL) {
        End(entry, JobState::kCancelled, nullptr, why);
      } else {
        End(entry, JobState::kCancelled, reason::kDeleted, ended.message());
      }
      return;
    default:
      if (after == JobFact::AFTER_STOP_CANCEL) {
        End(entry, JobState::kCancelled, nullptr, why);
      } else if (after == JobFact::AFTER_STOP_FAIL) {
        End(entry, JobState::kFailed, nullptr, why);
      } else {
        End(entry, JobState::kFailed, reason::kFailed, ended.message());
      }
  }
}

// ------------------------------------------------------------------------------------ what is said

// `reason` null: it keeps the one it was stopped for.
void QueueCore::Impl::End(Entry* entry, JobState state, const char* reason, std::string message) {
  Job& job = book_.Edit(entry);
  CHECK(model::CanMove(job.state, state),
        "job {}: {} to {}",
        job.id,
        model::Name(job.state),
        model::Name(state));
  job.state = state;
  if (reason != nullptr) job.reason = reason;
  job.message = std::move(message);
  attempts_.push_back(EndAttempt(job, model::Name(state), state_.now_ms));
  job.placement_hash = 0;
  job.held_slots = 0;
  job.after_stop = JobFact::AFTER_STOP_UNSPECIFIED;
  job.grace_ms = 0;
  Release(job, /*job_ended=*/true, std::nullopt);
  Say(entry);
  Learn(job);
  ended_.push_back({job.id, state == JobState::kSucceeded});
  book_.End(entry);
}

void QueueCore::Impl::Say(Entry* entry) {
  Job& job = book_.Edit(entry);
  ++job.version;
  job.updated_ms = state_.now_ms;
  job.effective_duration_ms = EffectiveDuration(job);
  job.expires_ms = ExpiryOf(job);
  EnterPromise(&job);
  Place(entry);
  if (job.reason == reason::kReserved) promised_.insert(job.id);

  events::v1::Envelope& envelope = out_->jobs.emplace_back();
  envelope.set_pool(pool_);
  *envelope.mutable_job_fact() = ToFact(job, pool_);
  events_.push_back(JobEvent{.job_id = job.id,
                             .version = job.version,
                             .time_ms = job.updated_ms,
                             .state = job.state,
                             .attempt = job.attempt,
                             .reason = job.reason,
                             .message = job.message});
}

void QueueCore::Impl::Release(const Job& job, bool job_ended, std::optional<uint32_t> slot) {
  events::v1::ReleaseRequested* release = ToPool()->mutable_release_requested();
  release->mutable_key()->set_job_id(job.id);
  release->mutable_key()->set_attempt(job.attempt);
  if (slot.has_value()) release->add_slots(*slot);
  release->set_job_ended(job_ended);
}

events::v1::Envelope* QueueCore::Impl::ToPool() {
  events::v1::Envelope& envelope = out_->pool.emplace_back();
  envelope.set_pool(pool_);
  return &envelope;
}

}  // namespace fluxqueue::queue_core
