#include "libs/queue_core/cycle_plan.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/windows.h"
#include "libs/scheduling/candidate_window.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;
using scheduling::Pass;

namespace {

// Who was refused is tried again after this time where the order changes by time alone.
constexpr int64_t kOrderIntervalMs = 60'000;
// What was refused is tried again after this time, should no message have said that it could help.
constexpr int64_t kLookAgainMs = 900'000;
// Or when it has waited longer by this part, but not later than this: a job that waits for long is
// tried less often.
constexpr int64_t kLooksWithinWait = 4;
constexpr int64_t kLookAgainLatestMs = 14'400'000;
constexpr int64_t kDefaultReserveAfterMs = 900'000;

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

Group& GroupOf(const Queue* queue, const View& view, Groups* groups, CycleRequested* cycle) {
  const auto [it, made] = groups->try_emplace(queue);
  Group& group = it->second;
  if (!made) return group;
  const scheduling::Strategy& strategy = view.StrategyInForce(*queue);
  group.rule = static_cast<uint32_t>(cycle->rules_size());
  group.reservations = strategy.Reservations(queue->config->reservation_depth());
  CycleRequested::Rule* rule = cycle->add_rules();
  rule->set_stop_at_first_blocked(strategy.stops_at_first_blocked);
  rule->set_most_reservations(group.reservations);
  rule->set_plans_anew(strategy.is_adaptive);
  if (view.IsIndependent()) rule->set_queue(queue->name);
  return group;
}

}  // namespace

