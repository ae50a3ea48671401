// Who is tried in a cycle, in which order and how: one pass over all that wait
// (libs/scheduling/fair_share.h), each gone about by the rule of its queue's strategy; and who is
// not tried, because a limit holds it back.
#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/base/check.h"
#include "libs/model/rules.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/candidate_window.h"
#include "libs/scheduling/queue_tree.h"
#include "libs/scheduling/strategy.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using scheduling::HeldJob;
using scheduling::Pass;

namespace {

// The same word in another sentence is worth a fact this long after the last.
constexpr int64_t kSentenceIntervalMs = 10'000;

const scheduling::Strategy& StrategyOf(const Queue& queue) {
  return *scheduling::FindStrategy(queue.config->strategy());
}

// Rounded up.
int64_t SecondsOf(int64_t ms) {
  return ms / 1000 + (ms % 1000 > 0 ? 1 : 0);
}

// Since when it has been the first of its queue; of equals the one that came first.
std::pair<int64_t, uint64_t> FirstSince(const Entry& entry) {
  return {entry.job.first_ms, entry.job.submission};
}

// Of one queue: its rule in the cycle.
struct Group {
  uint32_t rule = 0;
  uint32_t reservations = 0;
  uint32_t named = 0;
};
using Groups = std::unordered_map<const Queue*, Group>;

Group& GroupOf(const Queue* queue, bool is_independent, Groups* groups, CycleRequested* cycle) {
  const auto [it, made] = groups->try_emplace(queue);
  Group& group = it->second;
  if (!made) return group;
  const scheduling::Strategy& strategy = StrategyOf(*queue);
  group.rule = static_cast<uint32_t>(cycle->rules_size());
  group.reservations = strategy.Reservations(queue->config->reservation_depth());
  CycleRequested::Rule* rule = cycle->add_rules();
  rule->set_stop_at_first_blocked(strategy.stops_at_first_blocked);
  rule->set_most_reservations(group.reservations);
  rule->set_plans_anew(strategy.is_adaptive);
  if (is_independent) rule->set_queue(queue->name);
  return group;
}

}  // namespace

bool QueueCore::Impl::HasAccounts() const {
  return model::HasRules(config().rules(), model::kAccounts);
}

scheduling::PassOptions QueueCore::Impl::PassNow() const {
  scheduling::PassOptions options = {
      .now_ms = state_.now_ms,
      .beginning_ms = state_.beginning_ms,
      .capacity = state_.capacity == nullptr ? scheduling::Resources() : *state_.capacity,
      .guarantees_all = !IsIndependent(),
      .has_accounts = HasAccounts()};
  for (const auto& billing : config().billing()) {
    const std::string_view shared =
        scheduling::SharedName(scheduling::SharedIndex(billing.resource()));
    options.billing.emplace(shared.empty() ? billing.resource() : std::string(shared),
                            static_cast<double>(billing.weight_milli()) / 1000);
  }
  return options;
}

const Entry* QueueCore::Impl::FirstToTry() {
  if (book_.Head() == nullptr) return nullptr;
  Pass pass(&book_.tree(), PassNow());
  return static_cast<const Entry*>(pass.Next());
}

std::unordered_set<const Entry*> QueueCore::Impl::PreferAdaptive(Pass* pass) {
  std::unordered_set<const Entry*> passers;
  if (adaptive_.empty()) return passers;
  const scheduling::PassOptions now = PassNow();
  int64_t used = 0;
  for (const auto& [name, node] : book_.tree().nodes()) {
    if (node->parent == nullptr) used += scheduling::SizeOf(node->total.held, now.capacity);
  }
  for (const auto& [order, queue] : book_.served()) {
    scheduling::Adaptive* rule = adaptive_.Find(queue->name);
    if (rule == nullptr || queue->line.empty()) continue;
    const scheduling::Adaptive::Choice choice =
        rule->Choose(now.now_ms, scheduling::kWholePool - used, DepthOf(queue->config.get()));
    std::vector<Pass::Preferred> preferred;
    const auto prefer = [&preferred, queue = queue](scheduling::OrderKey key) {
      Entry* entry = queue->line.Find(key);
      CHECK(entry != nullptr, "submission {} is in no line", key.submission);
      preferred.push_back({entry->line_owner, entry});
      return entry;
    };
    for (const scheduling::OrderKey key : choice.passers) passers.insert(prefer(key));
    for (const scheduling::OrderKey key : choice.pinned) {
      if (passers.count(queue->line.Find(key)) == 0) prefer(key);
    }
    pass->Prefer(queue->name, std::move(preferred));
  }
  return passers;
}

