// Elastic jobs: with how many slots they may start, and when they take more.
//
// Limits let an elastic job start as soon as its least fits. What they leave beside the least of
// all who are named is given to the elastic ones in their order, as what they may start with at
// most; and what is left then to those that run.
//
// These are named behind all who wait, and only when everybody in line is named or held back by a
// limit: so growth takes nothing that somebody who waits could have. Nor does it take of a limit
// for which somebody waits. A job takes no more slots than it has completions left, as far as its
// pods were seen to succeed.
//
// Nothing is asked in vain: who was tried and got nothing is not tried again before something was
// given back, or somebody left the line.
//
// Growth that is not wanted any more, as the job is being stopped, stays with it: it is under its
// key, and is released with the rest. The binder may have read it already.
#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "libs/queue_core/attempt.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/aging.h"
#include "libs/scheduling/fair_share.h"
#include "libs/scheduling/strategy.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using events::v1::Outcome;

namespace {

// In one cycle.
constexpr size_t kMostGrowing = 128;

// Slots beyond the completions that are left would never have a pod.
uint32_t UsefulSlots(const Job& job) {
  const auto completions = static_cast<uint64_t>(job.workload->completions());
  if (completions == 0) return job.slots;
  const uint64_t left = completions > job.succeeded ? completions - job.succeeded : 0;
  return static_cast<uint32_t>(std::clamp<uint64_t>(left, job.min_slots, job.slots));
}

bool WantsMore(const Job& job) {
  return job.released_slots.empty() && SlotsOf(job) < UsefulSlots(job);
}

// The order of the line, as if it stood there.
auto OrderOf(const Entry* entry) {
  const Job& job = entry->job;
  const events::v1::QueueConfigured& config = *entry->counted_in->config;
  const int64_t rank =
      scheduling::RankOf(job.priority, std::max(job.submitted_ms, job.begin_ms), config.aging_ms());
  return std::tuple(scheduling::QueueOrder{config.priority(), config.weight(), config.queue()},
                    scheduling::OrderKey{rank, job.submission});
}

using Accounts = std::set<const scheduling::Account*>;

// For what these hold somebody waits.
Accounts WaitedFor(const scheduling::Pass& pass) {
  Accounts accounts;
  for (const scheduling::HeldJob& job : pass.held()) {
    if (job.held.kind == scheduling::Held::Kind::kAmount) accounts.insert(job.account);
  }
  return accounts;
}

bool IsAnyOf(const scheduling::Owner& owner, const Accounts& accounts) {
  for (const scheduling::Owner::Rung& rung : owner.rungs) {
    for (const scheduling::Account* account : rung.accounts) {
      if (accounts.contains(account)) return true;
    }
  }
  return false;
}

}  // namespace

void QueueCore::Impl::SetMostSlots(const std::vector<const Entry*>& entries,
                                   scheduling::Pass* pass,
                                   CycleRequested* cycle) const {
  for (size_t i = 0; i < entries.size(); ++i) {
    const Job& job = entries[i]->job;
    if (!IsElastic(job)) continue;
    const uint32_t more = UsefulSlots(job) - job.min_slots;
    const uint32_t most = job.min_slots + pass->TakeSpare(*entries[i]->line_owner,
                                                          *entries[i]->amounts,
                                                          job.amounts->Part(1, job.slots),
                                                          more);
    if (most == job.slots) continue;
    cycle->mutable_candidates(static_cast<int>(i))->set_most_slots(most);
  }
}

bool QueueCore::Impl::AllAreTried(const std::set<const Queue*>& cut,
                                  const CycleRequested& cycle) const {
  std::unordered_map<const Queue*, size_t> named;
  for (const Candidate& candidate : cycle.candidates()) {
    ++named[book_.Find(candidate.job_id())->in_line_of];
  }
  return std::none_of(book_.served().begin(), book_.served().end(), [&](const auto& served) {
    const Queue* queue = served.second;
    const bool is_cut = cut.contains(queue) || named[queue] >= DepthOf(queue->config.get());
    return is_cut && queue->line.size() > named[queue];
  });
}

