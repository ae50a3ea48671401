// The inside of QueueCore. Private to the library: lifecycle.cc (what becomes of a job),
// commands.cc (commands and claims), cycles.cc (what is asked of the matcher), candidates.cc (of
// whom), elastic.cc (of whom that runs, for more), configuration.cc (queues, pool, inventory),
// windows.cc (what is kept for a time), promises.cc (what is told of starts), bounds.cc (who runs
// for too long), figures.cc (what is counted),
// queue_core.cc (the fold and the rows).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/model/job_state.h"
#include "libs/queue_core/adaptive_queues.h"
#include "libs/queue_core/job_book.h"
#include "libs/queue_core/pool_state.h"
#include "libs/queue_core/queue_core.h"
#include "libs/scheduling/fair_share.h"
#include "libs/scheduling/stop_list.h"
#include "libs/scheduling/victims.h"

#include "absl/status/status.h"

namespace fluxqueue::queue_core {

// "2026-11-22T11:10:33Z"
std::string FormatTime(int64_t unix_ms);

class QueueCore::Impl {
 public:
  explicit Impl(std::string pool);

  absl::Status Handle(const events::v1::Envelope& message, Millis now, Outputs* out);
  std::optional<Millis> NextDeadline() const;
  Changes Describe() const;
  void Commit();
  void Rollback();
  absl::Status Restore(const Rows& rows);
  uint64_t Fingerprint() const;
  std::optional<Explanation> Explain(std::string_view job_id) const;
  static size_t PositionOf(const Entry& entry);
  std::map<std::string, QueueFigures> Figures() const;

  const std::string& pool() const { return pool_; }
  const JobBook& book() const { return book_; }
  const PoolState& state() const { return state_; }

 private:
  using AfterStop = events::v1::JobFact::AfterStop;

  // --------------------------------------------------------------------------------- queue_core.cc
  // A poison status when the message can be no part of this pool's history. Changes nothing.
  absl::Status Check(const events::v1::Envelope& message) const;
  absl::Status CheckFact(std::string_view job_id, uint32_t attempt, model::Fact fact) const;
  // Who sees workloads in the cluster has nothing to say of a claim.
  absl::Status CheckNoClaim(const events::v1::Envelope& message) const;
  void Fold(const events::v1::Envelope& message);
  void AdvanceTo(int64_t now_ms);
  // A reservation may have come due.
  void OnTick();
  std::string PoolRow() const;
  absl::Status RestorePool(const Rows& rows);
  absl::Status RestoreJobs(const Rows& rows);

  // ---------------------------------------------------------------------------------- lifecycle.cc
  void OnSubmitted(const events::v1::JobSubmitted& submitted);
  void OnUpdated(const events::v1::JobUpdated& updated);
  void OnWithdrawn(const events::v1::JobWithdrawn& withdrawn);
  void OnBound(const events::v1::JobBound& bound);
  void OnBindFailed(const events::v1::BindFailed& failed);
  void OnStopped(const events::v1::JobStopped& stopped);
  void OnStarted(const events::v1::JobStarted& started);
  void OnPodEnded(const events::v1::PodEnded& ended);
  void OnEnded(const events::v1::JobEnded& ended);
  void OnNodeLost(const events::v1::JobNodeLost& lost);
  void OnNodeGone(const events::v1::AllocationKey& key, const std::string& node);