void QueueCore::Impl::ChooseCandidates(CycleRequested* cycle) {
  Pass pass(&book_.tree(), PassNow());
  const std::unordered_set<const Entry*> passers = PreferAdaptive(&pass);
  std::vector<const Entry*> entries;
  Groups groups;
  std::set<const Queue*> cut;
  const bool is_independent = IsIndependent();
  uint32_t limit = 0;
  while (const auto* entry = static_cast<const Entry*>(pass.Next())) {
    const Queue* queue = entry->in_line_of;
    if (entries.empty() || is_independent) {
      limit = scheduling::CandidateLimit(state_.window, DepthOf(queue->config.get()));
    }
    Group& group = GroupOf(queue, is_independent, &groups, cycle);
    entries.push_back(entry);
    ++group.named;
    if ((is_independent ? group.named : entries.size()) != limit) continue;
    // Where nobody may pass, no more are of use to the pool.
    for (const auto& [order, served] : book_.served()) {
      if (is_independent && served != queue) continue;
      if (!StrategyOf(*served).stops_at_first_blocked) continue;
      pass.Close(served->name);
      cut.insert(served);
    }
  }
  const std::set<const Entry*> overdue = AdvanceOverdue(&entries);
  for (const Entry* entry : entries) {
    const Group& group = groups.at(entry->in_line_of);
    const bool passes = passers.count(entry) > 0;
    const bool is_overdue = overdue.contains(entry) && !passes;
    const bool may_reserve = group.reservations > 0 && !passes;
    AddCandidate(*entry, group.rule, may_reserve || is_overdue, is_overdue, cycle);
  }
  if (CorrectsPlans()) GiveBackfillTurns(entries, cycle);
  NameVictims(entries, cycle);
  SetMostSlots(entries, &pass, cycle);
  AddGrowth(cut, &pass, cycle, [&](const Queue* queue) {
    return GroupOf(queue, is_independent, &groups, cycle).rule;
  });
  state_.limits_due_ms = pass.due_ms().value_or(0);
  SayHeldBack(pass.held());
}

// A job that may pass the head of the line may as well pass another that may: the shortest first
// lets more through the same hole (SJBF, Tsafrir, Etsion and Feitelson 2007). Only among those of
// one rank, where the line has no other order that people count on, and where predictions tell more
// than what is declared.
void QueueCore::Impl::GiveBackfillTurns(const std::vector<const Entry*>& entries,
                                        CycleRequested* cycle) {
  const auto backfills_shortest = [](const events::v1::QueueConfigured& config) {
    const scheduling::Strategy* strategy = scheduling::FindStrategy(config.strategy());
    return config.predict_durations() && !strategy->stops_at_first_blocked &&
           !strategy->is_adaptive && config.order() != "fair-share";
  };
  using Turn = std::tuple<int64_t, int64_t, size_t>;  // rank, expected duration, place
  std::unordered_map<const Queue*, std::vector<Turn>> turns;
  std::unordered_set<const Queue*> predicts;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Queue* queue = entries[i]->in_line_of;
    if (!backfills_shortest(*queue->config)) continue;
    if (Predicted(entries[i]->job).has_value()) predicts.insert(queue);
    const int64_t expected_ms = ExpectedDuration(entries[i]->job);
    turns[queue].emplace_back(-entries[i]->line_key.rank,
                              expected_ms == 0 ? std::numeric_limits<int64_t>::max() : expected_ms,
                              i);
  }
  for (auto& [queue, of_queue] : turns) {
    if (!predicts.contains(queue)) continue;
    std::sort(of_queue.begin(), of_queue.end());
    uint32_t turn = 0;
    for (const auto& [rank, duration_s, place] : of_queue) {
      cycle->mutable_candidates(static_cast<int>(place))->set_backfill_turn(++turn);
    }
  }
}

