// What a candidate asks for, and what the rule of its queue gives it: as the cycle's request says.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/rows.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

// -------------------------------------- the request's version of the rules (libs/model/rules.h)
inline bool IsIndependent(const events::v1::CycleRequested& request) {
  return request.version() >= model::kIndependentQueues;
}
inline bool CorrectsPlans(const events::v1::CycleRequested& request) {
  return request.version() >= model::kCorrectedPlans;
}
inline bool HasFirmPromises(const events::v1::CycleRequested& request) {
  return request.version() >= model::kFirmPromises;
}

// ----------------------------------------------------------------------------- what it asks for
AllocationKey KeyOf(const events::v1::Candidate& candidate);
// `kForever` when it has no end.
int64_t DurationOf(const events::v1::Candidate& candidate);
// Jobs may be stopped for it.
bool MayPreempt(const events::v1::Candidate& candidate);
// A match of it that starts now. `longer_s`: it is to have room for that much longer than it asks
// for. The jobspec outlives it.
graph::MatchRequest StartNow(const events::v1::CycleRequested& request,
                             const events::v1::Candidate& candidate,
                             const graph::Jobspec& jobspec,
                             int64_t longer_s = 0);
// The same; what cannot start is reserved, if it may be.
graph::MatchRequest StartOrReserve(const events::v1::CycleRequested& request,
                                   const events::v1::Candidate& candidate,
                                   const graph::Jobspec& jobspec,
                                   bool may_reserve);

// ------------------------------------------------------------------------ what its rule gives it
// Null: the request has no such rule.
const events::v1::CycleRequested::Rule* RuleOf(const events::v1::CycleRequested& request,
                                               const events::v1::Candidate& candidate);

// How many reservations each rule has given.
class ReservationQuota {
 public:
  // The request outlives it.
  explicit ReservationQuota(const events::v1::CycleRequested& request);

  // The rule has one left for it; what is overdue may always have one.
  bool Allows(const events::v1::Candidate& candidate) const;
  // REQUIRES: Allows() it, or did before others of its rule were counted.
  void Count(const events::v1::Candidate& candidate) { ++given_[candidate.rule()]; }

 private:
  const events::v1::CycleRequested& request_;
  std::vector<uint32_t> given_;
};

}  // namespace fluxqueue::matcher_core
