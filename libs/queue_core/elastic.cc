#include "libs/queue_core/elastic.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/windows.h"
#include "libs/scheduling/aging.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using events::v1::Outcome;

namespace {

// In one cycle.
constexpr size_t kMostGrowing = 128;
// A job that has had more slots than both in an attempt (the second is times its own) is stopped
// whole: each has a number of its own, which placements and rows carry along.
constexpr uint64_t kMostNumbers = 1024;
constexpr uint64_t kMostTurnover = 8;

// Slots beyond them would never have a pod.
uint32_t CompletionsLeft(const Job& job) {
  constexpr uint64_t kUnbounded = std::numeric_limits<uint32_t>::max();
  const auto completions = static_cast<uint64_t>(job.workload->completions());
  if (completions == 0) return kUnbounded;
  return static_cast<uint32_t>(
      std::min(kUnbounded, completions - std::min(completions, job.succeeded)));
}

// With which it may start.
uint32_t UsefulSlots(const Job& job) {
  return std::clamp(CompletionsLeft(job), job.min_slots, job.slots);
}

// How many more it would have while it runs. None of one that gave slots back because their pods
// had succeeded, unless it was resized, or has given back others for other jobs since; none while
// it does that.
uint32_t MoreWanted(const Job& job) {
  const bool ends = job.vacated_slots.empty() && !job.released_slots.empty();
  if (ends && !job.resized) return 0;
  if (!Vacating(job).empty()) return 0;
  const uint32_t useful = std::min<uint32_t>(job.slots, CompletionsLeft(job));
  const uint32_t live = LiveSlots(job);
  return useful > live ? useful - live : 0;
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

bool HasHadTooManySlots(const Job& job) {
  return job.held_slots > std::max(kMostNumbers, kMostTurnover * uint64_t{job.slots});
}

uint32_t SpareSlots(const Job& job) {
  const bool has_all =
      job.state == model::JobState::kBound || job.state == model::JobState::kRunning;
  if (!IsElastic(job) || !has_all || !job.workload->ignores_disruptions()) return 0;
  if (HasHadTooManySlots(job)) return 0;
  const uint32_t stays = LiveSlots(job) - static_cast<uint32_t>(Vacating(job).size());
  return stays > job.min_slots ? stays - job.min_slots : 0;
}

void Elastic::SetMostSlots(const std::vector<const Entry*>& entries,
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

bool Elastic::AllAreTried(const std::set<const Queue*>& cut, const CycleRequested& cycle) const {
  std::unordered_map<const Queue*, size_t> named;
  for (const Candidate& candidate : cycle.candidates()) {
    ++named[view_.book.Find(candidate.job_id())->in_line_of];
  }
  return std::none_of(
      view_.book.served().begin(), view_.book.served().end(), [&](const auto& served) {
        const Queue* queue = served.second;
        const bool is_cut = cut.contains(queue) || named[queue] >= DepthOf(queue->config.get());
        return is_cut && queue->line.size() > named[queue];
      });
}

Growth Elastic::AddGrowth(const std::set<const Queue*>& cut,
                          scheduling::Pass* pass,
                          CycleRequested* cycle,
                          const std::function<uint32_t(const Queue*)>& rule_of) const {
  if (view_.state.growth == Growth::kNone) return Growth::kNone;
  if (!AllAreTried(cut, *cycle)) return Growth::kAlong;
  std::vector<const Entry*> growing;
  for (const auto& [submission, entry] : view_.book.growing()) {
    const bool served = entry->counted_in->config != nullptr;
    if (served && MoreWanted(entry->job) > 0) growing.push_back(entry);
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
    const uint32_t held = LiveSlots(job);
    const uint32_t more = pass->TakeSpare(
        *entry->holder, *entry->held, job.amounts->Part(1, job.slots), MoreWanted(job));
    if (more == 0) continue;
    Candidate* candidate = cycle->add_candidates();
    candidate->set_job_id(job.id);
    candidate->set_attempt(job.attempt);
    candidate->set_rule(rule_of(entry->counted_in));
    candidate->set_grow(true);
    NameWindows(view_.state, job, candidate);
    // By the time of the answer it may ask for more than is allowed it here.
    if (held + more < job.slots || job.resized) candidate->set_most_slots(held + more);
    ++named;
  }
  return named == 0 ? Growth::kNone : view_.state.growth;
}

const Entry* Elastic::Grows(const Outcome& outcome) const {
  const Entry* entry = view_.book.Find(outcome.job_id());
  const bool wanted = entry != nullptr && entry->job.attempt == outcome.attempt() &&
                      view_.book.growing().contains(entry->job.submission) &&
                      outcome.slots() > entry->job.held_slots;
  return wanted ? entry : nullptr;
}

Growth Elastic::AfterAnswer(const events::v1::CycleAnswered& answered, uint32_t tried) const {
  const auto& candidates = view_.state.cycle->candidates();
  const auto asked = static_cast<size_t>(
      std::count_if(candidates.begin(), candidates.end(), [](const Candidate& one) {
        return one.grow() && !one.replace();
      }));
  if (asked == 0) return view_.state.growth;
  if (tried < asked) return Growth::kAlong;
  // Where the last one got some, others that were not named may, too.
  const bool goes_on =
      asked == kMostGrowing && answered.outcomes().rbegin()->kind() == Outcome::KIND_ALLOCATED;
  return goes_on ? Growth::kDue : Growth::kNone;
}

bool Elastic::IsDue() const {
  // Behind a head that was refused, and that nobody may pass, it goes along when that is tried
  // again.
  const PoolState& state = view_.state;
  return state.growth == Growth::kDue && (state.blocked_head == kNobody || view_.Backfills());
}

Growth Elastic::AfterMessage(bool somebody_left) const {
  const PoolState& state = view_.state;
  if (view_.book.growing().empty()) return Growth::kNone;
  if (state.room_changed || state.ask_again) return Growth::kDue;
  if (!somebody_left) return state.growth;
  if (view_.book.Head() == nullptr || view_.Backfills()) return Growth::kDue;
  return state.growth == Growth::kNone ? Growth::kAlong : state.growth;
}

}  // namespace fluxqueue::queue_core
