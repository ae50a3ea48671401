// What the matcher's answers mean: judged candidate by candidate, with what is said of each.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/model/no_jobspec.h"
#include "libs/model/rules.h"
#include "libs/queue_core/attempt.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"
#include "libs/queue_core/resize.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using events::v1::Outcome;
using events::v1::Slip;
using model::JobState;

namespace {

// A start that is told is moved at once when it is later by this.
constexpr int64_t kMuchLaterMs = 60'000;
// What nothing here can run is looked at again after this time, should no change of the inventory
// have brought it back.
constexpr int64_t kUnsatisfiableIntervalMs = 600'000;

}  // namespace

void QueueCore::Impl::OnAnswered(const events::v1::CycleAnswered& answered) {
  if (state_.cycle == nullptr || answered.cycle_id() != state_.cycle->cycle_id()) {
    ++out_->stale;
    // Our table went back, and the log has lost what was asked since: the matcher says how far it
    // was.
    if (state_.cycle != nullptr && answered.cycle_id() > state_.last_cycle_id) {
      AskCycleAs(answered.cycle_id() + 1);
    }
    return;
  }
  answered_ = &answered;
  const std::shared_ptr<const CycleRequested> cycle = state_.cycle;
  const CycleResult result = JudgeOutcomes(answered);
  if (view_.IsIndependent()) NoteFirst(*state_.cycle, result);
  WithdrawPromises(result);
  state_.growth = elastic_.AfterAnswer(answered, result.grown);
  CloseCycle(result);
  ClearSuspects(*cycle, result);
  StopVictims(answered);
  // It has looked who is first now.
  book_.TakeLeft();
  answered_ = nullptr;
}

QueueCore::Impl::CycleResult QueueCore::Impl::JudgeOutcomes(
    const events::v1::CycleAnswered& answered) {
  const auto& candidates = state_.cycle->candidates();
  CycleResult result;
  result.rules.resize(static_cast<size_t>(state_.cycle->rules_size()) + 1);
  result.tried.resize(static_cast<size_t>(candidates.size()));
  const auto rule_of = [&result](const Candidate* candidate) {
    const size_t none = result.rules.size() - 1;
    return &result.rules[candidate == nullptr ? none : std::min<size_t>(candidate->rule(), none)];
  };
  for (const Candidate& candidate : candidates) rule_of(&candidate)->named += !candidate.grow();
  // Both stand in one order; candidates that were not tried have no outcome.
  auto next = candidates.begin();
  for (const Outcome& outcome : answered.outcomes()) {
    const auto about = std::find_if(next, candidates.end(), [&outcome](const Candidate& one) {
      return one.job_id() == outcome.job_id() && one.attempt() == outcome.attempt();
    });
    const Candidate* candidate = about == candidates.end() ? nullptr : &*about;
    if (candidate != nullptr) next = std::next(about);
    if (candidate != nullptr && candidate->grow()) {
      if (candidate->replace()) {
        Replace(outcome);
        continue;
      }
      Grow(outcome);
      ++result.grown;
      continue;
    }
    RuleResult* rule = rule_of(candidate);
    const Course course =
        JudgeOutcome(outcome, view_.IsIndependent() ? rule->refused : result.refused.size());
    ++rule->tried;
    if (candidate != nullptr) result.tried[static_cast<size_t>(about - candidates.begin())] = true;
    if (course == Course::kAllocated) ++result.allocated;
    if (course == Course::kRefused) {
      ++rule->refused;
      result.refused.push_back(book_.Find(outcome.job_id())->job.submission);
    } else {
      result.progressed = true;
    }
  }
  return result;
}

QueueCore::Impl::Course QueueCore::Impl::JudgeOutcome(const Outcome& outcome, size_t ahead) {
  Entry* entry = book_.Find(outcome.job_id());
  if (entry == nullptr || !entry->job.in_cycle || entry->job.attempt != outcome.attempt()) {
    if (outcome.kind() == Outcome::KIND_ALLOCATED) {
      ReleaseUnwanted(outcome.job_id(), outcome.attempt(), outcome.part());
    }
    ++out_->stale;
    return Course::kUnwanted;
  }
  // Whoever is in the cycle with its present attempt is Pending: what moves it on disowns it.
  CHECK(entry->job.state == JobState::kPending,
        "job {} is {}",
        entry->job.id,
        model::Name(entry->job.state));
  entry->job.slots_now = outcome.slots_now();
  switch (outcome.kind()) {
    case Outcome::KIND_ALLOCATED:
      Allocate(entry, outcome, ahead);
      return Course::kAllocated;
    case Outcome::KIND_UNSATISFIABLE:
      return FindUnsatisfiable(entry, outcome);
    case Outcome::KIND_INVALID:
      if (LacksJobspec(*entry, outcome)) {
        AwaitJobspec(entry);
        return Course::kMoved;
      }
      End(entry, JobState::kRejected, reason::kInvalid, outcome.reason());
      return Course::kMoved;
    case Outcome::KIND_RESERVED:
      Reserve(entry, outcome);
      return Course::kRefused;
    default:
      Refuse(entry, reason::kBusy, outcome);
      return Course::kRefused;
  }
}

