// When the matcher is asked; cycle_plan.h says of whom, answers.cc what its answers mean.
//
// The naive way is to ask for everything that waits whenever anything happens. Departures:
// - One cycle is in flight; what happens meanwhile is in the next one. The matcher has read
//   everything before the request, so an answer is right for the log up to there.
// - When the head of the line was refused and nothing that could help it was read since, nothing is
//   asked. What the matcher said between request and answer does not count: it said it before it
//   answered, so the answer knows.
//   Where jobs may pass the head, whoever comes into line is reason enough.
// - A cycle whose answer cannot be kept is abandoned. Any of its candidates may be why: these are
//   tried apart from all others, half as many at a time, until one stands alone. It is set aside.
// - When limits hold everybody, nobody is asked for, and nobody looked at, until something changes.
// - The window (libs/scheduling/candidate_window.h) keeps a cycle as large as the pool has use for.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "libs/model/rules.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/cycle_size.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/candidate_window.h"
#include "libs/scheduling/fair_share.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using model::JobState;
using scheduling::Pass;

namespace {

// A reservation that comes due and is put off, as others run longer than planned, is looked at
// again after this time.
constexpr int64_t kOverdueIntervalMs = 10'000;
// The only candidate of a cycle that was abandoned is tried again after this time.
constexpr int64_t kAbandonedIntervalMs = 600'000;
// A job that has lost slots, after an abandoned cycle that named it.
constexpr int64_t kReplaceAgainMs = 10'000;

// Null: all of them hold something, and would have more.
const Candidate* FirstInLine(const CycleRequested& cycle) {
  const auto first = std::find_if(cycle.candidates().begin(),
                                  cycle.candidates().end(),
                                  [](const Candidate& one) { return !one.grow(); });
  return first == cycle.candidates().end() ? nullptr : &*first;
}

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

void QueueCore::Impl::CloseCycle(const CycleResult& result) {
  MarkCandidates(false);
  const auto cycle = std::exchange(state_.cycle, nullptr);
  cycles_answered_.push_back(cycle->cycle_id());
  // What came free meanwhile may be of use to one that an earlier cycle named.
  if (state_.room_changed && state_.replace_after != 0) LookForOtherSlots();
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
    const Candidate* first = FirstInLine(*cycle);
    const bool ignored = !result.progressed && result.refused.empty() && first != nullptr &&
                         first->job_id() == head->job.id;
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

void QueueCore::Impl::AbandonCycle(uint64_t cycle_id) {
  if (state_.cycle == nullptr || state_.cycle->cycle_id() != cycle_id) {
    ++out_->stale;
    return;
  }
  const std::shared_ptr<const CycleRequested> cycle = state_.cycle;
  CycleResult nobody;
  nobody.rules.resize(static_cast<size_t>(cycle->rules_size()) + 1);
  nobody.tried.resize(static_cast<size_t>(cycle->candidates_size()));
  CloseCycle(nobody);
  state_.growth = Growth::kNone;
  std::vector<Entry*> waiting;
  uint32_t named = 0;
  for (const Candidate& candidate : cycle->candidates()) {
    if (candidate.grow()) {
      // It may have grown. What it holds is said when it is asked for again, along with others: by
      // itself it could be what nobody can handle.
      if (candidate.replace()) {
        state_.replace_paused_ms = state_.now_ms + kReplaceAgainMs;
        LookForOtherSlots();
      } else {
        state_.growth = Growth::kAlong;
      }
      continue;
    }
    ++named;
    Entry* entry = book_.Find(candidate.job_id());
    const bool waits = entry != nullptr && entry->job.attempt == candidate.attempt() &&
                       model::kWaitingStates.Has(entry->job.state);
    // The matcher may have given it what the answer says.
    if (waits) {
      Release(entry->job, /*job_ended=*/false);
      waiting.push_back(entry);
    } else {
      ReleaseUnwanted(candidate.job_id(), candidate.attempt(), candidate.part());
    }
  }
  // What is tried next are a few of many, so nothing that was planned holds.
  for (const std::string& id : promised_) {
    promised_left_out_.push_back(id);
    Entry* entry = book_.Find(id);
    if (entry != nullptr && IsPromised(entry->job)) {
      WithdrawPromise(entry, Promises::AfterAbandonedCycle());
    }
  }
  promised_.clear();
  if (named == 0) return;
  std::vector<std::string> suspects;
  if (state_.suspects != nullptr) {
    suspects = *state_.suspects;
  } else {
    for (const Entry* entry : waiting) suspects.push_back(entry->job.id);
  }
  if (named == 1) {
    std::erase(suspects, FirstInLine(*cycle)->job_id());
    if (!waiting.empty()) SetAbandonedAside(waiting.front());
  }
  SetSuspects(std::move(suspects), std::max(1U, named / 2));
  state_.ask_again = true;
}

void QueueCore::Impl::SetSuspects(std::vector<std::string> suspects, uint32_t at_once) {
  state_.suspects = suspects.empty()
                        ? nullptr
                        : std::make_shared<const std::vector<std::string>>(std::move(suspects));
  state_.suspects_at_once = state_.suspects == nullptr ? 0 : at_once;
}

void QueueCore::Impl::ClearSuspects(const CycleRequested& cycle, const CycleResult& result) {
  if (state_.suspects == nullptr) return;
  std::set<std::string_view> cleared;
  for (const Candidate& candidate : cycle.candidates()) cleared.insert(candidate.job_id());
  // Whoever may not pass those that were refused is tried behind them.
  std::set<std::string_view> stopped;
  for (int i = 0; i < cycle.rules_size(); ++i) {
    const bool stops = cycle.rules(i).stop_at_first_blocked();
    if (stops && result.rules[static_cast<size_t>(i)].refused > 0) {
      stopped.insert(cycle.rules(i).queue());
    }
  }
  std::vector<std::string> suspects = *state_.suspects;
  std::erase_if(suspects, [&](const std::string& id) {
    const Entry* entry = book_.Find(id);
    return entry == nullptr || cleared.contains(id) || stopped.contains(entry->job.queue);
  });
  SetSuspects(std::move(suspects), 2 * state_.suspects_at_once);
  state_.ask_again = true;
}

void QueueCore::Impl::SetAbandonedAside(Entry* entry) {
  if (entry->in_line_of == nullptr) return;
  if (IsPromised(entry->job)) slip_.set_cause(events::v1::Slip::CAUSE_COMMAND);
  Job& job = book_.Edit(entry);
  job.not_before_ms = state_.now_ms + kAbandonedIntervalMs;
  job.first_ms = 0;
  job.start_ms = 0;
  job.unsatisfiable_since_ms = 0;
  Place(entry);
  SetWaiting(job,
             reason::kRetry,
             fmt::format("the matcher's answer to it could not be kept; it is tried again in {} s",
                         kAbandonedIntervalMs / 1000));
  Say(entry);
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
  const bool replaces = replacement_.IsDue();
  if (book_.Head() == nullptr) {
    state_.due_ms = 0;
    state_.limits_due_ms = 0;
    return replaces || state_.growth != Growth::kNone;
  }
  if (replaces || state_.room_changed || state_.ask_again || state_.blocked_head == 0) return true;
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
  if (state_.cycle == nullptr && (state_.room_changed || state_.ask_again)) {
    if (!book_.replacing().empty()) LookForOtherSlots();
  }
  if (state_.cycle != nullptr || !IsCycleDue(somebody_left)) return;
  state_.line_changed = false;
  state_.ask_again = false;
  auto cycle = std::make_shared<CycleRequested>();
  ChooseCandidates(cycle.get());
  Fit(cycle.get());
  NoteReplacing(*cycle);
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

void QueueCore::Impl::AskCycleAs(uint64_t id) {
  auto cycle = std::make_shared<CycleRequested>(*state_.cycle);
  cycles_answered_.push_back(cycle->cycle_id());
  cycle->set_cycle_id(id);
  state_.last_cycle_id = id;
  state_.cycle = std::move(cycle);
  cycles_requested_.push_back({id, state_.cycle->SerializeAsString()});
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
