// The versions of the rules by which the cores decide. A pool's log says which one holds from where
// on (PoolConfigured.rules), so a log is replayed by the rules that decided it.
//
//   1  A cycle ends at the first job that may not be passed, whichever queue it is of. What nothing
//      in the pool could run is rejected after PoolConfigured.unsatisfiable_grace_ms.
//   2  Queues are independent: a job that cannot start stops its own queue's line at most. What
//      nothing in the pool can run waits (QueueConfigured.reject_after_ms). A job that has been the
//      first of its queue for QueueConfigured.reserve_after_ms has a reservation, whatever the
//      strategy. A queue's guarantee counts for the resources that the job at hand asks for.
//   3  Who is stopped for another is chosen by the matcher, among all that may be. Plans that did
//      not hold are corrected: a job that overruns is planned to end later by growing steps
//      (libs/graph/planned_end.h); predictions are used where they were nearer than what was
//      declared. Promises are firm or forecasts, and say why they move.
//   4  Shares count every resource that the pool has, by its weight (PoolConfigured.billing), and
//      users by theirs. Budgets, and limits of one job. In an adaptive queue of order fair-share
//      users have their turns, and adaptive chooses among the jobs of the one whose turn it is.
//      What exceeds a guarantee in one resource can be reclaimed from jobs that hold others too.
//      A job that was to be ended for its time, and was not, is stopped. The policy `packed` keeps
//      nodes for slots that not every node can take (libs/graph/set_aside.h).
//   5  A job that is due a reservation, as it was the first of its queue for
//      QueueConfigured.reserve_after_ms, asks for one cycle then, not for one in each minute after.
//   6  What `packed` expects follows from what came, of which old counts less, and of one tenant
//      not more than a part (libs/graph/forecast.h); it keeps some nodes whatever is expected.
//      What was refused is tried again after 15 minutes, or a quarter of the time for which the
//      first of its queue has waited as that (at most 4 hours), should no message have said that
//      it could help; where no queue is adaptive.
//      In pools without gpus `adaptive` follows what easy would have done in hindsight, and prices
//      jobs by what jobs of their users took (libs/scheduling/adaptive.h). Its queues predict no
//      durations.
//   7  Elastic jobs give slots back before any job is stopped for another. Guarantees count every
//      resource, and keep no job from being reclaimed that holds nothing of what is guaranteed.
//      While several queues use a pool, or where users have turns, `adaptive` steps back: it is
//      `easy` then.
//   8  What people are told is short: of a constraint the terms that the fewest nodes meet; any
//      sentence is cut (libs/graph/engine.h, libs/base/text.h). The matcher forgets what is
//      withdrawn and holds nothing.
//   9  What a job is told of others has their names only where they are of its namespace, claims
//      where they are of its user: else how many slots they have. What waits says who held,
//      released or moved it.
//  10  A slot of a Job that runs, whose node is closed or has put its pod out, is given back alone,
//      and another is matched in its place before the line (SlotsLost, Candidate.replace). A Job of
//      another size than it was started with grows. A pod of a slot that its job never had gives
//      nothing back, and the matcher keeps no jobspec that is said of a job that is over.
//  11  Among the places that there are, jobs go to the nodes that they prefer, and not to
//      those with taints of the effect PreferNoSchedule (libs/graph/preferred_placement.h).
//  12  Each node has one of each host port (host_ports.h). A job's nodes are chosen by its pods'
//      rules, and by those of what runs (libs/matcher_core/pod_book.h).
//  13  Among the places that there are, jobs go to nodes beside, or away from, the pods that theirs
//      prefer so, and spread where they ask for that. A slot of a gang of pods is given back when
//      its pod has ended or is gone.
//  14  What the log has lost is asked for again: a job without a jobspec waits for it,
//      and a release that is not confirmed is repeated.
//  15  Nodes that are closed by several windows, or kept from a job by several others, are not
//      missing once for each: a job that takes whole nodes starts where there are enough. An
//      attempt gives back what an earlier one of its job holds, whose release the log has lost.
#pragma once

#include <cstdint>

namespace fluxqueue::model {

inline constexpr uint32_t kIndependentQueues = 2;
inline constexpr uint32_t kMatcherChooses = 3;
inline constexpr uint32_t kCorrectedPlans = 3;
inline constexpr uint32_t kFirmPromises = 3;
inline constexpr uint32_t kAccounts = 4;
inline constexpr uint32_t kSetsNodesAside = 4;
inline constexpr uint32_t kAsksOnceWhenOverdue = 5;
inline constexpr uint32_t kForecastDecays = 6;
inline constexpr uint32_t kLooksLessOften = 6;
inline constexpr uint32_t kAdaptiveHindsight = 6;
inline constexpr uint32_t kAdaptivePredictsNothing = 6;
inline constexpr uint32_t kShrinksFirst = 7;
inline constexpr uint32_t kGuaranteesOfEveryResource = 7;
inline constexpr uint32_t kAdaptiveStepsBack = 7;
inline constexpr uint32_t kShortReasons = 8;
inline constexpr uint32_t kForgetsWithdrawn = 8;
inline constexpr uint32_t kSaysWhatIsHeld = 8;
inline constexpr uint32_t kNamesNoOthers = 9;
inline constexpr uint32_t kSaysWhoAsked = 9;
inline constexpr uint32_t kReplacesSlots = 10;
inline constexpr uint32_t kGrowsResized = 10;
inline constexpr uint32_t kChecksSlots = 10;
inline constexpr uint32_t kForgetsLateJobspecs = 10;
inline constexpr uint32_t kPrefersNodes = 11;
inline constexpr uint32_t kPodRules = 12;
inline constexpr uint32_t kPrefersByPods = 13;
inline constexpr uint32_t kGangsGiveBack = 13;
inline constexpr uint32_t kAsksForTheLost = 14;
inline constexpr uint32_t kClosesOnce = 15;
inline constexpr uint32_t kReleasesOvertaken = 15;
inline constexpr uint32_t kLatestRules = 15;

// `configured` 0: not said, which is the latest.
constexpr bool HasRules(uint32_t configured, uint32_t version) {
  return configured == 0 || configured >= version;
}

}  // namespace fluxqueue::model