  // The job, when the fact applies to this attempt of it; else null, and counted as stale.
  Entry* Applies(std::string_view job_id, uint32_t attempt, model::Fact fact);
  // Takes over what is set; true when the fact of the job would show it.
  bool TakeAttributes(const events::v1::JobUpdated& updated, Job& job);
  void UpdateWaiting(Entry* entry, bool resized, bool hold_changed, bool moved);
  void UpdateHolding(Entry* entry, bool resized);
  void CancelJob(Entry* entry, const char* reason, std::string message);
  // Pending with this reason; or Held; or Submitted, where its queue does not exist. Says nothing
  // yet.
  void SetWaiting(Job& job, const char* reason, std::string message);
  // What the cycle in flight answers for the job is not wanted any more.
  void Disown(Job& job);
  void Stop(Entry* entry, AfterStop after, std::string reason, std::string message);
  void StopForFailure(Entry* entry, bool may_be_bound, const char* reason, std::string message);
  // A pod of a job that was to be requeued had been bound: what nobody makes again fails instead.
  void LearnBound(Entry* entry);
  void Requeue(Entry* entry);
  void End(Entry* entry, model::JobState state, const char* reason, std::string message);
  // The next version of the job, as it is now.
  void Say(Entry* entry);
  void Release(const Job& job, bool job_ended, std::optional<uint32_t> slot);

  // ------------------------------------------------------------------------------- dependencies.cc
  // Binds to live jobs what the new job depends on, and takes away what is met already. Not empty:
  // a condition that can never come true.
  std::string Resolve(Job& job);
  // Those that waited for a job of that name wait for this one from now on.
  void BindDependents(Entry* entry);
  bool WaitsForItself(const Entry& entry);
  void RefuseCycle(Entry* entry);
  // Tells those that depend on the jobs that have ended, and what ends by that.
  void SettleDependents();
  void SettleDependent(Entry* entry, const std::string& ended, bool succeeded);
  std::string DependencySentence(const Job& job) const;

  // ----------------------------------------------------------------------------------- planning.cc
  int64_t EffectiveDuration(const Job& job) const;
  bool Predicts(const Job& job) const;
  // What a run that went well took, where the queue predicts.
  void Learn(const Job& job);
  // Where the queue predicts, and the prediction is trusted.
  std::optional<int64_t> Predicted(const Job& job) const;
  // What a plan counts with: what the job declares, as promises rest on it; of one that declares
  // nothing what is predicted, else the queue's default. 0: it has no end. (Rules 1 and 2: what is
  // predicted, and no more than both.)
  int64_t PlannedDuration(const Job& job) const;
  // What it will rather take: who is short goes first where one may pass another. No more than
  // planned.
  int64_t ExpectedDuration(const Job& job) const;
  // What a plan may count on at most: 0: nothing bounds it.
  int64_t UpperBound(const Job& job) const;
  // What runs for longer than planned is planned to end by steps (libs/model/rules.h).
  bool CorrectsPlans() const;
  // Those whose begin has come.
  void BeginWaiting(const std::vector<Entry*>& due);
  // Where it stands now is in step with what it is: in the book, and in the adaptive queues.
  void Place(Entry* entry);
  void FollowAdaptive(const Entry& entry);

  // ----------------------------------------------------------------------------------- commands.cc
  static absl::Status CheckCommand(const events::v1::CommandAccepted& accepted);
  void OnCommand(const events::v1::CommandAccepted& accepted);
  // A claim that was allocated a moment ago: it runs.
  void StartClaim(Entry* entry);

  // ------------------------------------------------------------------------------------- cycles.cc
  // What an outcome was for the course of the cycle.
  enum class Course { kUnwanted, kAllocated, kMoved, kRefused };
  // What became of the candidates of a rule.
  struct RuleResult {
    uint32_t named = 0;
    uint32_t tried = 0;
    uint32_t refused = 0;
  };
  // What became of a cycle.
  struct CycleResult {
    uint32_t allocated = 0;
    bool progressed = false;
    std::vector<uint64_t> refused;  // by submission
    std::vector<RuleResult> rules;
    uint32_t grown = 0;  // of those that would grow, how many were tried
    std::set<std::string_view> tried;

    // Candidates of the queue that named most, or, where all stand in one line, of all.
    uint32_t Named(bool is_independent) const;
  };

