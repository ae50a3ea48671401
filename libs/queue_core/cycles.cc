// When the matcher is asked (cycle_plan.h: of whom), and what its answers mean.
//
// The naive way is to ask for everything that waits whenever anything happens. Departures:
// - One cycle is in flight; what happens meanwhile is in the next one. The matcher has read
//   everything before the request, so an answer is right for the log up to there.
// - When the head of the line was refused and nothing that could help it was read since, nothing is
//   asked. What the matcher said between request and answer does not count: it said it before it
//   answered, so the answer knows.
//   Where jobs may pass the head, whoever comes into line is reason enough.
// - When limits hold everybody, nobody is asked for, and nobody looked at, until something changes.
// - The window (libs/scheduling/candidate_window.h) keeps a cycle as large as the pool has use for.
#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/model/rules.h"
#include "libs/queue_core/attempt.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/candidate_window.h"
#include "libs/scheduling/fair_share.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using events::v1::Outcome;
using events::v1::Slip;
using model::JobState;
using scheduling::Pass;

namespace {

// A refusal in other words (other numbers) is worth a fact this long after the last.
constexpr int64_t kSentenceIntervalMs = 10'000;
// A start that is so much later than it was told is.
constexpr int64_t kMuchLaterMs = 60'000;
// A reservation that comes due and is put off, as others run longer than planned, is looked at
// again after this time.
constexpr int64_t kOverdueIntervalMs = 10'000;
// What nothing here can run is looked at again after this time, should no change of the inventory
// have brought it back.
constexpr int64_t kUnsatisfiableIntervalMs = 600'000;

}  // namespace

uint32_t QueueCore::Impl::CycleResult::Named(bool is_independent) const {
  uint32_t most = 0;
  uint32_t all = 0;
  for (const RuleResult& rule : rules) {
    most = std::max(most, rule.named);
    all += rule.named;
  }
  return is_independent ? most : all;
}

void QueueCore::Impl::OnAnswered(const events::v1::CycleAnswered& answered) {
  if (state_.cycle == nullptr || answered.cycle_id() != state_.cycle->cycle_id()) {
    ++out_->stale;
    return;
  }
  answered_ = &answered;
  const CycleResult result = JudgeOutcomes(answered);
  if (view_.IsIndependent()) NoteFirst(*state_.cycle, result);
  WithdrawPromises(result);
  state_.growth = elastic_.AfterAnswer(answered, result.grown);
  CloseCycle(result);
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
    if (outcome.kind() == Outcome::KIND_ALLOCATED) ReleaseUnwanted(outcome);
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

void QueueCore::Impl::ReleaseUnwanted(const Outcome& outcome) {
  // An ended job's last release was asked for after the cycle, so it covers this allocation too.
  if (book_.EndedAttempt(outcome.job_id()) == outcome.attempt()) return;
  // What a job holds now was allocated by an earlier cycle, and is not given away.
  const Entry* entry = book_.Find(outcome.job_id());
  if (entry != nullptr && outcome.attempt() >= entry->job.attempt) return;
  events::v1::ReleaseRequested* release = ToPool()->mutable_release_requested();
  release->mutable_key()->set_job_id(outcome.job_id());
  release->mutable_key()->set_attempt(outcome.attempt());
  release->mutable_key()->set_part(outcome.part());
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
    message =
        fmt::format("its promised start is withdrawn: {}; {}", promises_.Sentence(slip_), message);
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
        "starts {} s later than it was told: {}", later_ms / 1000, promises_.Sentence(slip_));
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
    Job& job = book_.Edit(entry);
    slip_ = promises_.WhyNotNamed(*entry, *answered_);
    job.message = fmt::format("its promised start is withdrawn: {}", promises_.Sentence(slip_));
    job.reason = reason::kQueued;
    job.start_ms = 0;
    Say(entry);
  }
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
  if (outcome.kind() != Outcome::KIND_ALLOCATED) return;
  if (elastic_.Grows(outcome) == nullptr) {
    ++out_->stale;
    return;
  }
  Entry* entry = book_.Find(outcome.job_id());
  Job& job = book_.Edit(entry);
  job.reason = reason::kGrown;
  job.message = fmt::format("holds {} of at most {} slots, {} more than before",
                            outcome.slots(),
                            job.slots,
                            outcome.slots() - job.held_slots);
  CountMoreSlots(job, outcome.slots() - job.held_slots, state_.now_ms);
  job.held_slots = outcome.slots();
  job.grown = true;
  job.placement_hash = outcome.placement_hash();
  Say(entry);
}

void QueueCore::Impl::StopVictims(const events::v1::CycleAnswered& answered) {
  const auto& outcomes = answered.outcomes();
  if (std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) {
        return outcome.victims().empty();
      })) {
    return;
  }
  scheduling::Ahead ahead;
  for (const Outcome& outcome : outcomes) {
    const Entry* entry = book_.Find(outcome.job_id());
    const bool waits =
        entry != nullptr && entry->in_line_of != nullptr && entry->job.attempt == outcome.attempt();
    if (!waits) continue;
    if (!outcome.victims().empty()) StopFor(*entry, outcome, ahead);
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
    Job& job = book_.Edit(stop.entry);
    job.grace_ms = stop.grace_ms;
    job.requeue_is_failure = false;
    Stop(stop.entry, events::v1::JobFact::AFTER_STOP_REQUEUE, reason::kPreempted, stop.why);
  }
}

