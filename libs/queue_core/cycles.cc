// What is asked of the matcher, and what its answers mean.
//
// The naive way is to ask for everything that waits whenever anything happens. Departures:
// - One cycle is in flight; what happens meanwhile is in the next one. The matcher has read
// everything
//   before the request, so an answer is right for the log up to there.
// - When the head of the line was refused and nothing that could help it was read since, nothing is
//   asked. What the matcher said between request and answer does not count: it said it before it
//   answered, so the answer knows.
//   Where jobs may pass the head, whoever comes into line is reason enough.
// - When limits hold everybody, nobody is asked for, and nobody looked at, until something changes.
// - The window (libs/scheduling/candidate_window.h) keeps a cycle as large as the pool has use for.
#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/candidate_window.h"
#include "libs/scheduling/fair_share.h"

namespace fluxqueue::queue_core {

using events::v1::CycleRequested;
using events::v1::Outcome;
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
// Who was refused is tried again after this time where the order changes by time alone.
constexpr int64_t kOrderIntervalMs = 60'000;

// It was told when it starts.
bool IsPromised(const Job& job) {
  return job.reason == reason::kReserved && job.start_ms != 0;
}

}  // namespace

void QueueCore::Impl::OnAnswered(const events::v1::CycleAnswered& answered) {
  if (state_.cycle == nullptr || answered.cycle_id() != state_.cycle->cycle_id()) {
    ++out_->stale;
    return;
  }
  answered_ = &answered;
  uint32_t allocated = 0;
  bool progressed = false;
  std::vector<uint64_t> refused;  // by submission
  for (int i = 0; i < answered.outcomes_size(); ++i) {
    const Outcome& outcome = answered.outcomes(i);
    if (i < state_.cycle->candidates_size() && state_.cycle->candidates(i).grow()) {
      JudgeGrowth(outcome);
      continue;
    }
    const Course course = JudgeOutcome(outcome, refused.size());
    if (course == Course::kAllocated) ++allocated;
    if (course == Course::kRefused) {
      refused.push_back(book_.Find(outcome.job_id())->job.submission);
    } else {
      progressed = true;
    }
  }
  WithdrawPromises();
  CloseGrowth(answered);
  CloseCycle(allocated, progressed, refused);
  StopVictims(answered);
  // It has looked who is first now.
  book_.TakeLeft();
  answered_ = nullptr;
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
  if (IsPromised(job)) Time(Timing::Kind::kSlip, job, job.start_ms);
  job.state = JobState::kAllocated;
  job.reason = ahead > 0 ? reason::kBackfilled : "";
  job.message =
      ahead > 0 ? fmt::format("starts before {} that stand ahead of it and wait", ahead) : "";
  job.placement_hash = outcome.placement_hash();
  job.not_before_ms = 0;
  job.unsatisfiable_since_ms = 0;
  job.start_ms = 0;
  job.in_cycle = false;
  if (IsElastic(job)) job.held_slots = outcome.slots() == 0 ? job.slots : outcome.slots();
  Say(entry);
  if (IsClaim(job)) StartClaim(entry);
}