void QueueCore::Impl::AddGrowth(const std::set<const Queue*>& cut,
                                scheduling::Pass* pass,
                                CycleRequested* cycle,
                                const std::function<uint32_t(const Queue*)>& rule_of) {
  if (state_.growth == Growth::kNone) return;
  if (!AllAreTried(cut, *cycle)) {
    state_.growth = Growth::kAlong;
    return;
  }
  std::vector<const Entry*> growing;
  for (const auto& [submission, entry] : book_.growing()) {
    const bool served = entry->counted_in->config != nullptr;
    if (served && WantsMore(entry->job)) growing.push_back(entry);
  }
  std::sort(growing.begin(), growing.end(), [](const Entry* a, const Entry* b) {
    return OrderOf(a) < OrderOf(b);
  });
  const Accounts waited_for = WaitedFor(*pass);
  size_t named = 0;
  for (const Entry* entry : growing) {
    const Job& job = entry->job;
    if (named == kMostGrowing) break;
    if (IsAnyOf(*entry->holder, waited_for)) continue;
    const uint32_t held = SlotsOf(job);
    const uint32_t more = pass->TakeSpare(
        *entry->holder, *entry->held, job.amounts->Part(1, job.slots), UsefulSlots(job) - held);
    if (more == 0) continue;
    Candidate* candidate = cycle->add_candidates();
    candidate->set_job_id(job.id);
    candidate->set_attempt(job.attempt);
    candidate->set_rule(rule_of(entry->counted_in));
    candidate->set_grow(true);
    NameWindows(job, candidate);
    if (held + more < job.slots) candidate->set_most_slots(held + more);
    ++named;
  }
  if (named == 0) state_.growth = Growth::kNone;
}

void QueueCore::Impl::JudgeGrowth(const Outcome& outcome) {
  if (outcome.kind() != Outcome::KIND_ALLOCATED) return;
  Entry* entry = book_.Find(outcome.job_id());
  const bool wanted = entry != nullptr && entry->job.attempt == outcome.attempt() &&
                      book_.growing().contains(entry->job.submission) &&
                      outcome.slots() > entry->job.held_slots;
  if (!wanted) {
    ++out_->stale;
    return;
  }
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

void QueueCore::Impl::CloseGrowth(const events::v1::CycleAnswered& answered, uint32_t tried) {
  const auto& candidates = state_.cycle->candidates();
  const auto asked = static_cast<size_t>(std::count_if(
      candidates.begin(), candidates.end(), [](const Candidate& one) { return one.grow(); }));
  if (asked == 0) return;
  if (tried < asked) {
    state_.growth = Growth::kAlong;
    return;
  }
  // Where the last one got some, others that were not named may, too.
  const bool goes_on =
      asked == kMostGrowing && answered.outcomes().rbegin()->kind() == Outcome::KIND_ALLOCATED;
  state_.growth = goes_on ? Growth::kDue : Growth::kNone;
}

bool QueueCore::Impl::IsGrowthDue() const {
  // Behind a head that was refused, and that nobody may pass, it goes along when that is tried
  // again.
  return state_.growth == Growth::kDue && (state_.blocked_head == kNobody || Backfills());
}

void QueueCore::Impl::FollowGrowth(bool somebody_left) {
  if (book_.growing().empty()) {
    state_.growth = Growth::kNone;
  } else if (state_.room_changed || state_.ask_again ||
             (somebody_left && (book_.Head() == nullptr || Backfills()))) {
    state_.growth = Growth::kDue;
  } else if (somebody_left && state_.growth == Growth::kNone) {
    state_.growth = Growth::kAlong;
  }
}

}  // namespace fluxqueue::queue_core
