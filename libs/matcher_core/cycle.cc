#include "libs/matcher_core/cycle.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/promises.h"
#include "libs/matcher_core/trial.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::CycleAnswered;
using events::v1::CycleRequested;
using events::v1::Outcome;

CycleRun::CycleRun(const CycleRequested& request,
                   const View& view,
                   PromiseBook* promises,
                   AllocationRows* rows,
                   graph::Engine* engine)
    : request_(request),
      view_(view),
      promises_(*promises),
      rows_(*rows),
      engine_(*engine),
      reservations_(request, view, promises, engine),
      stopped_(static_cast<size_t>(request.rules_size())) {}

CycleAnswered CycleRun::Answer(const Tried& tried) {
  CycleAnswered answer;
  answer.set_cycle_id(request_.cycle_id());
  reservations_.TakeUp();
  for (std::optional<Outcome>& outcome : TryAll(tried)) {
    if (outcome) answer.mutable_outcomes()->Add(*std::move(outcome));
  }
  SayPromises(view_, request_, promises_.TakeLost(), &answer);
  const std::vector<AllocationKey> overran = engine_.Overran(request_.now_s());
  answer.set_overran(static_cast<uint32_t>(overran.size()));
  if (!overran.empty()) answer.set_overran_job(overran.front().job_id);
  return answer;
}

CycleRun::Outcomes CycleRun::TryAll(const Tried& tried) {
  Trial trial(request_, view_, &reservations_, &rows_, &engine_);
  std::vector<int> order(static_cast<size_t>(request_.candidates_size()));
  std::iota(order.begin(), order.end(), 0);
  Outcomes outcomes(order.size());
  for (size_t next = 0; next < order.size();) {
    const int place = order[next++];
    const Candidate& candidate = request_.candidates(place);
    std::optional<Outcome>& outcome = outcomes[static_cast<size_t>(place)];
    if (IsStopped(candidate)) {
      PassOver(candidate, &outcome);
      continue;
    }
    trial.Try(candidate, &outcome.emplace());
    tried(*outcome);
    if (trial.ends_cycle()) break;
    if (Stops(candidate, *outcome)) {
      if (!IsIndependent(request_)) break;
      stopped_[candidate.rule()] = true;
    }
    if (outcome->kind() == Outcome::KIND_RESERVED && candidate.backfill_turn() != 0 &&
        !reservations_.MayReserve(candidate)) {
      TakeTurns(candidate.rule(), next, &order);
    }
  }
  return outcomes;
}

void CycleRun::PassOver(const Candidate& candidate, std::optional<Outcome>* outcome) {
  reservations_.TakeTurn(candidate);
  if (!HasFirmPromises(request_) || !promises_.HasLost(KeyOf(candidate))) return;
  SayWho(candidate, &outcome->emplace());
  (*outcome)->set_kind(Outcome::KIND_BUSY);
  (*outcome)->set_reason("a job ahead of it in its queue waits, and nobody passes it there");
}

bool CycleRun::IsStopped(const Candidate& candidate) const {
  return candidate.rule() < stopped_.size() && stopped_[candidate.rule()];
}

bool CycleRun::Stops(const Candidate& candidate, const Outcome& outcome) const {
  const bool waits =
      outcome.kind() == Outcome::KIND_BUSY || outcome.kind() == Outcome::KIND_RESERVED;
  const CycleRequested::Rule* rule = RuleOf(request_, candidate);
  return waits && !candidate.grow() && rule != nullptr && rule->stop_at_first_blocked();
}

void CycleRun::TakeTurns(uint32_t rule, size_t tried, std::vector<int>* order) const {
  std::vector<size_t> places;
  std::vector<std::pair<uint32_t, int>> turns;
  for (size_t i = tried; i < order->size(); ++i) {
    const Candidate& candidate = request_.candidates((*order)[i]);
    if (candidate.backfill_turn() == 0 || candidate.rule() != rule) continue;
    // What is promised is taken up, or given up, in the order of the line.
    if (view_.promises.Has(KeyOf(candidate))) continue;
    places.push_back(i);
    turns.emplace_back(candidate.backfill_turn(), (*order)[i]);
  }
  std::sort(turns.begin(), turns.end());
  for (size_t i = 0; i < places.size(); ++i) (*order)[places[i]] = turns[i].second;
}

}  // namespace fluxqueue::matcher_core