Growth CyclePlanner::Plan(const std::unordered_set<const Entry*>& passers,
                          Pass* pass,
                          CycleRequested* cycle) const {
  std::vector<const Entry*> entries;
  Groups groups;
  std::set<const Queue*> cut;
  const bool is_independent = view_.IsIndependent();
  const bool among_suspects = view_.state.suspects != nullptr;
  std::set<std::string_view> suspects;
  if (among_suspects) suspects.insert(view_.state.suspects->begin(), view_.state.suspects->end());
  uint32_t limit = 0;
  while (const auto* entry = static_cast<const Entry*>(pass->Next())) {
    const Queue* queue = entry->in_line_of;
    if (among_suspects && !suspects.contains(entry->job.id)) continue;
    if (entries.empty() || is_independent) {
      limit = scheduling::CandidateLimit(view_.state.window, DepthOf(queue->config.get()));
    }
    Group& group = GroupOf(queue, view_, &groups, cycle);
    entries.push_back(entry);
    ++group.named;
    if (among_suspects && entries.size() == view_.state.suspects_at_once) break;
    if ((is_independent ? group.named : entries.size()) != limit) continue;
    // Where no job may pass another, more are of no use to the pool.
    for (const auto& [order, served] : view_.book.served()) {
      if (is_independent && served != queue) continue;
      if (!StrategyOf(*served).stops_at_first_blocked) continue;
      pass->Close(served->name);
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
  if (view_.CorrectsPlans()) GiveBackfillTurns(entries, cycle);
  preemption_.NameVictims(entries, cycle);
  elastic_.SetMostSlots(entries, pass, cycle);
  if (among_suspects) return Growth::kAlong;
  const auto rule_of = [&](const Queue* queue) {
    return GroupOf(queue, view_, &groups, cycle).rule;
  };
  const Growth growth = elastic_.AddGrowth(cut, pass, cycle, rule_of);
  if (!cycle->candidates().empty() || replacement_.IsDue()) {
    replacement_.NameFirst(cycle, rule_of);
  }
  return growth;
}

// A job that may pass the head of the line may as well pass another that may: the shortest first
// lets more through the same hole (SJBF, Tsafrir, Etsion and Feitelson 2007). Only among those of
// one rank, where the line has no other order that people count on, and where predictions tell more
// than what is declared.
void CyclePlanner::GiveBackfillTurns(const std::vector<const Entry*>& entries,
                                     CycleRequested* cycle) const {
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
    if (planning_.Predicted(entries[i]->job).has_value()) predicts.insert(queue);
    const int64_t expected_ms = planning_.ExpectedDuration(entries[i]->job);
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

std::set<const Entry*> CyclePlanner::AdvanceOverdue(std::vector<const Entry*>* entries) const {
  std::set<const Entry*> overdue;
  if (!view_.IsIndependent()) return overdue;
  std::set<const Queue*> seen;
  for (const Entry* entry : *entries) {
    if (!seen.insert(entry->in_line_of).second) continue;
    const std::optional<int64_t> at = OverdueAt(*entry);
    if (at.has_value() && *at <= view_.state.now_ms) overdue.insert(entry);
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

void CyclePlanner::AddCandidate(const Entry& entry,
                                uint32_t rule,
                                bool may_reserve,
                                bool is_overdue,
                                CycleRequested* cycle) const {
  int64_t duration_ms = planning_.PlannedDuration(entry.job);
  const auto* adaptive = adaptive_.Find(entry.job.queue);
  if (adaptive != nullptr && cycle->rules(static_cast<int>(rule)).plans_anew()) {
    duration_ms = adaptive->PlanOf(entry.job.submission, duration_ms);
  }
  Candidate* candidate = cycle->add_candidates();
  candidate->set_job_id(entry.job.id);
  candidate->set_attempt(entry.job.attempt);
  candidate->set_may_reserve(may_reserve);
  candidate->set_duration_s(SecondsOf(duration_ms));
  if (view_.CorrectsPlans()) {
    const int64_t bound_ms = planning_.UpperBound(entry.job);
    if (duration_ms < bound_ms) candidate->set_bound_s(SecondsOf(bound_ms));
    candidate->set_enforced(planning_.IsEnforced(entry.job, duration_ms));
  }
  candidate->set_rule(rule);
  candidate->set_overdue(is_overdue);
  NameWindows(view_.state, entry.job, candidate);
}

std::optional<int64_t> CyclePlanner::OverdueAt(const Entry& entry) const {
  const events::v1::QueueConfigured& config = *entry.in_line_of->config;
  const int64_t after_ms =
      config.has_reserve_after_ms() ? config.reserve_after_ms() : kDefaultReserveAfterMs;
  if (entry.job.first_ms == 0 || after_ms == 0) return std::nullopt;
  return entry.job.first_ms + after_ms;
}

int64_t CyclePlanner::LookAgainInterval(int64_t waits_since_ms) const {
  if (!view_.LooksLessOften() || waits_since_ms == 0) return kLookAgainMs;
  const auto& served = view_.book.served();
  // Where it is adaptive, a job that has waited longer may pass.
  const bool adapts = std::any_of(served.begin(), served.end(), [this](const auto& one) {
    return adaptive_.Find(one.second->name) != nullptr && !one.second->line.empty();
  });
  if (adapts) return kLookAgainMs;
  const int64_t waited_ms = view_.state.now_ms - waits_since_ms;
  return std::clamp(waited_ms / kLooksWithinWait, kLookAgainMs, kLookAgainLatestMs);
}

// An order that changes by time alone may put somebody first whom there is room for.
int64_t CyclePlanner::LookAgainAt(const CycleRequested& cycle, int64_t due_ms) const {
  const int64_t now_ms = view_.state.now_ms;
  const auto look_at = [&due_ms](int64_t then) {
    if (due_ms == 0 || then < due_ms) due_ms = then;
  };
  for (const auto& [order, queue] : view_.book.served()) {
    const events::v1::QueueConfigured& config = *queue->config;
    const bool ages = config.order() == "fair-share" || config.aging_ms() > 0;
    // Where there is a reservation, its time comes.
    const bool passes =
        !view_.IsIndependent() && adaptive_.Find(queue->name) != nullptr && due_ms == 0;
    if (queue->line.empty() || !(ages || passes)) continue;
    look_at(now_ms + kOrderIntervalMs);
  }
  int64_t last_first_ms = 0;
  for (const Candidate& candidate : cycle.candidates()) {
    const Entry* entry = view_.book.Find(candidate.job_id());
    if (entry == nullptr || entry->in_line_of == nullptr) continue;
    last_first_ms = std::max(last_first_ms, entry->job.first_ms);
    const std::optional<int64_t> overdue = OverdueAt(*entry);
    if (!overdue.has_value()) continue;
    if (*overdue > now_ms) {
      look_at(*overdue);
    } else if (!view_.AsksOnceWhenOverdue()) {
      look_at(now_ms + kOrderIntervalMs);
    }
  }
  if (view_.IsIndependent()) look_at(now_ms + LookAgainInterval(last_first_ms));
  return due_ms;
}

}  // namespace fluxqueue::queue_core