// Who has made a claim waits for an answer, and may ask again.
bool QueueCore::Impl::LacksJobspec(const Entry& entry, const Outcome& outcome) const {
  return view_.HasRules(model::kAsksForTheLost) && !IsClaim(entry.job) &&
         outcome.reason() == model::NoJobspec(outcome.part());
}

// Admission finds such by the matcher's table, and hands them in again.
void QueueCore::Impl::AwaitJobspec(Entry* entry) {
  constexpr int64_t kInterval = 120'000;
  Job& job = book_.Edit(entry);
  job.not_before_ms = state_.now_ms + kInterval;
  job.first_ms = 0;
  job.start_ms = 0;
  job.unsatisfiable_since_ms = 0;
  job.in_cycle = false;
  Place(entry);
  SetWaiting(job, reason::kJobspecLost, "the matcher has lost its jobspec, and is given it again");
  Say(entry);
}

void QueueCore::Impl::ReleaseUnwanted(const std::string& job_id, uint32_t attempt, uint32_t part) {
  // An ended job's last release was asked for after the cycle, so it covers this allocation too.
  if (book_.EndedAttempt(job_id) == attempt) return;
  // What a job holds now was allocated by an earlier cycle, and is not given away.
  const Entry* entry = book_.Find(job_id);
  if (entry != nullptr && attempt >= entry->job.attempt) return;
  events::v1::ReleaseRequested* release = ToPool()->mutable_release_requested();
  release->mutable_key()->set_job_id(job_id);
  release->mutable_key()->set_attempt(attempt);
  release->mutable_key()->set_part(part);
  ++out_->unwanted;
}

void QueueCore::Impl::Allocate(Entry* entry, const Outcome& outcome, size_t ahead) {
  Job& job = book_.Edit(entry);
  if (job.attempt == 1) Time(Timing::Kind::kWait, job, job.submitted_ms);
  if (IsPromised(job)) {
    if (state_.now_ms - job.start_ms >= 1000)
      slip_ = promises_.WhyLater(job, outcome.slip(), *answered_);
    TimeSlip(job, state_.now_ms - job.start_ms, slip_);
  }
  job.state = JobState::kAllocated;
  job.reason = ahead > 0 ? reason::kBackfilled : "";
  job.message =
      ahead > 0 ? fmt::format("starts before {} that stand ahead of it and wait", ahead) : "";
  job.placement_hash = outcome.placement_hash();
  job.not_before_ms = 0;
  job.unsatisfiable_since_ms = 0;
  job.first_ms = 0;
  job.start_ms = 0;
  job.ends_after_ms = planning_.EndsAfter(job);
  job.in_cycle = false;
  job.allocated_ms = state_.now_ms;
  if (IsElastic(job)) job.held_slots = outcome.slots() == 0 ? job.slots : outcome.slots();
  Say(entry);
  if (IsClaim(job)) StartClaim(entry);
}

void QueueCore::Impl::Refuse(Entry* entry, const char* reason, const Outcome& outcome) {
  const Job& known = entry->job;
  if (known.unsatisfiable_since_ms != 0) book_.Edit(entry).unsatisfiable_since_ms = 0;
  if (promises_.AwaitsVictims(known, outcome)) {
    NoteSlip(entry, /*later_ms=*/1, outcome.slip());
    if (state_.due_ms == 0 || known.start_ms < state_.due_ms) state_.due_ms = known.start_ms;
    return;
  }
  const bool other_words = known.message != outcome.reason() || known.start_ms != 0;
  const bool due = state_.now_ms - known.updated_ms >= kSentenceIntervalMs;
  if (known.reason == reason && !(other_words && due)) return;
  std::string message = outcome.reason();
  if (known.reason == reason::kReserved) {
    slip_ = promises_.WhyLater(known, outcome.slip(), *answered_);
    message = fmt::format(
        "its promised start is withdrawn: {}; {}", promises_.Sentence(known, slip_), message);
  }
  Job& job = book_.Edit(entry);
  job.reason = reason;
  job.message = std::move(message);
  job.start_ms = 0;
  Say(entry);
}