  // Queues are independent (libs/model/rules.h).
  bool IsIndependent() const;
  // A job that is overdue asks for one cycle, not for one in each minute (libs/model/rules.h).
  bool AsksOnceWhenOverdue() const;
  void OnAnswered(const events::v1::CycleAnswered& answered);
  CycleResult JudgeOutcomes(const events::v1::CycleAnswered& answered);
  // `ahead`: of its answer, that were refused.
  Course JudgeOutcome(const events::v1::Outcome& outcome, size_t ahead);
  void ReleaseUnwanted(const events::v1::Outcome& outcome);
  void Allocate(Entry* entry, const events::v1::Outcome& outcome, size_t ahead);
  void Refuse(Entry* entry, const char* reason, const events::v1::Outcome& outcome);
  void Reserve(Entry* entry, const events::v1::Outcome& outcome);
  Course FindUnsatisfiable(Entry* entry, const events::v1::Outcome& outcome);
  // When a job that nothing in the pool can run is rejected; nothing: never.
  std::optional<int64_t> RejectedAt(const Job& job) const;
  // The first of each queue that cannot start, since when it is that.
  void NoteFirst(const events::v1::CycleRequested& cycle, const CycleResult& result);
  void CloseCycle(const CycleResult& result);
  // A queue of whose candidates none was refused has more in line.
  bool SomeQueueGoesOn(const events::v1::CycleRequested& cycle, const CycleResult& result) const;
  void WithdrawPromises(const CycleResult& result);
  void LookAgainInTime(const events::v1::CycleRequested& cycle);
  // When the first of the queue has a right to a reservation; nothing: never.
  std::optional<int64_t> OverdueAt(const Entry& entry) const;
  bool IsCycleDue(bool somebody_left);
  void BeginCycle();
  void AskCycle();

  // ----------------------------------------------------------------------------------- promises.cc
  // Promises are firm or forecasts, and durations may bind (libs/model/rules.h).
  bool HasFirmPromises() const;
  bool IsFirm(const Entry& entry, const events::v1::Outcome& outcome) const;
  // Why a job starts later than it was told, or its promise is withdrawn: as the matcher says, else
  // as far as the core knows.
  events::v1::Slip WhyLater(const Job& job, const events::v1::Slip& said) const;
  // Others are stopped for it, so that it starts sooner than it was promised.
  bool AwaitsVictims(const Job& job, const events::v1::Outcome& outcome) const;
  // It is later than it was told, but is not told yet: why, for when it is.
  void NoteSlip(Entry* entry, int64_t later_ms, const events::v1::Slip& slip);
  // The same, of one that no cycle names any more.
  events::v1::Slip WhyNotNamed(const Entry& entry) const;
  std::string SlipSentence(const events::v1::Slip& slip) const;
  // The job's next version: why it says what it says, and, where that is another promise than the
  // last, the entry in the ledger.
  void EnterPromise(Job* job);

  // ------------------------------------------------------------------------------------- bounds.cc
  // The queue that the job stands in; null: there is none, or durations do not bind.
  const events::v1::QueueConfigured* BindingQueue(const Job& job) const;
  // By its queue, at the latest when its bound is over; no claim, which the core ends itself.
  bool EndsWithItsTime(const Job& job) const;
  // What has an end is ended in time. `planned_ms`: PlannedDuration.
  bool IsEnforced(const Job& job, int64_t planned_ms) const;
  // As it is allocated: so long after its start Kubernetes ends it. 0: it does not.
  int64_t EndsAfter(const Job& job) const;
  // Of one that runs: when its time is over, and something is to be done. 0: never.
  int64_t ExpiryOf(const Job& job) const;
  // What is ended with its time, and what is said of the others.
  void HandleExpired();
  // Whose time is over under another configuration of the queue.
  void PlaceRunning(const std::string& queue);

