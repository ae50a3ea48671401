// The matcher's decisions for one pool: a deterministic state machine over the pool's log.
//
// It keeps the jobspecs of live jobs (JobSubmitted, JobUpdated, CommandAccepted of a claim), the
// graph (NodeUpserted, NodeGone, InventorySynced, PoolConfigured), what is held on it and the
// windows that are not over (WindowConfigured), and answers CycleRequested with CycleAnswered,
// ReleaseRequested with Released, and changes of the graph that matter with InventoryChanged.
// Messages of other types (Reads) are ignored. The same messages give the same bytes, wherever
// batches begin and end; a core restored from rows equals the core folded from the log.
//
// Delivery: everything since the last Commit or Rollback is provisional. The shell writes
// TakeChanges() and commits them together with the messages of `out`, then calls Commit(); when the
// commit failed, Rollback(), and hands the same messages in again.
//
// A cycle is a part of its own, made for one request (cycle.h): it sees the pool through a const
// view (view.h), and changes the graph, what is promised, and the rows of what is held. Nothing is
// stopped here: those without which a candidate could start are named (preemption.h).
//
// The id of the last cycle again gives the stored answer; an older id is ignored. Before
// InventorySynced, and on a pool without nodes, nothing is unsatisfiable: it is busy, and the
// reason says why.
//
// Pure: no clock, thread or I/O; does not throw. Not thread-safe: one thread for each core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/base/clock.h"
#include "libs/graph/closure.h"
#include "libs/graph/engine.h"
#include "libs/graph/engine_kind.h"
#include "libs/matcher_core/cycle.h"
#include "libs/matcher_core/forecast.h"
#include "libs/matcher_core/node_book.h"
#include "libs/matcher_core/promise_book.h"
#include "libs/matcher_core/rows.h"
#include "libs/matcher_core/specs.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::matcher_core {

// How many answers are kept in the table.
inline constexpr uint64_t kAnswersKept = 1000;
// How many nodes that are gone are remembered, so that one that comes back keeps its place.
inline constexpr size_t kGoneNodesKept = 1000;

class MatcherCore {
 public:
  explicit MatcherCore(std::string pool, graph::MakeEngine make_engine = graph::MakeNativeOnly);
  ~MatcherCore();
  MatcherCore(const MatcherCore&) = delete;
  MatcherCore& operator=(const MatcherCore&) = delete;

  // Whether a message of this type can change anything; Handle ignores the others.
  static bool Reads(events::v1::Envelope::EventCase type);
  // Folds one message; what is to be said is appended to `out` with pool and time_ms (= now) set.
  // `now`: the log's time, since the Unix epoch. A poison status (InvalidArgument: the message
  // lacks what it must have, or asks for an engine or policy that does not exist) has changed
  // nothing. Internal: the engine cannot be had here.
  absl::Status Handle(const events::v1::Envelope& message,
                      Millis now,
                      std::vector<events::v1::Envelope>* out);

  // The rows that changed since the last Commit or Rollback. Calling it changes nothing.
  Changes TakeChanges() const;
  // The batch is durable: it cannot be taken back any more.
  void Commit();
  // The batch is not: all is as at the last Commit, Rollback or Restore.
  void Rollback();

  // `tried` hears of each candidate as it has its outcome, for metrics; from within Handle.
  void OnTried(CycleRun::Tried tried) { tried_ = std::move(tried); }

  // Replaces all state. DataLoss when the rows contradict each other; the core is then unusable
  // until a Restore succeeds.
  absl::Status Restore(const Rows& rows);

  // A hash of all state that can show in an answer.
  uint64_t Fingerprint() const;

