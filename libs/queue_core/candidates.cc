// Who is tried in a cycle: of each queue, in the order in which queues are served, those at the
// head of its line, as many as its depth says; gone about by the rule of its strategy.
#include <algorithm>
#include <vector>

#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/reasons.h"
#include "libs/scheduling/candidate_window.h"
#include "libs/scheduling/plan_order.h"
#include "libs/scheduling/strategy.h"

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;

namespace {

const scheduling::Strategy& StrategyOf(const Queue& queue) {
  return *scheduling::FindStrategy(queue.config->strategy());
}

// When it was said to start; 0: nothing was said.
int64_t PromisedStart(const Entry* entry) {
  return entry->job.reason == reason::kReserved ? entry->job.start_ms : 0;
}

}  // namespace

void QueueCore::Impl::ChooseCandidates(CycleRequested* cycle) const {
  const uint32_t limit =
      scheduling::CandidateLimit(state_.window, DepthOf(*book_.Head()->in_line_of));
  for (const auto& [order, queue] : book_.served()) {
    if (queue->line.empty()) continue;
    const auto named = static_cast<uint32_t>(cycle->candidates_size());
    if (StrategyOf(*queue).stops_at_first_blocked && named >= limit) continue;
    AddCandidates(*queue, limit, cycle);
  }
}

void QueueCore::Impl::AddCandidates(const Queue& queue,
                                    uint32_t limit,
                                    CycleRequested* cycle) const {
  const scheduling::Strategy& strategy = StrategyOf(queue);
  const uint32_t reservations = strategy.Reservations(queue.config->reservation_depth());
  const auto index = static_cast<uint32_t>(cycle->rules_size());
  CycleRequested::Rule* rule = cycle->add_rules();
  rule->set_stop_at_first_blocked(strategy.stops_at_first_blocked);
  rule->set_most_reservations(reservations);

  uint32_t most = DepthOf(queue);
  if (strategy.stops_at_first_blocked) {
    most = std::min(most, limit - static_cast<uint32_t>(cycle->candidates_size()));
  }
  std::vector<const Entry*> entries;
  for (const auto& [key, entry] : queue.line) {
    if (entries.size() == most) break;
    entries.push_back(entry);
  }
  if (reservations > 0) {
    scheduling::OrderByPromises(entries.begin(), entries.end(), PromisedStart);
  }
  for (const Entry* entry : entries) {
    Candidate* candidate = cycle->add_candidates();
    candidate->set_job_id(entry->job.id);
    candidate->set_attempt(entry->job.attempt);
    candidate->set_may_reserve(reservations > 0);
    candidate->set_duration_s((EffectiveDuration(entry->job) + 999) / 1000);
    candidate->set_rule(index);
  }
}

bool QueueCore::Impl::Backfills() const {
  return std::any_of(book_.served().begin(), book_.served().end(), [](const auto& served) {
    return !StrategyOf(*served.second).stops_at_first_blocked;
  });
}

uint32_t QueueCore::Impl::DepthOf(const Queue& queue) const {
  const uint32_t depth = queue.config == nullptr ? 0 : queue.config->queue_depth();
  return depth == 0 ? scheduling::kDefaultDepth : depth;
}

}  // namespace fluxqueue::queue_core