  // --------------------------------------------------------------------------------- candidates.cc
  scheduling::PassOptions PassNow() const;
  // Whom a cycle would try first; null: nobody is in line and free to be tried. O(owners in line).
  const Entry* FirstToTry();
  // Who is tried in the next cycle, in which order and how; says who is held back by a limit.
  void ChooseCandidates(events::v1::CycleRequested* cycle);
  // Of adaptive queues, who goes before the order of the line. Those that may not reserve.
  std::unordered_set<const Entry*> PreferAdaptive(scheduling::Pass* pass);
  void GiveBackfillTurns(const std::vector<const Entry*>& entries,
                         events::v1::CycleRequested* cycle);
  void AddCandidate(const Entry& entry,
                    uint32_t rule,
                    bool may_reserve,
                    bool is_overdue,
                    events::v1::CycleRequested* cycle);
  // The first of each queue that has waited as that for too long. They go before all that no
  // priority puts ahead of them.
  std::set<const Entry*> AdvanceOverdue(std::vector<const Entry*>* entries) const;
  void SayHeldBack(const std::vector<scheduling::HeldJob>& held);
  // Somebody may pass the head of the line.
  bool Backfills() const;
  // Jobs wait in more than one queue.
  bool HasSeveralLines() const;
  // Marks the candidates of the cycle in flight; `marked` false takes the marks away.
  void MarkCandidates(bool marked);

  // ------------------------------------------------------------------------------------ elastic.cc
  // Of the candidates that are elastic: up to how many slots they may start with.
  void SetMostSlots(const std::vector<const Entry*>& entries,
                    scheduling::Pass* pass,
                    events::v1::CycleRequested* cycle) const;
  // Those who hold some of their slots and would have more, behind all who wait. `cut`: queues of
  // which no more were named. `rule_of`: of a queue, in the cycle.
  void AddGrowth(const std::set<const Queue*>& cut,
                 scheduling::Pass* pass,
                 events::v1::CycleRequested* cycle,
                 const std::function<uint32_t(const Queue*)>& rule_of);
  // Everybody in line is named, or a limit holds him back.
  bool AllAreTried(const std::set<const Queue*>& cut,
                   const events::v1::CycleRequested& cycle) const;
  void JudgeGrowth(const events::v1::Outcome& outcome);
  // `tried`: how many that would grow.
  void CloseGrowth(const events::v1::CycleAnswered& answered, uint32_t tried);
  // There may be room to grow that was not there.
  void FollowGrowth(bool somebody_left);
  // A cycle would come to those who may grow. REQUIRES: somebody is in line.
  bool IsGrowthDue() const;

  // --------------------------------------------------------------------------------- preemption.cc
  // All that hold something, by submission; both lists in that order.
  struct Holders {
    std::vector<Entry*> entries;
    std::vector<scheduling::HoldingJob> jobs;
  };
  // By the pool's rules: among all that may be stopped. Else among a few.
  bool MatcherChooses() const;
  // Tells for the first candidates who may be stopped for them. `entries`: the candidates.
  void NameVictims(const std::vector<const Entry*>& entries,
                   events::v1::CycleRequested* cycle) const;
  // Stops those that the answer names, or asks again where the choice does not hold any more.
  void StopVictims(const events::v1::CycleAnswered& answered);
  bool StopFor(const Entry& preemptor,
               const events::v1::Outcome& outcome,
               const scheduling::Ahead& ahead);
  // `preemptors`: the candidates that have a choice, in the order of the list's.
  static void WriteStopList(const scheduling::StopList& list,
                            const Holders& holders,
                            const std::vector<events::v1::Candidate*>& preemptors,
                            events::v1::CycleRequested* cycle);
  // Those of the outcome that are to be stopped by now; nothing: not all of them may be.
  std::optional<std::vector<scheduling::Victim>> JudgeChoice(const Entry& preemptor,
                                                             const events::v1::Outcome& outcome,
                                                             const Holders& holders,
                                                             const scheduling::Ahead& ahead) const;
  // The same, of those that a list of a few names. False: it is empty.
  std::optional<std::vector<scheduling::Victim>> FindVictims(const Entry& preemptor,
                                                             const events::v1::Outcome& outcome,
                                                             const Holders& holders,
                                                             const scheduling::Ahead& ahead) const;
  bool NameVictimsOf(const Entry& entry,
                     const Holders& holders,
                     const scheduling::Ahead& ahead,
                     events::v1::Candidate* candidate) const;
  Holders HoldersNow() const;
  // REQUIRES: the entry stands in line.
  std::vector<scheduling::Victim> VictimsFor(const Entry& entry,
                                             const Holders& holders,
                                             const scheduling::Ahead& ahead) const;
  bool Holds(const events::v1::AllocationKey& key) const;