  // For metrics and `fluxqueue nodes`.
  const graph::Engine& engine() const { return *engine_; }
  graph::EngineKind engine_kind() const;
  const std::string& pool() const { return pool_; }
  bool synced() const { return state_.synced(); }
  // Of the pool's time, since the Unix epoch; 0: no cycle has said it yet.
  Millis beginning() const { return Millis(state_.beginning_ms()); }
  const events::v1::PoolConfigured& config() const { return state_.config(); }
  size_t jobs() const { return specs_.size(); }
  // The windows that are not over at `now_s`, but those that are open. REQUIRES: they are sorted.
  std::vector<graph::Closure> Closures(const std::vector<std::string>& open, int64_t now_s) const;
  // What is promised.
  const std::map<AllocationKey, graph::Placement>& reservations() const { return promises_.map(); }

 private:
  // Each changes nothing when it fails, and returns what is to be said, if anything.
  absl::Status HandleSpec(const std::string& job_id, const events::v1::PartSpec& part);
  // The same of a job that comes. `tenant`: a namespace; claims are one together.
  absl::Status HandleArrival(const std::string& job_id,
                             const events::v1::PartSpec& part,
                             const std::string& tenant,
                             Millis now);
  void HandleWithdrawn(const std::string& job_id);
  // Its jobspecs, and what it was promised.
  void Forget(const std::string& job_id);
  absl::Status HandlePool(const events::v1::PoolConfigured& config, Millis now);
  // Another engine with all that this one has.
  absl::Status ChangeEngine(const events::v1::PoolConfigured& config);
  absl::Status HandleWindow(const events::v1::WindowConfigured& window);
  absl::StatusOr<std::optional<events::v1::InventoryChanged>> HandleNode(
      const events::v1::Node& node);
  std::optional<events::v1::InventoryChanged> HandleNodeGone(const events::v1::NodeGone& gone);
  std::optional<events::v1::InventoryChanged> HandleSynced();
  absl::StatusOr<std::optional<events::v1::CycleAnswered>> HandleCycle(
      const events::v1::CycleRequested& request, Millis now);
  absl::StatusOr<events::v1::Released> HandleRelease(const events::v1::ReleaseRequested& request,
                                                     Millis now);
  // What earlier attempts of the candidates hold. The queue has released them; the log lost it.
  void ReleaseOvertaken(const events::v1::CycleRequested& request, Millis now);
  // REQUIRES: the key holds something.
  void GiveBack(const AllocationKey& key, Millis now);
  // Whole seconds since the pool's beginning.
  int64_t PoolSeconds(Millis now) const { return (now.count() - state_.beginning_ms()) / 1000; }

  // `changed` with the counts of now.
  events::v1::InventoryChanged Inventory(const std::string& node,
                                         events::v1::InventoryChanged changed) const;
  // Takes the node out and marks it gone; the keys that held it are added to `changed`.
  void RemoveNode(const std::string& name, events::v1::InventoryChanged* changed);
  // Each node has one of the host ports that it names, from now on.
  void LearnHostPorts(const Spec& spec);
  void PutSpec(const SpecKey& key, std::optional<Spec> spec);
  // More jobs like it, or fewer.
  void Expect(const Spec& spec, int64_t jobs);
  void BeginBatch();

  absl::Status RestoreNodes(const Rows& rows);
  absl::Status RestoreAllocations(const Rows& rows);
  absl::Status RestorePromises(const Rows& rows);
  absl::Status RestorePool(const Rows& rows);
  absl::Status RestoreAnswer(const Rows& rows);

  std::string pool_;
  graph::MakeEngine make_engine_;
  CycleRun::Tried tried_ = [](const events::v1::Outcome&) {};
  std::unique_ptr<graph::Engine> engine_;
  matcher::v1::PoolState state_;
  ForecastBook forecast_;
  Specs specs_;
  RuledSpecs ruled_;
  NodeBook nodes_;
  PromiseBook promises_{&state_};
  // Of the last cycle.
  std::string last_answer_;
  std::vector<AllocationKey> plan_;  // what it reserved, in its order

  // What is provisional; null before the first message of a batch.
  struct Batch;
  std::unique_ptr<Batch> batch_;
};

}  // namespace fluxqueue::matcher_core