void QueueCore::Impl::CloseCycle(const CycleResult& result) {
  MarkCandidates(false);
  const auto cycle = std::exchange(state_.cycle, nullptr);
  cycles_answered_.push_back(cycle->cycle_id());
  state_.room_changed = false;
  state_.blocked_head = 0;
  state_.lost_node.clear();
  if (!state_.ask_again) state_.window_set.clear();
  // By older rules what overran was planned to end in a second, again and again.
  const int64_t next_ms = state_.now_ms + (view_.CorrectsPlans() ? 0 : 1000);
  if (state_.due_ms != 0 && state_.due_ms <= next_ms) {
    state_.due_ms = state_.now_ms + kOverdueIntervalMs;
  }

  if (!result.refused.empty()) state_.due_ms = planner_.LookAgainAt(*cycle, state_.due_ms);

  const Entry* head = FirstToTry();
  if (head != nullptr) {
    const uint64_t submission = head->job.submission;
    // An answer that says nothing about anybody does not help its first candidate either.
    const bool ignored = !result.progressed && result.refused.empty() &&
                         cycle->candidates(0).job_id() == head->job.id;
    // Where others are tried before the head of the line (adaptive), it may not have been reached.
    // The same again would change nothing, and whoever comes is reason enough for a cycle.
    const bool in_vain = !result.progressed && (view_.Backfills() || view_.HasSeveralLines());
    const auto& refused = result.refused;
    if (ignored || in_vain ||
        std::find(refused.begin(), refused.end(), submission) != refused.end()) {
      state_.blocked_head = submission;
    }
    if (SomeQueueGoesOn(*cycle, result)) state_.blocked_head = 0;
    uint32_t depth = DepthOf(head->in_line_of->config.get());
    if (view_.IsIndependent()) {
      for (const auto& [order, queue] : book_.served()) {
        if (!queue->line.empty()) depth = std::max(depth, DepthOf(queue->config.get()));
      }
    }
    state_.window = scheduling::NextWindow(state_.window,
                                           depth,
                                           {.named = result.Named(view_.IsIndependent()),
                                            .allocated = result.allocated,
                                            .blocked = !refused.empty()});
  }
}

bool QueueCore::Impl::SomeQueueGoesOn(const CycleRequested& cycle,
                                      const CycleResult& result) const {
  if (!view_.IsIndependent()) return false;
  for (int i = 0; i < cycle.rules_size(); ++i) {
    const RuleResult& rule = result.rules[static_cast<size_t>(i)];
    if (rule.named == 0 || rule.tried < rule.named || rule.refused > 0) continue;
    const auto queue = book_.queues().find(cycle.rules(i).queue());
    if (queue != book_.queues().end() && !queue->second->line.empty()) return true;
  }
  return false;
}

bool QueueCore::Impl::IsCycleDue(bool somebody_left) {
  if (book_.Head() == nullptr) {
    state_.due_ms = 0;
    state_.limits_due_ms = 0;
    return state_.growth != Growth::kNone;
  }
  if (state_.room_changed || state_.ask_again || state_.blocked_head == 0) return true;
  if (elastic_.IsDue()) return true;
  if (!state_.line_changed && !somebody_left) return false;
  if (view_.HasSeveralLines() || (state_.line_changed && view_.Backfills())) return true;
  state_.line_changed = false;
  // Whoever has come, and is held back like all before, is told by what.
  Pass pass(&book_.tree(), view_.PassNow());
  const auto* head = static_cast<const Entry*>(pass.Next());
  SayHeldBack(pass.held());
  return head != nullptr && head->job.submission != state_.blocked_head;
}

void QueueCore::Impl::BeginCycle() {
  const bool somebody_left = book_.TakeLeft();
  // Nobody waits for a limit to let go.
  if (book_.Head() == nullptr) state_.limits_due_ms = 0;
  state_.growth = elastic_.AfterMessage(somebody_left);
  if (state_.cycle != nullptr || !IsCycleDue(somebody_left)) return;
  state_.line_changed = false;
  state_.ask_again = false;
  auto cycle = std::make_shared<CycleRequested>();
  ChooseCandidates(cycle.get());
  if (cycle->candidates().empty()) {
    // Limits hold all that wait: until the line changes, somebody gives something back, or time
    // lets go.
    state_.blocked_head = kNobody;
    state_.room_changed = false;
    return;
  }
  state_.due_ms = 0;
  cycle->set_cycle_id(++state_.last_cycle_id);
  if (view_.IsIndependent()) {
    cycle->set_version(config().rules() == 0 ? model::kLatestRules : config().rules());
  }
  cycle->set_now_s((state_.now_ms - state_.beginning_ms) / 1000);
  state_.cycle = std::move(cycle);
  MarkCandidates(true);
  cycles_requested_.push_back({state_.last_cycle_id, state_.cycle->SerializeAsString()});
  AskCycle();
}

void QueueCore::Impl::AskCycle() {
  state_.cycle_asked_ms = state_.now_ms;
  *ToPool()->mutable_cycle_requested() = *state_.cycle;
}

void QueueCore::Impl::MarkCandidates(bool marked) {
  if (state_.cycle == nullptr) return;
  for (const events::v1::Candidate& candidate : state_.cycle->candidates()) {
    Entry* entry = book_.Find(candidate.job_id());
    if (entry == nullptr) continue;
    Job& job = entry->job;
    job.in_cycle = marked && job.state == JobState::kPending && job.attempt == candidate.attempt();
  }
}

}  // namespace fluxqueue::queue_core