// What was said is what is promised: an earlier start is said when the job has been silent for a
// while, a later one at once if it is much later.
void QueueCore::Impl::Reserve(Entry* entry, const Outcome& outcome) {
  const int64_t start_ms = state_.beginning_ms + outcome.at_s() * 1000;
  if (state_.due_ms == 0 || start_ms < state_.due_ms) state_.due_ms = start_ms;
  const Job& known = entry->job;
  const bool promised = IsPromised(known);
  const int64_t later_ms = promised ? start_ms - known.start_ms : 0;
  const bool due = state_.now_ms - known.updated_ms >= kSentenceIntervalMs;
  const bool firm = promises_.IsFirm(*entry, outcome);
  const bool is_news = later_ms != 0 || known.firm != firm;
  if (promised && !(due && is_news) && later_ms < kMuchLaterMs) {
    NoteSlip(entry, later_ms, outcome.slip());
    return;
  }
  Job& job = book_.Edit(entry);
  job.unsatisfiable_since_ms = 0;
  job.message = outcome.reason();
  if (later_ms > 0) {
    slip_ = promises_.WhyLater(job, outcome.slip(), *answered_);
    TimeSlip(job, later_ms, slip_);
    job.message = fmt::format(
        "starts {} s later than it was told: {}", later_ms / 1000, promises_.Sentence(job, slip_));
  }
  job.reason = reason::kReserved;
  job.start_ms = start_ms;
  job.firm = firm;
  Say(entry);
}

void QueueCore::Impl::NoteSlip(Entry* entry, int64_t later_ms, const Slip& slip) {
  if (later_ms <= 0 || entry->job.unsaid_slip != nullptr) return;
  if (slip.cause() == Slip::CAUSE_UNSPECIFIED) return;
  book_.Edit(entry).unsaid_slip = std::make_shared<const Slip>(slip);
}

// Who was not named has nothing reserved any more. Who was named and not tried has what it had, and
// its time comes all the same.
void QueueCore::Impl::WithdrawPromises(const CycleResult& result) {
  const auto was_tried = [&](const std::string& job_id) {
    const auto& candidates = state_.cycle->candidates();
    const auto it = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& one) {
      return one.job_id() == job_id;
    });
    return it != candidates.end() && result.tried[static_cast<size_t>(it - candidates.begin())];
  };
  for (auto next = promised_.begin(); next != promised_.end();) {
    Entry* entry = book_.Find(*next);
    const bool promised = entry != nullptr && entry->job.reason == reason::kReserved;
    if (promised && entry->job.in_cycle) {
      const int64_t start_ms = entry->job.start_ms;
      const bool is_first = state_.due_ms == 0 || start_ms < state_.due_ms;
      if (view_.IsIndependent() && is_first && !was_tried(*next)) state_.due_ms = start_ms;
      ++next;
      continue;
    }
    promised_left_out_.push_back(*next);
    next = promised_.erase(next);
    if (!promised) continue;
    WithdrawPromise(entry, promises_.WhyNotNamed(*entry, *answered_));
  }
}

void QueueCore::Impl::WithdrawPromise(Entry* entry, const Slip& slip) {
  Job& job = book_.Edit(entry);
  slip_ = slip;
  job.message = fmt::format("its promised start is withdrawn: {}", promises_.Sentence(job, slip_));
  job.reason = reason::kQueued;
  job.start_ms = 0;
  Say(entry);
}

QueueCore::Impl::Course QueueCore::Impl::FindUnsatisfiable(Entry* entry, const Outcome& outcome) {
  if (!state_.synced) {
    // Not all nodes are known yet.
    Refuse(entry, reason::kBusy, outcome);
    return Course::kRefused;
  }
  Job& job = book_.Edit(entry);
  if (job.unsatisfiable_since_ms == 0) job.unsatisfiable_since_ms = state_.now_ms;
  const std::optional<int64_t> until = RejectedAt(job);
  if (until.has_value() && state_.now_ms >= *until) {
    End(entry, JobState::kRejected, reason::kUnsatisfiable, outcome.reason());
    return Course::kMoved;
  }
  // Set aside, so that it holds up no job that can be served. Other nodes bring it back.
  job.not_before_ms = until.value_or(state_.now_ms + kUnsatisfiableIntervalMs);
  job.first_ms = 0;
  Place(entry);
  std::string message = outcome.reason();
  if (until.has_value()) {
    message += fmt::format("; rejected unless that changes within {:.1f} s",
                           static_cast<double>(*until - state_.now_ms) / 1000);
  } else {
    message += "; it waits for nodes that can run it";
  }
  const bool due = state_.now_ms - job.updated_ms >= kSentenceIntervalMs;
  const bool news = view_.IsIndependent() && due && job.message != message;
  if (job.reason == reason::kUnsatisfiable && !news) return Course::kMoved;
  job.reason = reason::kUnsatisfiable;
  job.message = std::move(message);
  // By rules 1 the start that it was promised stood on.
  if (view_.IsIndependent()) job.start_ms = 0;
  Say(entry);
  return Course::kMoved;
}