  // ------------------------------------------------------------------------------ configuration.cc
  void OnQueueConfigured(const events::v1::QueueConfigured& configured);
  void ConfigureAdaptive(const std::string& name);
  // `adaptive` is guarded (libs/model/rules.h).
  bool IsGuarded() const;
  // Accounts of the pool, of which rules before version 4 know nothing (libs/model/rules.h).
  bool HasAccounts() const;
  void OnPoolConfigured(const events::v1::PoolConfigured& configured);
  // Those that nothing in the pool could run are tried again.
  void ComeBack();
  void OnInventoryChanged(const events::v1::InventoryChanged& changed);
  void OnReleased(const events::v1::Released& released);

  // ------------------------------------------------------------------------------------ windows.cc
  static absl::Status CheckWindow(const events::v1::WindowConfigured& configured);
  void OnWindowConfigured(const events::v1::WindowConfigured& configured);
  // Those that are over are forgotten.
  void EndWindows();
  void SetWindows(Windows windows);
  // When the next one is over.
  std::optional<int64_t> NextWindowEnd() const;
  // Those that the job may use.
  void NameWindows(const Job& job, events::v1::Candidate* candidate) const;
  // The first one that the job may not use and would meet if it started now; null: none.
  const events::v1::WindowConfigured* WindowAhead(const Job& job) const;

  // ------------------------------------------------------------------------------------ explain.cc
  void ExplainPlace(const Entry& entry, Explanation* explanation) const;
  void ExplainFactors(const Entry& entry, Explanation* explanation) const;  // place_factors.cc
  void ExplainRefusal(const Job& job, Explanation* explanation) const;
  void ExplainSooner(const Entry& entry, Explanation* explanation) const;

  // ----------------------------------------------------------------------------------- figures.cc
  // A stage of the job that began at `since_ms` is over.
  void Time(Timing::Kind kind, const Job& job, int64_t since_ms);
  // It starts, or is told to start, so much later than it was told before.
  void TimeSlip(const Job& job, int64_t later_ms, const events::v1::Slip& slip);

  events::v1::Envelope* ToPool();
  const events::v1::PoolConfigured& config() const { return *state_.config; }

  std::string pool_;
  PoolState state_;
  JobBook book_;
  AdaptiveQueues adaptive_;

  // The batch.
  std::optional<PoolState> before_;
  std::vector<JobEvent> events_;
  std::vector<AttemptRecord> attempts_;
  std::vector<PromiseRecord> promises_;
  std::vector<CycleRequest> cycles_requested_;
  std::vector<uint64_t> cycles_answered_;

  // Jobs that have ended, of which those that depend on them have not been told.
  struct Ended {
    std::string id;
    bool succeeded;
  };
  std::vector<Ended> ended_;

  // The message being folded.
  Outputs* out_ = nullptr;
  const events::v1::CycleAnswered* answered_ = nullptr;
  // Why the next version that is said withdraws a promise, or says a later one.
  events::v1::Slip slip_;
  // Whoever was promised a start, and some that were; and those that were left out in this batch.
  std::set<std::string> promised_;
  std::vector<std::string> promised_left_out_;
};

}  // namespace fluxqueue::queue_core
