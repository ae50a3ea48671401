#include "libs/queue_core/queue_core.h"

#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/model/job_of.h"
#include "libs/model/rules.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/explain.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/windows.h"

namespace fluxqueue::queue_core {

using events::v1::Envelope;
using model::Fact;
using model::JobState;
using model::Verdict;

namespace {

// When releases that are not confirmed are asked for again: with each full minute of the log's
// time.
int64_t NextReleaseMs(int64_t now_ms) {
  return (now_ms / kReleaseAgainMs + 1) * kReleaseAgainMs;
}

events::v1::PoolConfigured DefaultConfig() {
  events::v1::PoolConfigured config;
  config.set_unsatisfiable_grace_ms(kDefaultGraceMs);
  config.set_answer_deadline_ms(kDefaultAnswerDeadlineMs);
  config.set_retry_min_ms(kDefaultRetryMinMs);
  config.set_retry_max_ms(kDefaultRetryMaxMs);
  return config;
}

absl::Status CheckSpec(const events::v1::PartSpec& spec,
                       std::string_view job_id,
                       std::string_view event) {
  if (spec.slots() == 0) {
    return InvalidArgument(
        "job {}: {} has a jobspec of 0 slots; at least 1 is allowed", job_id, event);
  }
  if (spec.min_slots() <= spec.slots()) return absl::OkStatus();
  return InvalidArgument("job {}: {} has a jobspec of {} to {} slots; the least is above the most",
                         job_id,
                         event,
                         spec.min_slots(),
                         spec.slots());
}

absl::Status CheckSubmitted(const events::v1::JobSubmitted& submitted) {
  if (submitted.job_id().empty()) return InvalidArgument("JobSubmitted names no job");
  if ((submitted.after_version() == 0) != (submitted.after_attempt() == 0)) {
    return InvalidArgument(
        "job {}: JobSubmitted goes on from version {}, attempt {}; one that is handed in again "
        "names both",
        submitted.job_id(),
        submitted.after_version(),
        submitted.after_attempt());
  }
  RETURN_IF_ERROR(CheckSpec(submitted.spec(), submitted.job_id(), "JobSubmitted"));
  for (const events::v1::Dependency& dependency : submitted.depends_on()) {
    if (dependency.job().empty() ||
        !events::v1::Dependency::Condition_IsValid(dependency.condition()) ||
        dependency.condition() == events::v1::Dependency::CONDITION_UNSPECIFIED) {
      return InvalidArgument(
          "job {}: depends on job \"{}\" by condition {}; a job and one of the "
          "conditions 1 to 3 are allowed",
          submitted.job_id(),
          dependency.job(),
          dependency.condition());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUpdated(const events::v1::JobUpdated& updated) {
  const events::v1::PartSpec* spec = model::SpecOf(updated);
  if (spec == nullptr) return absl::OkStatus();
  return CheckSpec(*spec, updated.job_id(), "JobUpdated");
}

absl::Status CheckPool(const events::v1::PoolConfigured& configured) {
  if (configured.rules() > model::kLatestRules) {
    return InvalidArgument(
        "PoolConfigured: rules {} are unknown to this build, which knows up to {}",
        configured.rules(),
        model::kLatestRules);
  }
  if (configured.answer_deadline_ms() <= 0) {
    return InvalidArgument("PoolConfigured: answer_deadline_ms is {}; it must be above 0",
                           configured.answer_deadline_ms());
  }
  if (configured.unsatisfiable_grace_ms() < 0 || configured.retry_min_ms() < 0 ||
      configured.retry_max_ms() < configured.retry_min_ms()) {
    return InvalidArgument(
        "PoolConfigured: grace {} ms and retries from {} to {} ms; none may be below 0, nor the "
        "first retry above the last",
        configured.unsatisfiable_grace_ms(),
        configured.retry_min_ms(),
        configured.retry_max_ms());
  }
  for (const auto& billing : configured.billing()) {
    if (billing.weight_milli() >= 0) continue;
    return InvalidArgument(
        "PoolConfigured: billing of {} is {} thousandths; it must not be below 0",
        billing.resource(),
        billing.weight_milli());
  }
  return absl::OkStatus();
}

}  // namespace

QueueCore::Impl::Impl(std::string pool) : pool_(std::move(pool)) {
  state_.config = std::make_shared<const events::v1::PoolConfigured>(DefaultConfig());
  book_.tree().CountOthers(view_.HasAccounts());
}

absl::Status QueueCore::Impl::Handle(const Envelope& message, Millis now, Outputs* out) {
  if (!Reads(message.event_case())) return absl::OkStatus();
  RETURN_IF_ERROR(CheckNoClaim(message));
  RETURN_IF_ERROR(Check(message));
  if (!before_.has_value()) before_ = state_;
  out_ = out;
  AdvanceTo(now.count());
  Fold(message);
  SettleDependents();
  if (book_.TakeEntered()) state_.line_changed = true;
  BeginCycle();
  out_ = nullptr;
  return absl::OkStatus();
}

absl::Status QueueCore::Impl::CheckFact(std::string_view job_id,
                                        uint32_t attempt,
                                        Fact fact) const {
  const Entry* entry = book_.Find(job_id);
  if (entry == nullptr || attempt < entry->job.attempt) return absl::OkStatus();
  if (attempt > entry->job.attempt) {
    return InvalidArgument("job {}: {} of attempt {}, but it is in attempt {}",
                           job_id,
                           model::Name(fact),
                           attempt,
                           entry->job.attempt);
  }
  if (model::Judge(entry->job.state, fact).verdict == Verdict::kImpossible) {
    return InvalidArgument("job {}: {} is impossible in state {} (attempt {}, version {})",
                           job_id,
                           model::Name(fact),
                           model::Name(entry->job.state),
                           attempt,
                           entry->job.version);
  }
  return absl::OkStatus();
}

absl::Status QueueCore::Impl::CheckNoClaim(const Envelope& message) const {
  const auto check = [this](const auto& event) -> absl::Status {
    const Entry* entry = book_.Find(event.job_id());
    if (entry == nullptr || !IsClaim(entry->job)) return absl::OkStatus();
    return InvalidArgument("job {} is a claim: no workload of the cluster, but {} speaks of it",
                           event.job_id(),
                           event.GetTypeName());
  };
  switch (message.event_case()) {
    case Envelope::kJobUpdated:
      return check(message.job_updated());
    case Envelope::kJobWithdrawn:
      return check(message.job_withdrawn());
    case Envelope::kJobBound:
      return check(message.job_bound());
    case Envelope::kBindFailed:
      return check(message.bind_failed());
    case Envelope::kJobStopped:
      return check(message.job_stopped());
    case Envelope::kSlotsVacated:
      return check(message.slots_vacated());
    case Envelope::kSlotsLost:
      return check(message.slots_lost());
    case Envelope::kJobStarted:
      return check(message.job_started());
    case Envelope::kPodEnded:
      return check(message.pod_ended());
    case Envelope::kJobEnded:
      return check(message.job_ended());
    case Envelope::kJobNodeLost:
      return check(message.job_node_lost());
    default:
      return absl::OkStatus();
  }
}

absl::Status QueueCore::Impl::Check(const Envelope& message) const {
  if (message.pool() != pool_) {
    return InvalidArgument(
        "a message of pool \"{}\" was handed to pool \"{}\"", message.pool(), pool_);
  }
  const auto fact = [this](const auto& event, Fact what) {
    return CheckFact(event.job_id(), event.attempt(), what);
  };
  switch (message.event_case()) {
    case Envelope::kJobSubmitted:
      return CheckSubmitted(message.job_submitted());
    case Envelope::kJobUpdated:
      return CheckUpdated(message.job_updated());
    case Envelope::kCommandAccepted:
      return CheckCommand(message.command_accepted());
    case Envelope::kQueueConfigured:
      return CheckQueue(message.queue_configured());
    case Envelope::kPoolConfigured:
      return CheckPool(message.pool_configured());
    case Envelope::kWindowConfigured:
      return CheckWindow(message.window_configured());
    case Envelope::kJobBound:
      return fact(message.job_bound(), Fact::kBound);
    case Envelope::kBindFailed:
      return fact(message.bind_failed(), Fact::kBindFailed);
    case Envelope::kJobStopped:
      return fact(message.job_stopped(), Fact::kStopped);
    case Envelope::kSlotsVacated:
      return fact(message.slots_vacated(), Fact::kVacated);
    case Envelope::kSlotsLost:
      return fact(message.slots_lost(), Fact::kSlotsLost);
    case Envelope::kJobStarted:
      return fact(message.job_started(), Fact::kStarted);
    case Envelope::kPodEnded:
      return fact(message.pod_ended(), Fact::kPodEnded);
    case Envelope::kJobNodeLost:
      return fact(message.job_node_lost(), Fact::kNodeLost);
    case Envelope::kCycleAnswered:
      if (message.cycle_answered().cycle_id() > state_.last_cycle_id &&
          !view_.HasRules(model::kAsksForTheLost)) {
        return InvalidArgument("pool {}: an answer to cycle {}, but the last asked is {}",
                               pool_,
                               message.cycle_answered().cycle_id(),
                               state_.last_cycle_id);
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

void QueueCore::Impl::Fold(const Envelope& message) {
  switch (message.event_case()) {
    case Envelope::kJobSubmitted:
      return OnSubmitted(message.job_submitted());
    case Envelope::kJobUpdated:
      return OnUpdated(message.job_updated());
    case Envelope::kJobWithdrawn:
      return OnWithdrawn(message.job_withdrawn());
    case Envelope::kCommandAccepted:
      return OnCommand(message.command_accepted());
    case Envelope::kQueueConfigured:
      return OnQueueConfigured(message.queue_configured());
    case Envelope::kPoolConfigured:
      return OnPoolConfigured(message.pool_configured());
    case Envelope::kWindowConfigured:
      return OnWindowConfigured(message.window_configured());
    case Envelope::kCycleAnswered:
      return OnAnswered(message.cycle_answered());
    case Envelope::kReleased:
      return OnReleased(message.released());
    case Envelope::kInventoryChanged:
      return OnInventoryChanged(message.inventory_changed());
    case Envelope::kJobBound:
      return OnBound(message.job_bound());
    case Envelope::kBindFailed:
      return OnBindFailed(message.bind_failed());
    case Envelope::kJobStopped:
      return OnStopped(message.job_stopped());
    case Envelope::kSlotsVacated:
      return OnVacated(message.slots_vacated());
    case Envelope::kSlotsLost:
      return OnSlotsLost(message.slots_lost());
    case Envelope::kJobStarted:
      return OnStarted(message.job_started());
    case Envelope::kPodEnded:
      return OnPodEnded(message.pod_ended());
    case Envelope::kJobEnded:
      return OnEnded(message.job_ended());
    case Envelope::kJobNodeLost:
      return OnNodeLost(message.job_node_lost());
    case Envelope::kTick:
      return OnTick();
    default:
      return;
  }
}

void QueueCore::Impl::AdvanceTo(int64_t now_ms) {
  if (!state_.begun) {
    state_.begun = true;
    state_.beginning_ms = now_ms;
    state_.now_ms = now_ms;
  }
  const int64_t before_ms = std::exchange(state_.now_ms, std::max(state_.now_ms, now_ms));
  if (NextReleaseMs(before_ms) <= state_.now_ms && view_.HasRules(model::kAsksForTheLost)) {
    ReleaseAgain();
  }
  BeginWaiting(book_.AdvanceTo(state_.now_ms));
  HandleExpired();
  if (auto windows = WithoutPastWindows(state_)) SetWindows(*std::move(windows));
  if (state_.cycle != nullptr &&
      state_.now_ms >= state_.cycle_asked_ms + config().answer_deadline_ms()) {
    AskCycle();
  }
  if (state_.limits_due_ms != 0 && state_.now_ms >= state_.limits_due_ms) {
    state_.limits_due_ms = 0;
    state_.ask_again = true;
  }
}

// Not whatever message comes first at that time: that could be the first of several ends on which
// the reservation waits.
void QueueCore::Impl::OnTick() {
  if (state_.due_ms == 0 || state_.now_ms < state_.due_ms) return;
  state_.due_ms = 0;
  state_.ask_again = true;
}

std::optional<Millis> QueueCore::Impl::NextDeadline() const {
  std::optional<int64_t> next = book_.NextAlarm();
  for (const int64_t due : {state_.due_ms, state_.limits_due_ms}) {
    if (due != 0) next = std::min(next.value_or(due), due);
  }
  if (state_.replace_ms > state_.now_ms && !book_.replacing().empty()) {
    next = std::min(next.value_or(state_.replace_ms), state_.replace_ms);
  }
  const bool some_want_room = book_.Head() != nullptr || !book_.replacing().empty();
  if (const auto end = NextWindowEnd(state_); end.has_value() && some_want_room) {
    next = std::min(next.value_or(*end), *end);
  }
  if (!book_.ended().empty() && view_.HasRules(model::kAsksForTheLost)) {
    const int64_t again = NextReleaseMs(state_.now_ms);
    next = std::min(next.value_or(again), again);
  }
  if (state_.cycle != nullptr) {
    const int64_t deadline = state_.cycle_asked_ms + config().answer_deadline_ms();
    next = next.has_value() ? std::min(*next, deadline) : deadline;
  }
  if (!next.has_value()) return std::nullopt;
  return Millis(*next);
}

void QueueCore::Impl::Commit() {
  before_.reset();
  events_.clear();
  attempts_.clear();
  promise_entries_.clear();
  cycles_requested_.clear();
  cycles_answered_.clear();
  promised_left_out_.clear();
  book_.Commit();
  adaptive_.Commit();
}

void QueueCore::Impl::Rollback() {
  if (before_.has_value()) {
    MarkCandidates(false);
    state_ = std::move(*before_);
    book_.tree().CountOthers(view_.HasAccounts());
  }
  book_.Rollback(state_.now_ms);
  promised_.insert(promised_left_out_.begin(), promised_left_out_.end());
  adaptive_.Rollback();
  book_.TakeEntered();
  book_.TakeLeft();
  MarkCandidates(true);
  Commit();
}

// ---- the public face

QueueCore::QueueCore(std::string pool) : impl_(std::make_unique<Impl>(std::move(pool))) {}
QueueCore::~QueueCore() = default;
QueueCore::QueueCore(QueueCore&&) noexcept = default;
QueueCore& QueueCore::operator=(QueueCore&&) noexcept = default;

bool QueueCore::Reads(Envelope::EventCase type) {
  switch (type) {
    case Envelope::kJobSubmitted:
    case Envelope::kJobUpdated:
    case Envelope::kJobWithdrawn:
    case Envelope::kQueueConfigured:
    case Envelope::kPoolConfigured:
    case Envelope::kWindowConfigured:
    case Envelope::kTick:
    case Envelope::kCommandAccepted:
    case Envelope::kCycleAnswered:
    case Envelope::kReleased:
    case Envelope::kInventoryChanged:
    case Envelope::kJobBound:
    case Envelope::kBindFailed:
    case Envelope::kJobStopped:
    case Envelope::kSlotsVacated:
    case Envelope::kSlotsLost:
    case Envelope::kJobStarted:
    case Envelope::kPodEnded:
    case Envelope::kJobEnded:
    case Envelope::kJobNodeLost:
      return true;
    case Envelope::kCycleRequested:  // its own words
    case Envelope::kReleaseRequested:
    case Envelope::kJobFact:
    case Envelope::kNodeUpserted:
    case Envelope::kNodeGone:
    case Envelope::kInventorySynced:
    case Envelope::EVENT_NOT_SET:
      return false;
  }
  return false;
}

absl::Status QueueCore::Handle(const Envelope& message, Millis now, Outputs* out) {
  return impl_->Handle(message, now, out);
}
std::optional<Millis> QueueCore::NextDeadline() const {
  return impl_->NextDeadline();
}
Changes QueueCore::TakeChanges() const {
  return impl_->Describe();
}
void QueueCore::Commit() {
  impl_->Commit();
}
void QueueCore::Rollback() {
  impl_->Rollback();
}
absl::Status QueueCore::Restore(const Rows& rows) {
  return impl_->Restore(rows);
}
uint64_t QueueCore::Fingerprint() const {
  return impl_->Fingerprint();
}
const std::string& QueueCore::pool() const {
  return impl_->pool();
}
Millis QueueCore::now() const {
  return Millis(impl_->state().now_ms);
}
size_t QueueCore::size() const {
  return impl_->book().size();
}

const Job* QueueCore::Find(std::string_view job_id) const {
  const Entry* entry = impl_->book().Find(job_id);
  return entry == nullptr ? nullptr : &entry->job;
}

bool QueueCore::Remembers(std::string_view job_id) const {
  const JobBook& book = impl_->book();
  return book.Find(job_id) != nullptr || book.EndedAttempt(job_id).has_value();
}

const events::v1::QueueConfigured* QueueCore::FindQueue(const std::string& name) const {
  const auto it = impl_->book().queues().find(name);
  return it == impl_->book().queues().end() ? nullptr : it->second->config.get();
}

size_t QueueCore::Position(std::string_view job_id) const {
  const Entry* entry = impl_->book().Find(job_id);
  return entry == nullptr ? 0 : PositionOf(*entry);
}

std::vector<std::string> QueueCore::Front(size_t most) const {
  std::vector<std::string> ids;
  for (const auto& [name, queue] : impl_->book().queues()) {
    size_t left = most;
    for (auto it = queue->line.begin(); it != queue->line.end() && left > 0; ++it, --left) {
      ids.push_back(it->second->job.id);
    }
  }
  const std::vector<const Entry*> jobs = impl_->book().Jobs();
  size_t left = most;
  for (auto it = jobs.rbegin(); it != jobs.rend() && left > 0; ++it) {
    if ((*it)->in_line_of != nullptr) continue;
    ids.push_back((*it)->job.id);
    --left;
  }
  return ids;
}

std::vector<std::string> QueueCore::LackNodes() {
  return impl_->LackNodes();
}

std::optional<Explanation> QueueCore::Explain(std::string_view job_id) const {
  const Entry* entry = impl_->book().Find(job_id);
  if (entry == nullptr) return std::nullopt;
  return queue_core::Explain(impl_->view(), impl_->pool(), *entry);
}

std::map<std::pair<std::string, JobState>, size_t> QueueCore::Counts() const {
  std::map<std::pair<std::string, JobState>, size_t> counts;
  for (const auto& [name, queue] : impl_->book().queues()) {
    for (int i = 0; i < model::kJobStates; ++i) {
      if (queue->counts[i] != 0) counts[{name, static_cast<JobState>(i)}] = queue->counts[i];
    }
  }
  return counts;
}

std::map<std::string, QueueFigures> QueueCore::Figures() const {
  return impl_->Figures();
}

uint64_t QueueCore::cycle_in_flight() const {
  return impl_->state().cycle == nullptr ? 0 : impl_->state().cycle->cycle_id();
}

}  // namespace fluxqueue::queue_core