// What cannot run now may be able to tomorrow: taints, cordons and pools that scale to nothing
// pass.
std::optional<int64_t> QueueCore::Impl::RejectedAt(const Job& job) const {
  if (!view_.IsIndependent()) return job.unsatisfiable_since_ms + config().unsatisfiable_grace_ms();
  const auto queue = book_.queues().find(job.queue);
  const int64_t after_ms = queue == book_.queues().end() || queue->second->config == nullptr
                               ? 0
                               : queue->second->config->reject_after_ms();
  if (after_ms == 0) return std::nullopt;
  return job.unsatisfiable_since_ms + after_ms;
}

void QueueCore::Impl::NoteFirst(const CycleRequested& cycle, const CycleResult& result) {
  std::set<uint32_t> seen;
  for (int i = 0; i < cycle.candidates_size(); ++i) {
    const Candidate& candidate = cycle.candidates(i);
    if (candidate.grow() || !result.tried[static_cast<size_t>(i)]) continue;
    if (seen.contains(candidate.rule())) continue;
    Entry* entry = book_.Find(candidate.job_id());
    const bool waits = entry != nullptr && entry->in_line_of != nullptr;
    if (!waits || !seen.insert(candidate.rule()).second) continue;
    if (entry->job.first_ms == 0) book_.Edit(entry).first_ms = state_.now_ms;
  }
}

void QueueCore::Impl::Grow(const Outcome& outcome) {
  if (elastic_.Grows(outcome) == nullptr) {
    if (outcome.kind() == Outcome::KIND_ALLOCATED) ++out_->stale;
    return;
  }
  Entry* entry = book_.Find(outcome.job_id());
  Job& job = book_.Edit(entry);
  const uint32_t more = outcome.slots() - job.held_slots;
  CountMoreSlots(job, more, state_.now_ms);
  job.held_slots = outcome.slots();
  job.reason = reason::kGrown;
  job.message = fmt::format(
      "holds {} of at most {} slots, {} more than before", LiveSlots(job), job.slots, more);
  job.grown = true;
  job.placement_hash = outcome.placement_hash();
  Say(entry);
}

void QueueCore::Impl::StopVictims(const events::v1::CycleAnswered& answered) {
  const auto& outcomes = answered.outcomes();
  if (std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) {
        return outcome.victims().empty() && outcome.vacate().empty();
      })) {
    return;
  }
  scheduling::Ahead ahead;
  for (const Outcome& outcome : outcomes) {
    const Entry* entry = book_.Find(outcome.job_id());
    const bool waits =
        entry != nullptr && entry->in_line_of != nullptr && entry->job.attempt == outcome.attempt();
    if (!waits) continue;
    if (!outcome.victims().empty() || !outcome.vacate().empty()) StopFor(*entry, outcome, ahead);
    AwaitSlots(outcome);
    scheduling::AddAhead(*entry->line_owner, *entry->amounts, &ahead);
  }
}

void QueueCore::Impl::StopFor(const Entry& preemptor,
                              const Outcome& outcome,
                              const scheduling::Ahead& ahead) {
  const auto stops = preemption_.Judge(preemptor, outcome, ahead);
  if (!stops.has_value()) {
    // What has changed since it was asked for changes the choice, too.
    state_.ask_again = true;
    return;
  }
  for (const Preemption::Stop& stop : *stops) {
    if (stop.goes_on) {
      Shrink(stop);
      continue;
    }
    book_.Edit(stop.entry).requeue_is_failure = false;
    Stop(stop.entry,
         events::v1::JobFact::AFTER_STOP_REQUEUE,
         reason::kPreempted,
         stop.why,
         stop.grace_ms);
  }
}

// No message need come of them: a cycle sees to it that they are asked for again.
void QueueCore::Impl::AwaitSlots(const Outcome& outcome) {
  for (const events::v1::HeldSlots& held : outcome.vacate()) {
    const Entry* entry = book_.Find(held.key().job_id());
    if (entry == nullptr || Vacating(entry->job).empty()) continue;
    const int64_t again_ms = Preemption::AskAgainAt(entry->job);
    if (state_.due_ms == 0 || again_ms < state_.due_ms) state_.due_ms = again_ms;
  }
}

void QueueCore::Impl::Shrink(const Preemption::Stop& stop) {
  if (stop.slots.empty()) return Say(stop.entry);
  Job& job = book_.Edit(stop.entry);
  AddVacated(stop.slots, &job);
  job.grace_ms = stop.grace_ms;
  job.reason = reason::kShrinking;
  job.message = stop.why;
  Say(stop.entry);
}

}  // namespace fluxqueue::queue_core
