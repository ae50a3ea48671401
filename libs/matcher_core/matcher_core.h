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
// A cycle: candidates are tried in order. One whose key is held already is answered with the first
// answer. One that cannot start now may get a reservation, as long as the rule of its queue has
// some left: the earliest time at which it can start beside all that runs, as planned, and all that
// is reserved. Nobody behind it is given anything that would delay it. It keeps its reservation in
// the cycles that follow, and has it moved to an earlier time when one comes free
// (reservations.cc). By a rule that says stop_at_first_blocked
// no more of its queue are tried behind the first that cannot start; one that is unsatisfiable or
// invalid stops no line, as no wait would help it. What cannot be reserved, as jobs without an end
// are in the way, holds up no other; once it is overdue, nodes are kept for it (keeping.h). (By
// rules 1 of libs/model/rules.h both end the cycle.) What this cycle refused is not tried again for
// the same shape and as long a time.
//
// A candidate for which others may be stopped, and that cannot start now, is answered with the few
// of them without whom it could (preemption.cc). Nothing is stopped here; the room is kept from
// those behind it.
//
// A window (windows.cc) keeps its nodes in its time from all but the candidates that name it:
// nothing is given out or promised there that would be held then.
//
// An elastic job (a range of slots) starts with as many as there is room for, up to
// Candidate.most_slots, and waits as one that asks for its least. Candidate.grow asks for more of
// one that holds some (elastic.cc); one that gets none is busy, and holds up nobody.
//
// The id of the last cycle again gives the stored answer; an older id is ignored. Before
// InventorySynced, and on a pool without nodes, nothing is unsatisfiable: it is busy, and the
// reason says why.
//
// Pure: no clock, thread or I/O; does not throw. Not thread-safe: one thread for each core.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/base/clock.h"
#include "libs/base/journaled.h"
#include "libs/graph/engine.h"
#include "libs/graph/engine_kind.h"
#include "libs/graph/forecast.h"
#include "libs/matcher_core/lenders.h"
#include "libs/matcher_core/node_book.h"
#include "libs/matcher_core/removal.h"
#include "libs/matcher_core/rows.h"
#include "libs/matcher_core/stop_model.h"

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
  void OnTried(std::function<void(const events::v1::Outcome&)> tried) { tried_ = std::move(tried); }

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
  const std::map<AllocationKey, graph::Placement>& reservations() const {
    return reservations_.map();
  }

 private:
  using SpecKey = std::pair<std::string, uint32_t>;  // job id, part

  struct Spec {
    uint32_t revision = 0;
    uint32_t slots = 0;
    std::string text;
    // Null when the jobspec is bad; `error` then says how.
    std::shared_ptr<const graph::Jobspec> jobspec;
    std::string error;

    // The text says the rest.
    friend bool operator==(const Spec& a, const Spec& b) {
      return a.revision == b.revision && a.slots == b.slots && a.text == b.text;
    }
  };

  // A cycle that is being answered.
  struct Cycle {
    struct Refusal {
      events::v1::Outcome::Kind kind = events::v1::Outcome::KIND_BUSY;
      std::string reason;
      uint32_t slots_now = 0;
      int64_t shortest_s = 0;  // asked for; what is as long or longer is refused too
    };
    const events::v1::CycleRequested& request;
    // By shape, and the windows that are open to it.
    std::unordered_map<std::string, Refusal> refusals;
    std::vector<uint32_t> reserved;               // by rule
    std::string first_reserved;                   // for reasons
    std::vector<std::string> last_reserved = {};  // by rule; the same
    size_t explained = 0;
    bool stops = false;
    std::vector<bool> stopped = {};  // by rule: none of its candidates is tried any more
    // Nodes that are kept from jobs without an end (keeping.h).
    struct Kept {
      std::string for_job;  // empty: none are kept
      std::vector<std::string> nodes;
    };
    Kept kept = {};
    // Those who wait for others to be stopped, and hold the room that they will have.
    std::vector<AllocationKey> room_kept = {};
    std::vector<AllocationKey> awaited = {};  // these others
    // What queues can spare beside whom such wait for; unset: no victims were looked for yet.
    std::optional<Lenders> lenders = {};
    // Those to whom no stop is of use: shape, duration, and who may be stopped.
    std::set<std::string> helpless = {};
    // Of what runs, by the shape of one slot: for so long, or longer, there is no room for another.
    std::unordered_map<std::string, int64_t> no_more = {};

    // Candidates that came with a reservation, the last one first, and those of them whose turn is
    // still to come.
    std::vector<AllocationKey> promised = {};
    // Something came free that reservations did not know of; and after one was looked at.
    bool room_came = false;
    bool room_came_late = false;
    // All windows but these are closed, once the first candidate was looked at.
    bool closed = false;
    std::vector<std::string> open_windows = {};

    void RoomCame() {
      room_came = true;
      room_came_late |= !first_reserved.empty();
    }
    // Queues are independent (libs/model/rules.h).
    bool IsIndependent() const;
    // Who overruns is planned to end by growing steps.
    bool CorrectsPlans() const;
    // Something of the shape had no room for as long a time.
    bool Refuses(const std::string& as, int64_t duration_s) const;
  };

  // Each changes nothing when it fails, and returns what is to be said, if anything.
  absl::Status HandleSpec(const std::string& job_id, const events::v1::PartSpec& part);
  // The same of a job that comes.
  absl::Status HandleArrival(const std::string& job_id,
                             const events::v1::PartSpec& part,
                             const std::string& tenant,
                             Millis now);
  absl::Status HandlePool(const events::v1::PoolConfigured& config, Millis now);
  // Another engine with all that this one has.
  absl::Status ChangeEngine(const events::v1::PoolConfigured& config);
  absl::StatusOr<std::optional<events::v1::InventoryChanged>> HandleNode(
      const events::v1::Node& node);
  std::optional<events::v1::InventoryChanged> HandleNodeGone(const events::v1::NodeGone& gone);
  std::optional<events::v1::InventoryChanged> HandleSynced();
  absl::StatusOr<std::optional<events::v1::CycleAnswered>> HandleCycle(
      const events::v1::CycleRequested& request, Millis now);
  absl::StatusOr<events::v1::Released> HandleRelease(const events::v1::ReleaseRequested& request,
                                                     Millis now);
  // Whole seconds since the pool's beginning.
  int64_t PoolSeconds(Millis now) const { return (now.count() - state_.beginning_ms()) / 1000; }

  static Spec MakeSpec(uint32_t revision, uint32_t slots, std::string text);
  // `changed` with the counts of now.
  events::v1::InventoryChanged Inventory(const std::string& node,
                                         events::v1::InventoryChanged changed) const;

  void TryAll(Cycle* cycle, events::v1::CycleAnswered* answer);
  // Those of the rule in `order` from `tried` on change places with each other.
  void TakeTurns(const Cycle& cycle, uint32_t rule, size_t tried, std::vector<int>* order) const;
  static void SayWho(const events::v1::Candidate& candidate, events::v1::Outcome* outcome);
  void Try(const events::v1::Candidate& candidate, Cycle* cycle, events::v1::Outcome* outcome);
  void Match(const events::v1::Candidate& candidate,
             const graph::Jobspec& jobspec,
             bool promised,
             Cycle* cycle,
             events::v1::Outcome* outcome);
  // Of one without a reservation, beside all that there are.
  void MatchNew(const events::v1::Candidate& candidate,
                const graph::Jobspec& jobspec,
                Cycle* cycle,
                events::v1::Outcome* outcome);
  static int64_t DurationOf(const events::v1::Candidate& candidate);
  // What is refused to one is refused to all of this shape to whom the same windows are open.
  static std::string RefusedAs(const graph::Jobspec& jobspec,
                               const events::v1::Candidate& candidate);
  bool IsRefused(const Cycle& cycle,
                 const events::v1::Candidate& candidate,
                 const graph::Jobspec& jobspec) const;
  graph::MatchRequest RequestOf(const Cycle& cycle,
                                const events::v1::Candidate& candidate,
                                const graph::Jobspec& jobspec) const;
  // `longer_s`: it is to have room for so much longer than it asks for.
  static graph::MatchRequest StartNow(const Cycle& cycle,
                                      const events::v1::Candidate& candidate,
                                      const graph::Jobspec& jobspec,
                                      int64_t longer_s = 0);
  void Allocated(const AllocationKey& key, const Cycle& cycle, events::v1::Outcome* outcome);
  void NotAllocated(const events::v1::Candidate& candidate,
                    const graph::Jobspec& jobspec,
                    const graph::Outcome& matched,
                    Cycle* cycle,
                    events::v1::Outcome* outcome);
  // ------------------------------------------------------------------------------ reservations.cc
  static std::vector<AllocationKey> PlanOf(const events::v1::CycleAnswered& answer);
  class LastPlan;
  // Those of the request's candidates are reserved on the graph; all others are void.
  void TakeUpReservations(Cycle* cycle);
  // Of one that came with a reservation. False: it has none any more, and no answer.
  bool MatchReserved(const events::v1::Candidate& candidate,
                     const graph::Jobspec& jobspec,
                     Cycle* cycle,
                     events::v1::Outcome* outcome);
  // What is reserved for those behind is not in the way of `match`. It is void when that was of
  // use, which `match` tells; `slip` is why.
  bool PassThoseBehind(const events::v1::Slip& slip,
                       Cycle* cycle,
                       const std::function<bool()>& match);
  void Forget(const AllocationKey& key, Cycle* cycle);
  // Nothing is reserved on the graph, which may change now. All are remembered.
  void PutAwayReservations();
  // Remembered no more. REQUIRES: they are put away, or dropped on the graph.
  void ForgetReservationsOf(const std::string& job_id);
  void ForgetReservationsOn(const std::string& node);
  void ForgetReservations(const events::v1::Slip& slip);
  // ---------------------------------------------------------------------------------- forecast.cc
  static int64_t SecondsOf(Millis now) { return now.count() / 1000; }
  // Before it changes.
  void NoteForecast();
  // By the configuration that is to hold from now on.
  void ForecastBy(const events::v1::PoolConfigured& config, Millis now);
  // `tenant`: a namespace; claims are one together.
  void Arrived(const SpecKey& key, const std::string& tenant, Millis now);
  absl::Status RestoreForecast(const std::optional<std::string>& row);
  // Empty: nothing is forecast.
  std::string ForecastRow() const;
  // ---------------------------------------------------------------------------------- promises.cc
  static events::v1::Slip SlipBy(events::v1::Slip::Cause cause, const std::string& by);
  // Why what it was promised is not free in time: somebody has not ended, a window that was open to
  // it is not any more, or nodes are kept for another.
  events::v1::Slip WhyNotInTime(const Cycle& cycle,
                                const events::v1::Candidate& candidate,
                                const graph::Placement& promise) const;
  // A window that keeps something of the promise from the candidate; empty: none does.
  std::string WindowOn(const events::v1::Candidate& candidate,
                       const graph::Placement& promise,
                       int64_t now_s) const;
  // The promise of the key is void.
  void Lose(const AllocationKey& key, const events::v1::Slip& slip);
  // Its promise is void, and it has not been told yet.
  bool HasLost(const Cycle& cycle, const events::v1::Candidate& candidate) const;
  // Which of the answer's promises are firm, and why those that were lost were.
  void SayPromises(const Cycle& cycle, events::v1::CycleAnswered* answer);
  // ------------------------------------------------------------------------------------ elastic.cc
  void MatchElastic(const events::v1::Candidate& candidate,
                    const graph::Jobspec& jobspec,
                    bool promised,
                    Cycle* cycle,
                    events::v1::Outcome* outcome);
  // `jobspec` null: it has none, or a bad one.
  void Grow(const events::v1::Candidate& candidate,
            const graph::Jobspec* jobspec,
            Cycle* cycle,
            events::v1::Outcome* outcome);
  // Up to so many more slots of the jobspec for the key, `first` of them tried first. False: there
  // is room for none.
  bool TakeMore(const events::v1::Candidate& candidate,
                const graph::Jobspec& jobspec,
                uint32_t more,
                uint32_t first,
                Cycle* cycle);
  // Allocated, with all that the key holds now.
  void SayHeld(const AllocationKey& key, events::v1::Outcome* outcome);
  // --------------------------------------------------------------------------------- preemption.cc
  // Of a candidate with victims. True: it has its answer, by starting now or by those whose room it
  // waits for; that room is nobody else's in this cycle. False: victims are of no use to it.
  bool Preempt(const events::v1::Candidate& candidate,
               const graph::Jobspec& jobspec,
               Cycle* cycle,
               events::v1::Outcome* outcome);
  // Somebody may be stopped for it.
  static bool MayPreempt(const events::v1::Candidate& candidate);
  struct Stoppables;
  class NextCycle;
  // The same, of one that cannot start now, by Candidate.stoppable.
  bool PreemptAnybody(const events::v1::Candidate& candidate,
                      const graph::Jobspec& jobspec,
                      Cycle* cycle,
                      events::v1::Outcome* outcome);
  // Those without whom the request fits are out, and none of them can be spared. False: there are
  // none.
  bool ChooseVictims(const events::v1::Candidate& candidate,
                     const graph::MatchRequest& request,
                     const Cycle& cycle,
                     Stoppables* stoppables) const;
  JobToFit FitOf(const events::v1::Candidate& candidate,
                 const graph::MatchRequest& request,
                 const Cycle& cycle) const;
  // Those ahead of the candidate leave it the room that it needs, when those are gone that are out.
  bool StartsBehindThoseAhead(const events::v1::Candidate& candidate,
                              const graph::MatchRequest& request,
                              Removal* removal,
                              Cycle* cycle);
  // Answers with those that are out, and puts them back. The room is kept.
  void AwaitVictims(const graph::MatchRequest& request,
                    Removal* removal,
                    Cycle* cycle,
                    events::v1::Outcome* outcome);
  // All is as if nobody had waited for anybody.
  void ReleaseRoomKept(Cycle* cycle);

  // ------------------------------------------------------------------------------------ windows.cc
  absl::Status HandleWindow(const events::v1::WindowConfigured& window);
  // Those that are over are forgotten.
  void DropPastWindows(Millis now);
  graph::Closure ClosureOf(const events::v1::WindowConfigured& window, int64_t now_s) const;
  // For the candidate those are open that it names, and all others closed.
  void CloseNodes(const events::v1::Candidate& candidate, Cycle* cycle);
  // A sentence, when it would have room now but for a window; else nothing. `why`: without them.
  std::optional<std::string> WhyKept(const events::v1::Candidate& candidate,
                                     const graph::Jobspec& jobspec,
                                     const graph::Explanation& why,
                                     const Cycle& cycle) const;
  // What was said to all of a shape is completed for this one.
  static void SayLength(const events::v1::Candidate& candidate, events::v1::Outcome* outcome);

  // For a candidate that no time can be named for.
  void KeepNodesFor(const events::v1::Candidate& candidate,
                    const graph::Jobspec& jobspec,
                    Cycle* cycle,
                    events::v1::Outcome* outcome) const;
  // It came with a reservation, and its turn has come.
  static bool TakePromise(const events::v1::Candidate& candidate, Cycle* cycle);
  // The line of its queue has stopped.
  bool IsStopped(const Cycle& cycle, const events::v1::Candidate& candidate) const;
  // The line ends behind this one.
  bool Stops(const Cycle& cycle,
             const events::v1::Candidate& candidate,
             const events::v1::Outcome& outcome) const;
  static bool MayReserve(const Cycle& cycle, const events::v1::Candidate& candidate);
  // `reserved`: so many by each rule.
  static bool MayReserve(const events::v1::CycleRequested& request,
                         const std::vector<uint32_t>& reserved,
                         const events::v1::Candidate& candidate);
  // When the pool's time began: `now_s` before the log's time, or a little earlier.
  void LearnBeginning(Millis now, int64_t now_s);
  // Its reason, and how many slots would have room.
  void Explain(const events::v1::Candidate& candidate,
               const graph::Jobspec& jobspec,
               bool never,
               Cycle* cycle,
               events::v1::Outcome* outcome) const;

  // Takes the node out and marks it gone; the keys that held it are added to `changed`.
  void RemoveNode(const std::string& name, events::v1::InventoryChanged* changed);
  void ReleaseAll(const AllocationKey& key);
  // The key's row follows from what the engine holds; returns the placement's hash.
  uint64_t WriteAllocation(const AllocationKey& key);

  // Each keeps for Rollback what was there before.
  void PutSpec(const SpecKey& key, std::optional<Spec> spec);
  // So many more jobs like it, or fewer.
  void Expect(const Spec& spec, int64_t jobs);
  void BeginBatch();

  absl::Status RestoreNodes(const Rows& rows);
  absl::Status RestoreAllocations(const Rows& rows);
  absl::Status RestorePool(const Rows& rows);

  std::string pool_;
  graph::MakeEngine make_engine_;
  std::function<void(const events::v1::Outcome&)> tried_ = [](const events::v1::Outcome&) {};
  std::unique_ptr<graph::Engine> engine_;
  matcher::v1::PoolState state_;
  graph::Forecast forecast_;
  Journaled<std::map<SpecKey, Spec>> specs_;
  NodeBook nodes_;
  // Of the last cycle.
  std::string last_answer_;
  std::vector<AllocationKey> plan_;  // what it reserved, in its order
  // What is promised, and whether it is reserved on the graph at the moment.
  Journaled<std::map<AllocationKey, graph::Placement>> reservations_;
  bool reservations_up_ = false;

  // What is provisional; null before the first message of a batch.
  struct Batch;
  std::unique_ptr<Batch> batch_;
};

}  // namespace fluxqueue::matcher_core