void QueueCore::Impl::Refuse(Entry* entry, const char* reason, const Outcome& outcome) {
  const Job& known = entry->job;
  if (known.unsatisfiable_since_ms != 0) book_.Edit(entry).unsatisfiable_since_ms = 0;
  const bool other_words = known.message != outcome.reason() || known.start_ms != 0;
  const bool due = state_.now_ms - known.updated_ms >= kSentenceIntervalMs;
  if (known.reason == reason && !(other_words && due)) return;
  std::string message = outcome.reason();
  if (known.reason == reason::kReserved) {
    message = fmt::format(
        "its promised start is withdrawn: {}; {}", WhyLater(known, *answered_), message);
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
  if (promised && !(due && later_ms != 0) && later_ms < kMuchLaterMs) return;
  Job& job = book_.Edit(entry);
  job.unsatisfiable_since_ms = 0;
  job.message = outcome.reason();
  if (later_ms > 0) {
    Time(Timing::Kind::kSlip, job, state_.now_ms - later_ms);
    job.message = fmt::format(
        "starts {} s later than it was told: {}", later_ms / 1000, WhyLater(job, *answered_));
  }
  job.reason = reason::kReserved;
  job.start_ms = start_ms;
  Say(entry);
}

std::string QueueCore::Impl::WhyLater(const Job& job,
                                      const events::v1::CycleAnswered& answered) const {
  if (!state_.lost_node.empty()) return fmt::format("node {} was lost", state_.lost_node);
  if (!state_.window_set.empty()) return fmt::format("window {} was set", state_.window_set);
  for (const events::v1::Candidate& candidate : state_.cycle->candidates()) {
    if (candidate.job_id() == job.id) break;
    const Entry* other = book_.Find(candidate.job_id());
    if (other == nullptr || other->job.submission < job.submission) continue;
    // It has come since the promise was said, or has a better right. One that stood ahead of it
    // then (users take turns) is no reason.
    const bool has_come = other->job.submitted_ms >= job.updated_ms;
    if (has_come || other->job.priority > job.priority) {
      return fmt::format("job {} goes before it", other->job.workload->name());
    }
  }
  if (answered.overran() > 0) {
    const Entry* other = book_.Find(answered.overran_job());
    return fmt::format("job {} has not ended in its time",
                       other == nullptr ? answered.overran_job() : other->job.workload->name());
  }
  return "the plan was made anew";
}

// Who was not tried has nothing reserved any more.
void QueueCore::Impl::WithdrawPromises() {
  for (auto next = promised_.begin(); next != promised_.end();) {
    Entry* entry = book_.Find(*next);
    const bool promised = entry != nullptr && entry->job.reason == reason::kReserved;
    if (promised && entry->job.in_cycle) {
      ++next;
      continue;
    }
    promised_left_out_.push_back(*next);
    next = promised_.erase(next);
    if (!promised) continue;
    Job& job = book_.Edit(entry);
    job.message =
        fmt::format("its promised start is withdrawn: {}", WhyLater(entry->job, *answered_));
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
  const int64_t until = job.unsatisfiable_since_ms + config().unsatisfiable_grace_ms();
  if (state_.now_ms >= until) {
    End(entry, JobState::kRejected, reason::kUnsatisfiable, outcome.reason());
    return Course::kMoved;
  }
  // Set aside until then, so that it holds up nobody who can be served. More nodes bring it back.
  job.not_before_ms = until;
  Place(entry);
  if (job.reason != reason::kUnsatisfiable) {
    job.reason = reason::kUnsatisfiable;
    job.message = fmt::format("{}; rejected unless that changes within {:.1f} s",
                              outcome.reason(),
                              static_cast<double>(until - state_.now_ms) / 1000);
    Say(entry);
  }
  return Course::kMoved;
}

void QueueCore::Impl::CloseCycle(uint32_t allocated,
                                 bool progressed,
                                 const std::vector<uint64_t>& refused) {
  MarkCandidates(false);
  const auto cycle = std::exchange(state_.cycle, nullptr);
  cycles_answered_.push_back(cycle->cycle_id());
  state_.room_changed = false;
  state_.blocked_head = 0;
  state_.lost_node.clear();
  if (!state_.ask_again) state_.window_set.clear();
  if (state_.due_ms != 0 && state_.due_ms <= state_.now_ms + 1000) {
    state_.due_ms = state_.now_ms + kOverdueIntervalMs;
  }

  if (!refused.empty()) LookAgainInTime();

  const Entry* head = FirstToTry();
  if (head != nullptr) {
    const uint64_t submission = head->job.submission;
    // An answer that says nothing about anybody does not help its first candidate either.
    const bool ignored =
        !progressed && refused.empty() && cycle->candidates(0).job_id() == head->job.id;
    // Where others are tried before the head of the line (adaptive), it may not have been reached.
    // The same again would change nothing, and whoever comes is reason enough for a cycle.
    const bool in_vain = !progressed && Backfills();
    if (ignored || in_vain ||
        std::find(refused.begin(), refused.end(), submission) != refused.end()) {
      state_.blocked_head = submission;
    }
    const auto in_line = std::count_if(cycle->candidates().begin(),
                                       cycle->candidates().end(),
                                       [](const auto& candidate) { return !candidate.grow(); });
    const scheduling::CycleResult result{.named = static_cast<uint32_t>(in_line),
                                         .allocated = allocated,
                                         .blocked = !refused.empty()};
    const uint32_t depth = DepthOf(head->in_line_of->config.get());
    state_.window = scheduling::NextWindow(state_.window, depth, result);
  }
}

// An order that changes by time alone may put somebody first whom there is room for.
void QueueCore::Impl::LookAgainInTime() {
  for (const auto& [order, queue] : book_.served()) {
    const events::v1::QueueConfigured& config = *queue->config;
    const bool ages = config.order() == "fair-share" || config.aging_ms() > 0;
    // Where there is a reservation, its time comes.
    const bool passes = adaptive_.Find(queue->name) != nullptr && state_.due_ms == 0;
    if (queue->line.empty() || !(ages || passes)) continue;
    const int64_t then = state_.now_ms + kOrderIntervalMs;
    if (state_.due_ms == 0 || then < state_.due_ms) state_.due_ms = then;
  }
}

bool QueueCore::Impl::IsCycleDue(bool somebody_left) {
  if (book_.Head() == nullptr) {
    state_.due_ms = 0;
    state_.limits_due_ms = 0;
    return state_.growth != Growth::kNone;
  }
  if (state_.room_changed || state_.ask_again || state_.blocked_head == 0) return true;
  if (IsGrowthDue()) return true;
  if (!state_.line_changed && !somebody_left) return false;
  if (state_.line_changed && Backfills()) return true;
  state_.line_changed = false;
  // Whoever has come, and is held back like all before, is told by what.
  Pass pass(&book_.tree(), PassNow());
  const auto* head = static_cast<const Entry*>(pass.Next());
  SayHeldBack(pass.held());
  return head != nullptr && head->job.submission != state_.blocked_head;
}

void QueueCore::Impl::BeginCycle() {
  const bool somebody_left = book_.TakeLeft();
  // Nobody waits for a limit to let go.
  if (book_.Head() == nullptr) state_.limits_due_ms = 0;
  FollowGrowth(somebody_left);
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
  cycle->set_now_s((state_.now_ms - state_.beginning_ms) / 1000);
  cycle->set_corrects_plans(CorrectsPlans());
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
