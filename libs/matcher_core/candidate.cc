#include "libs/matcher_core/candidate.h"

#include "libs/graph/holding.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::CycleRequested;

AllocationKey KeyOf(const Candidate& candidate) {
  return {candidate.job_id(), candidate.attempt(), candidate.part()};
}

int64_t DurationOf(const Candidate& candidate) {
  return candidate.duration_s() == 0 ? graph::kForever : candidate.duration_s();
}

bool MayPreempt(const Candidate& candidate) {
  return !candidate.victims().empty() || !candidate.stoppable().empty();
}

graph::MatchRequest StartNow(const CycleRequested& request,
                             const Candidate& candidate,
                             const graph::Jobspec& jobspec,
                             int64_t longer_s) {
  return {.operation = graph::Operation::kAllocate,
          .key = KeyOf(candidate),
          .jobspec = jobspec,
          .now_s = request.now_s(),
          .duration_s = candidate.duration_s() == 0 ? 0 : candidate.duration_s() + longer_s,
          .corrected = CorrectsPlans(request),
          .bound_s = candidate.bound_s(),
          .enforced = candidate.enforced()};
}

graph::MatchRequest StartOrReserve(const CycleRequested& request,
                                   const Candidate& candidate,
                                   const graph::Jobspec& jobspec,
                                   bool may_reserve) {
  graph::MatchRequest match = StartNow(request, candidate, jobspec);
  match.operation = may_reserve ? graph::Operation::kAllocateOrReserve
                                : graph::Operation::kAllocateWithSatisfiability;
  return match;
}

const CycleRequested::Rule* RuleOf(const CycleRequested& request, const Candidate& candidate) {
  if (candidate.rule() >= static_cast<uint32_t>(request.rules_size())) return nullptr;
  return &request.rules(static_cast<int>(candidate.rule()));
}

ReservationQuota::ReservationQuota(const CycleRequested& request)
    : request_(request), given_(static_cast<size_t>(request.rules_size())) {}

bool ReservationQuota::Allows(const Candidate& candidate) const {
  const CycleRequested::Rule* rule = RuleOf(request_, candidate);
  if (!candidate.may_reserve() || rule == nullptr) return false;
  return candidate.overdue() || given_[candidate.rule()] < rule->most_reservations();
}

}  // namespace fluxqueue::matcher_core
