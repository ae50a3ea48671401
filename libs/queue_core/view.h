// What the parts of the core decide from: the pool and its jobs as they are at this moment of the
// log. Nothing is changed through it. A part says what is to be done and why; the core does it
// (core_impl.h).
//
//   planning.h      how long a job may run, and when its time is over
//   windows.h       nodes that are kept for a time
//   dependencies.h  who waits for whom
//   transitions.h   what becomes of a job that waits, fails, is ended
//   elastic.h       with how many slots a job starts, and when it takes more
//   preemption.h    who is stopped for whom
//   promises.h      what a job is told of its start
//   cycle_plan.h    who is tried in a cycle, and how
//   explain.h       why a job waits
#pragma once

#include <cstdint>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/model/rules.h"
#include "libs/queue_core/job_book.h"
#include "libs/queue_core/pool_state.h"
#include "libs/scheduling/fair_share.h"
#include "libs/scheduling/strategy.h"

namespace fluxqueue::queue_core {

struct View {
  const PoolState& state;
  const JobBook& book;

  const events::v1::PoolConfigured& config() const { return *state.config; }
  // Null: no FluxQueue of that name exists.
  const events::v1::QueueConfigured* ConfigOf(const std::string& queue) const;
  // By which the jobs of a queue that exists are tried now. An adaptive queue is tried as easy
  // while others use the pool, or where its users have turns: adaptive goes by what easy would have
  // done with one line, and no single line is the order then. O(queues).
  const scheduling::Strategy& StrategyInForce(const Queue& queue) const;
  // As a pass over all that wait sees the pool.
  scheduling::PassOptions PassNow() const;
  // Who may know of the job `told` may know of the other: it is of its namespace, or both are
  // claims of one user.
  bool MayKnow(const Job& told, const Job& other) const;
  // What it is told of the other: "job team/train"; else "a job of 4 slots".
  std::string NameFor(const Job& told, const Job& other) const;
  // Somebody may pass the head of the line.
  bool Backfills() const;
  // Jobs wait in more than one queue.
  bool HasSeveralLines() const;

  // ------------------------------------------ the pool's version of the rules (libs/model/rules.h)
  bool HasRules(uint32_t version) const { return model::HasRules(config().rules(), version); }
  bool IsIndependent() const { return HasRules(model::kIndependentQueues); }
  bool MatcherChooses() const { return HasRules(model::kMatcherChooses); }
  bool CorrectsPlans() const { return HasRules(model::kCorrectedPlans); }
  bool HasFirmPromises() const { return HasRules(model::kFirmPromises); }
  bool HasAccounts() const { return HasRules(model::kAccounts); }
  bool AsksOnceWhenOverdue() const { return HasRules(model::kAsksOnceWhenOverdue); }
  bool ShrinksFirst() const { return HasRules(model::kShrinksFirst); }
  bool GuaranteesOthers() const { return HasRules(model::kGuaranteesOfEveryResource); }
  bool LooksLessOften() const { return HasRules(model::kLooksLessOften); }
};

// Of a queue that exists, as it was configured.
const scheduling::Strategy& StrategyOf(const Queue& queue);

}  // namespace fluxqueue::queue_core