std::set<const Entry*> QueueCore::Impl::AdvanceOverdue(std::vector<const Entry*>* entries) const {
  std::set<const Entry*> overdue;
  if (!IsIndependent()) return overdue;
  std::set<const Queue*> seen;
  for (const Entry* entry : *entries) {
    if (!seen.insert(entry->in_line_of).second) continue;
    const std::optional<int64_t> at = OverdueAt(*entry);
    if (at.has_value() && *at <= state_.now_ms) overdue.insert(entry);
  }
  if (overdue.empty()) return overdue;
  const auto goes_before = [&overdue](const Entry& ahead, const Entry& entry) {
    if (overdue.contains(&ahead)) return FirstSince(ahead) < FirstSince(entry);
    return scheduling::PrecedesByPriority(*ahead.line_owner, *entry.line_owner);
  };
  for (size_t i = 0; i < entries->size(); ++i) {
    if (!overdue.contains((*entries)[i])) continue;
    for (size_t at = i; at > 0 && !goes_before(*(*entries)[at - 1], *(*entries)[at]); --at) {
      std::swap((*entries)[at - 1], (*entries)[at]);
    }
  }
  return overdue;
}

void QueueCore::Impl::AddCandidate(
    const Entry& entry, uint32_t rule, bool may_reserve, bool is_overdue, CycleRequested* cycle) {
  int64_t duration_ms = PlannedDuration(entry.job);
  if (const auto* adaptive = adaptive_.Find(entry.job.queue); adaptive != nullptr) {
    duration_ms = adaptive->PlanOf(entry.job.submission, duration_ms);
  }
  Candidate* candidate = cycle->add_candidates();
  candidate->set_job_id(entry.job.id);
  candidate->set_attempt(entry.job.attempt);
  candidate->set_may_reserve(may_reserve);
  candidate->set_duration_s(SecondsOf(duration_ms));
  if (CorrectsPlans()) {
    const int64_t bound_ms = UpperBound(entry.job);
    if (duration_ms < bound_ms) candidate->set_bound_s(SecondsOf(bound_ms));
    candidate->set_enforced(IsEnforced(entry.job, duration_ms));
  }
  candidate->set_rule(rule);
  candidate->set_overdue(is_overdue);
  NameWindows(entry.job, candidate);
}

void QueueCore::Impl::SayHeldBack(const std::vector<HeldJob>& held) {
  for (const HeldJob& job : held) {
    // What is only named may not start: then it is no answer for people.
    if (job.held.soon) continue;
    const Job& known = static_cast<const Entry*>(job.job)->job;
    const bool said = known.reason == reason::kLimit;
    if (said && state_.now_ms - known.updated_ms < kSentenceIntervalMs) continue;
    std::string sentence = job.Sentence();
    if (said && known.message == sentence) continue;
    Entry* entry = book_.Find(known.id);
    Job& changed = book_.Edit(entry);
    changed.reason = reason::kLimit;
    changed.message = std::move(sentence);
    changed.start_ms = 0;
    Say(entry);
  }
}

bool QueueCore::Impl::HasSeveralLines() const {
  if (!IsIndependent()) return false;
  const auto& served = book_.served();
  return 1 < std::count_if(served.begin(), served.end(), [](const auto& one) {
           return !one.second->line.empty();
         });
}

bool QueueCore::Impl::Backfills() const {
  return std::any_of(book_.served().begin(), book_.served().end(), [](const auto& served) {
    return !StrategyOf(*served.second).stops_at_first_blocked;
  });
}

}  // namespace fluxqueue::queue_core
