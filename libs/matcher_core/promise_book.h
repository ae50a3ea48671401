// What is promised: by key, the slots that are reserved, and from when on. Kept from one cycle to
// the next; the engine knows of them only while they are up.
//
// While nodes, the policy or windows change, none is up. Those that are void then are lost, and the
// next cycle takes up what is left (reservations.h). What was lost leaves behind why: of several
// reasons the first, as the others follow from it. It is said in the next answer (promises.h).
//
// Changes are provisional until Commit(). Thread-compatible.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/base/journaled.h"
#include "libs/graph/engine.h"
#include "libs/graph/types.h"
#include "libs/matcher_core/rows.h"

namespace fluxqueue::matcher_core {

// Why a promise moved or went. `by`: the job, window or node that the cause speaks of.
events::v1::Slip SlipBy(events::v1::Slip::Cause cause, const std::string& by);

class PromiseBook {
 public:
  using Promises = Journaled<std::map<AllocationKey, graph::Placement>>;

  // `state` outlives it: there stands what was lost, and that room came, for the rows.
  explicit PromiseBook(matcher::v1::PoolState* state) : state_(*state) {}

  const std::map<AllocationKey, graph::Placement>& map() const { return promises_.map(); }
  // Null: nothing is promised.
  const graph::Placement* Find(const AllocationKey& key) const { return promises_.Find(key); }
  bool Has(const AllocationKey& key) const { return promises_.Has(key); }

  void Put(const AllocationKey& key, graph::Placement promise) {
    promises_.Put(key, std::move(promise));
    ++revision_;
  }
  void Erase(const AllocationKey& key) {
    promises_.Erase(key);
    ++revision_;
  }
  // Another after each of these two.
  uint64_t revision() const { return revision_; }

  // Why it is void, or will be. It stands until it is erased.
  void Lose(const AllocationKey& key, const events::v1::Slip& slip);
  // It was lost since the last answer.
  bool HasLost(const AllocationKey& key) const;
  // By key, what was lost since then. From now on nothing was.
  std::map<AllocationKey, events::v1::Slip> TakeLost();

  // Whether all are reserved on the graph.
  bool are_up() const { return up_; }
  void SetUp() { up_ = true; }
  void PutAway(graph::Engine* engine);

  // ------------------------------------------------------- lost, as something else has changed
  void LoseOf(const std::string& job_id, graph::Engine* engine);
  // REQUIRES, as the next: they are not up.
  void LoseOn(const std::string& node);
  void LoseAll(const events::v1::Slip& slip);

  // ---------------------------------------------------------------------------------- the batch
  std::vector<Promises::Change> Changes() const { return promises_.Changes(); }
  void Commit() { promises_.Commit(); }
  void Rollback(graph::Engine* engine);
  // As it was kept: no change.
  void Restore(const AllocationKey& key, graph::Placement promise) {
    promises_.Restore(key, std::move(promise));
  }
  void Clear();

 private:
  void Void(const AllocationKey& key, const events::v1::Slip& slip);

  matcher::v1::PoolState& state_;
  Promises promises_;
  bool up_ = false;
  uint64_t revision_ = 0;
};

}  // namespace fluxqueue::matcher_core
