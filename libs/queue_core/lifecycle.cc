// What becomes of a job that admission, a command or the passing of time speaks of, and of those
// that depend on it; and what is said of each change.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/text.h"
#include "libs/model/rules.h"
#include "libs/queue_core/attempt.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/dependencies.h"
#include "libs/queue_core/reasons.h"
#include "libs/queue_core/resize.h"
#include "libs/queue_core/transitions.h"

namespace fluxqueue::queue_core {

using events::v1::JobFact;
using events::v1::Slip;
using model::JobState;

void QueueCore::Impl::OnSubmitted(const events::v1::JobSubmitted& submitted) {
  // Before its last release is confirmed the matcher has not forgotten its jobspec: it would do so
  // behind the new one.
  if (Entry* known = book_.Find(submitted.job_id()); known != nullptr) {
    // The matcher has it again.
    const Job& job = known->job;
    if (job.reason == reason::kJobspecLost && model::kWaitingStates.Has(job.state)) {
      TakeJobspecAgain(submitted.spec(), known);
      UpdateWaiting(known, /*resized=*/true, /*hold_changed=*/false, /*moved=*/false);
      return;
    }
    ++out_->stale;
    return;
  }
  if (book_.EndedAttempt(submitted.job_id())) {
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
  job.jobspec_bytes = static_cast<uint32_t>(submitted.spec().jobspec().size());
  if (!submitted.qos().empty()) job.qos = std::make_shared<const std::string>(submitted.qos());
  Resolution resolution = ResolveDependencies(book_, job);
  job.depends_on = std::move(resolution.unmet);
  SetWaiting(
      job, reason::kQueued, again ? "in line: handed in again after it was rejected" : "in line");
  Entry* entry = book_.Add(std::move(job));
  BindDependents(entry);
  Say(entry);
  if (!resolution.never.empty()) {
    End(entry, JobState::kCancelled, reason::kDependencyNeverSatisfied, resolution.never);
  } else if (WaitsForItself(book_, entry->job)) {
    RefuseCycle(entry);
  }
}

void QueueCore::Impl::TakeJobspecAgain(const events::v1::PartSpec& spec, Entry* entry) {
  Job& job = book_.Edit(entry);
  job.not_before_ms = 0;
  if (spec.revision() <= job.revision) return;
  job.revision = spec.revision();
  job.slots = spec.slots();
  job.min_slots = spec.min_slots();
  job.jobspec_bytes = static_cast<uint32_t>(spec.jobspec().size());
  job.amounts = book_.Shared(ToResources(spec.amounts()));
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
  const bool resized = NewSpec(updated, entry->job) != nullptr;
  const bool goes_on = resized && GoesOn(updated, entry->job);
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
    if (goes_on) SaySize(entry);
    UpdateHolding(entry, resized && !goes_on);
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
  if (const events::v1::PartSpec* spec = NewSpec(updated, job); spec != nullptr) {
    TakeSize(updated, &job);
    job.revision = spec->revision();
    job.jobspec_bytes = static_cast<uint32_t>(spec->jobspec().size());
    job.amounts = book_.Shared(ToResources(spec->amounts()));
    changed = true;
  }
  return changed;
}

void QueueCore::Impl::UpdateWaiting(Entry* entry, bool resized, bool hold_changed, bool moved) {
  Job& job = book_.Edit(entry);
  const bool was_submitted = job.state == JobState::kSubmitted;
  const bool queue_exists = book_.Exists(job.queue);
  if (resized || moved || job.hold || !queue_exists || job.begin_ms > state_.now_ms) Disown(job);
  const bool is_other = resized || (view_.IsIndependent() && (moved || hold_changed));
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
    if (view_.HasRules(model::kSaysWhoAsked)) {
      const bool held_by_command = hold_changed && job.hold && !done_by_.empty();
      job.message = held_by_command ? done_by_ : WithWhoAsked(job.message);
    }
  }
  book_.Place(entry);
  Say(entry);
}

std::string QueueCore::Impl::WithWhoAsked(const std::string& message) const {
  if (done_by_.empty() || message.starts_with(done_by_)) return message;
  return message.empty() ? done_by_ : fmt::format("{}: {}", done_by_, message);
}

void QueueCore::Impl::SaySize(Entry* entry) {
  Job& job = book_.Edit(entry);
  const uint32_t live = LiveSlots(job);
  job.reason = reason::kResized;
  job.message = fmt::format("asks for {} slots now, and holds {}", job.slots, live);
  if (live < job.slots) job.message += ": it grows once others in line leave room";
  if (live > job.slots) job.message += ": it gives back those whose pods have gone";
  state_.growth = Growth::kDue;
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
  Waiting waiting = WaitingOf(view_, pool_, job, reason, std::move(message));
  job.state = waiting.state;
  job.reason = std::move(waiting.reason);
  job.message = std::move(waiting.message);
}

void QueueCore::Impl::Disown(Job& job) {
  if (!job.in_cycle) return;
  // The answer will name the attempt that was asked for, which is then an old one.
  ++job.attempt;
  job.in_cycle = false;
}

// ------------------------------------------------------------------------------- who waits for it

void QueueCore::Impl::BindDependents(Entry* entry) {
  const std::string name = FullName(entry->job);
  for (Entry* dependent : book_.DependentsOf(name)) {
    for (Dependency& dependency : book_.Edit(dependent).depends_on) {
      if (dependency.job == entry->job.workload->name()) dependency.job = entry->job.id;
    }
    Place(dependent);
  }
}

void QueueCore::Impl::RefuseCycle(Entry* entry) {
  std::string message = fmt::format("fluxqueue.io/depends-on: {}, and so it would wait for itself",
                                    DependencySentence(view_, entry->job));
  const bool pending = entry->job.state == JobState::kPending;
  End(entry,
      pending ? JobState::kRejected : JobState::kCancelled,
      reason::kDependencyCycle,
      std::move(message));
}

void QueueCore::Impl::SettleDependents() {
  // Jobs that end by this are appended.
  for (size_t i = 0; i < ended_.size(); ++i) {
    const Ended ended = ended_[i];
    for (Entry* entry : book_.DependentsOf(ended.id)) {
      SettleDependent(entry, ended.id, ended.succeeded);
    }
  }
  ended_.clear();
}

void QueueCore::Impl::SettleDependent(Entry* entry, const std::string& ended, bool succeeded) {
  Job& job = book_.Edit(entry);
  Resolution resolution = SettleDependencies(job, ended, succeeded);
  job.depends_on = std::move(resolution.unmet);
  if (!resolution.never.empty()) {
    CancelJob(entry, reason::kDependencyNeverSatisfied, std::move(resolution.never));
    return;
  }
  if (model::kWaitingStates.Has(job.state) && !job.hold) {
    SetWaiting(job, reason::kQueued, "in line: what it waited for has ended");
    Say(entry);
  }
  Place(entry);
}

// --------------------------------------------------------------------------------- as time passes

void QueueCore::Impl::BeginWaiting(const std::vector<Entry*>& due) {
  for (Entry* entry : due) {
    FollowAdaptive(*entry);
    if (entry->job.reason != reason::kNotYet) continue;
    SetWaiting(book_.Edit(entry), reason::kQueued, "in line: its begin has come");
    Say(entry);
  }
}

void QueueCore::Impl::HandleExpired() {
  for (Entry* entry : book_.Expired()) {
    if (IsClaim(entry->job)) {
      End(entry, JobState::kSucceeded, reason::kExpired, "its time is over");
      continue;
    }
    Job& job = book_.Edit(entry);
    if (job.overran) {
      Stop(entry,
           events::v1::JobFact::AFTER_STOP_FAIL,
           reason::kOverran,
           fmt::format("it ran for {} s, may for {}, and was not ended: was its "
                       "activeDeadlineSeconds raised?",
                       (state_.now_ms - job.start_ms) / 1000,
                       job.ends_after_ms / 1000));
      continue;
    }
    job.overran = true;
    job.reason = reason::kOverran;
    job.message = fmt::format("it has run for {} s, which is all that it may",
                              (state_.now_ms - job.start_ms) / 1000);
    Say(entry);
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
  job.vacated_slots.clear();
  job.lost.reset();
  job.after_stop = JobFact::AFTER_STOP_UNSPECIFIED;
  job.grace_ms = 0;
  Release(job, /*job_ended=*/true);
  Say(entry);
  Learn(job);
  ended_.push_back({job.id, state == JobState::kSucceeded});
  book_.End(entry);
}

void QueueCore::Impl::Say(Entry* entry) {
  Job& job = book_.Edit(entry);
  ++job.version;
  job.updated_ms = state_.now_ms;
  if (view_.HasRules(model::kShortReasons)) job.message = Cut(job.message, kMostMessageBytes);
  job.effective_duration_ms = planning_.EffectiveDuration(job);
  job.expires_ms = planning_.ExpiryOf(job);
  EnterPromise(&job);
  Place(entry);
  if (job.reason == reason::kReserved) promised_.insert(job.id);

  events::v1::Envelope& envelope = out_->jobs.emplace_back();
  envelope.set_pool(pool_);
  *envelope.mutable_job_fact() = ToFact(job, pool_);
  const bool goes_on = model::kHoldingStates.Has(job.state) && job.state != JobState::kStopping;
  if (goes_on && replacement_.Replaces(job)) envelope.mutable_job_fact()->set_replaces_slots(true);
  events_.push_back(JobEvent{.job_id = job.id,
                             .version = job.version,
                             .time_ms = job.updated_ms,
                             .state = job.state,
                             .attempt = job.attempt,
                             .reason = job.reason,
                             .message = Cut(WithWhoAsked(job.message), kMostMessageBytes)});
}

events::v1::ReleaseRequested* QueueCore::Impl::Release(const Job& job, bool job_ended) {
  events::v1::ReleaseRequested* release = ToPool()->mutable_release_requested();
  release->mutable_key()->set_job_id(job.id);
  release->mutable_key()->set_attempt(job.attempt);
  release->set_job_ended(job_ended);
  return release;
}

// Some in each minute, by turns: those that cannot be confirmed do not stand in the way of others.
// Which, the minute decides, as a replay knows of nothing else.
void QueueCore::Impl::ReleaseAgain() {
  constexpr size_t kMostReleasedAgain = 256;

  const auto& ended = book_.ended();
  if (ended.empty()) return;
  const size_t count = std::min(ended.size(), kMostReleasedAgain);
  auto next = ended.begin();
  if (count < ended.size()) {
    const auto minute = static_cast<size_t>(state_.now_ms / kReleaseAgainMs);
    std::advance(next, static_cast<ptrdiff_t>(minute * count % ended.size()));
  }
  for (size_t asked = 0; asked < count; ++asked, ++next) {
    if (next == ended.end()) next = ended.begin();
    const auto& [id, attempt] = *next;
    events::v1::ReleaseRequested* release = ToPool()->mutable_release_requested();
    release->mutable_key()->set_job_id(id);
    release->mutable_key()->set_attempt(attempt);
    release->set_job_ended(true);
  }
}

events::v1::Envelope* QueueCore::Impl::ToPool() {
  events::v1::Envelope& envelope = out_->pool.emplace_back();
  envelope.set_pool(pool_);
  return &envelope;
}

void QueueCore::Impl::Learn(const Job& job) {
  if (job.state != JobState::kSucceeded || job.start_ms == 0 || !planning_.Predicts(job)) return;
  book_.predictor().Learn(
      *job.user, ShapeOf(job), state_.now_ms - job.start_ms, planning_.EffectiveDuration(job));
}

void QueueCore::Impl::Place(Entry* entry) {
  if (!model::IsTerminal(entry->job.state)) book_.Place(entry);
  FollowAdaptive(*entry);
}

void QueueCore::Impl::FollowAdaptive(const Entry& entry) {
  if (adaptive_.empty()) return;
  adaptive_.Follow(entry, planning_.ExpectedDuration(entry.job), state_.now_ms);
}

void QueueCore::Impl::EnterPromise(Job* job) {
  const int64_t told_ms = IsPromised(*job) ? job->start_ms : 0;
  if (told_ms == 0) job->firm = false;
  Slip slip = std::exchange(slip_, {});
  job->unsaid_slip = nullptr;
  const bool kept = job->state == JobState::kAllocated;
  const bool withdrawn = told_ms == 0 && job->promised_ms != 0 && !kept;
  if (withdrawn && slip.cause() == Slip::CAUSE_UNSPECIFIED) {
    // Nothing but what becomes of the job itself takes a promise away outside of a cycle.
    slip.set_cause(Slip::CAUSE_COMMAND);
  }
  const bool says = slip.cause() != Slip::CAUSE_UNSPECIFIED && view_.HasFirmPromises();
  job->slip = says ? std::make_shared<const Slip>(slip) : nullptr;
  if (told_ms == job->promised_ms && job->firm == job->promised_firm) return;
  promise_entries_.push_back({.job_id = job->id,
                              .version = job->version,
                              .queue = job->queue,
                              .told_ms = state_.now_ms,
                              .start_ms = kept ? state_.now_ms : told_ms,
                              .before_ms = job->promised_ms,
                              .firm = kept ? job->promised_firm : job->firm,
                              .kept = kept,
                              .slip = std::move(slip)});
  job->promised_ms = told_ms;
  job->promised_firm = job->firm;
}

}  // namespace fluxqueue::queue_core
