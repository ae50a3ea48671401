// The inside of QueueCore: the fold of the log, and what each message changes. What is to be done,
// and why, the parts say that view.h lists, from a const view; here it is done, and said.
//
// Private to the library: lifecycle.cc (what admission, commands and time make of a job), facts.cc
// (what binder, cleanup and the matcher say of it), lost_slots.cc (slots that it loses),
// commands.cc (commands and claims), cycles.cc (when the matcher is asked), candidates.cc (of
// whom), answers.cc (what its answers mean), configuration.cc (queues, windows, pool, inventory),
// figures.cc (what is counted), queue_core.cc (the fold and the batch), queue_core_rows.cc (the
// rows).
#pragma once

#include <cstdint>
#include <map>
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
#include "libs/queue_core/cycle_plan.h"
#include "libs/queue_core/elastic.h"
#include "libs/queue_core/job_book.h"
#include "libs/queue_core/planning.h"
#include "libs/queue_core/pool_state.h"
#include "libs/queue_core/preemption.h"
#include "libs/queue_core/promises.h"
#include "libs/queue_core/queue_core.h"
#include "libs/queue_core/replacement.h"
#include "libs/queue_core/view.h"
#include "libs/scheduling/fair_share.h"

#include "absl/status/status.h"

namespace fluxqueue::queue_core {

// So often what has ended and is not confirmed as released is released again.
inline constexpr int64_t kReleaseAgainMs = 60'000;

class QueueCore::Impl {
 public:
  explicit Impl(std::string pool);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  absl::Status Handle(const events::v1::Envelope& message, Millis now, Outputs* out);
  std::optional<Millis> NextDeadline() const;
  Changes Describe() const;
  void Commit();
  void Rollback();
  absl::Status Restore(const Rows& rows);
  uint64_t Fingerprint() const;
  std::map<std::string, QueueFigures> Figures() const;

  const std::string& pool() const { return pool_; }
  const JobBook& book() const { return book_; }
  const PoolState& state() const { return state_; }
  const View& view() const { return view_; }
  std::vector<std::string> LackNodes();

 private:
  using AfterStop = events::v1::JobFact::AfterStop;

  // The same word in another sentence (other numbers) is worth a fact this long after the last.
  static constexpr int64_t kSentenceIntervalMs = 10'000;

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
  // Of a job that waits, and was handed in again because the matcher had lost its jobspec.
  void TakeJobspecAgain(const events::v1::PartSpec& spec, Entry* entry);
  void OnUpdated(const events::v1::JobUpdated& updated);
  void OnWithdrawn(const events::v1::JobWithdrawn& withdrawn);
  // Takes over what is set; true when the fact of the job would show it.
  bool TakeAttributes(const events::v1::JobUpdated& updated, Job& job);
  void UpdateWaiting(Entry* entry, bool resized, bool hold_changed, bool moved);
  // `resized`: it cannot go on with what it holds.
  void UpdateHolding(Entry* entry, bool resized);
  // That it goes on with another size.
  void SaySize(Entry* entry);
  void CancelJob(Entry* entry, const char* reason, std::string message);
  // As WaitingOf says (transitions.h). No fact yet.
  void SetWaiting(Job& job, const char* reason, std::string message);
  // What the cycle in flight answers for the job is not wanted any more.
  void Disown(Job& job);
  // Those that waited for a job of that name wait for this one from now on.
  void BindDependents(Entry* entry);
  void RefuseCycle(Entry* entry);
  // Tells those that depend on the jobs that have ended, and what ends by that.
  void SettleDependents();
  void SettleDependent(Entry* entry, const std::string& ended, bool succeeded);
  // Those whose begin has come.
  void BeginWaiting(const std::vector<Entry*>& due);
  // What is ended with its time, and what is said of the others. One that Kubernetes was to end and
  // did not, as somebody has raised its deadline, is stopped (rules 4).
  void HandleExpired();
  void End(Entry* entry, model::JobState state, const char* reason, std::string message);
  // The next version of the job, as it is now.
  void Say(Entry* entry);
  // The message, and before it who had the command given that is followed, where one is.
  std::string WithWhoAsked(const std::string& message) const;
  // All that it holds, unless slots are added.
  events::v1::ReleaseRequested* Release(const Job& job, bool job_ended);
  // Asks for the last releases that are not confirmed yet: the log may have lost them.
  void ReleaseAgain();
  // What a run that went well took, where the queue predicts.
  void Learn(const Job& job);
  // Where it stands now is in step with what it is: in the book, and in the adaptive queues.
  void Place(Entry* entry);
  void FollowAdaptive(const Entry& entry);
  // The job's next version: why it says what it says, and, where that is another promise than the
  // last, the entry in the ledger.
  void EnterPromise(Job* job);
  events::v1::Envelope* ToPool();

  // -------------------------------------------------------------------------------------- facts.cc
  void OnBound(const events::v1::JobBound& bound);
  void OnBindFailed(const events::v1::BindFailed& failed);
  void OnStopped(const events::v1::JobStopped& stopped);
  void OnVacated(const events::v1::SlotsVacated& vacated);
  // These of its slots alone.
  void ReleaseSlots(const std::vector<uint32_t>& slots, Job& job);
  void OnStarted(const events::v1::JobStarted& started);
  void OnPodEnded(const events::v1::PodEnded& ended);
  void OnEnded(const events::v1::JobEnded& ended);
  void OnNodeLost(const events::v1::JobNodeLost& lost);
  void OnNodeGone(const events::v1::AllocationKey& key, const std::string& node);
  // The job, when the fact applies to this attempt of it; else null, and counted as stale.
  Entry* Applies(std::string_view job_id, uint32_t attempt, model::Fact fact);
  // The same of a fact that shows that a pod of the job was bound: one that is being stopped learns
  // that, and is null.
  Entry* AppliesToBound(std::string_view job_id, uint32_t attempt, model::Fact fact);
  // `grace_ms`: given to its pods; unset: their own, or what it was stopped with before.
  void Stop(Entry* entry,
            AfterStop after,
            std::string reason,
            std::string message,
            std::optional<int64_t> grace_ms = std::nullopt);
  void StopForFailure(Entry* entry, bool may_be_bound, const char* reason, std::string message);
  // A pod of a job that was to be requeued had been bound: it fails instead where no controller
  // makes it again.
  void LearnBound(Entry* entry);
  void Requeue(Entry* entry);

  // --------------------------------------------------------------------------------- lost_slots.cc
  void OnSlotsLost(const events::v1::SlotsLost& lost);
  // There may be room for those that lack slots: all of them are to be named.
  void LookForOtherSlots();
  // The cycle that is asked for names some of them, or none.
  void NoteReplacing(const events::v1::CycleRequested& cycle);
  void Replace(const events::v1::Outcome& outcome);
  void SayNoRoom(const events::v1::Outcome& outcome);

  // ----------------------------------------------------------------------------------- commands.cc
  static absl::Status CheckCommand(const events::v1::CommandAccepted& accepted);
  void OnCommand(const events::v1::CommandAccepted& accepted);
  void FollowCommand(const events::v1::CommandAccepted& accepted);
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
    uint32_t grown = 0;       // of those that would grow, how many were tried
    std::vector<bool> tried;  // by candidate

    // Candidates of the queue that named most, or, where all stand in one line, of all.
    uint32_t Named(bool is_independent) const;
  };

  void OnAnswered(const events::v1::CycleAnswered& answered);
  CycleResult JudgeOutcomes(const events::v1::CycleAnswered& answered);
  // `ahead`: of its answer, that were refused.
  Course JudgeOutcome(const events::v1::Outcome& outcome, size_t ahead);
  // The matcher has lost what the job asks for.
  bool LacksJobspec(const Entry& entry, const events::v1::Outcome& outcome) const;
  void AwaitJobspec(Entry* entry);
  void ReleaseUnwanted(const std::string& job_id, uint32_t attempt, uint32_t part);
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
  void WithdrawPromise(Entry* entry, const events::v1::Slip& slip);
  // The cycle in flight, if it is this one, is closed as if nobody had been tried, and who is to
  // blame is looked for among its candidates.
  void AbandonCycle(uint64_t cycle_id);
  // It was the only candidate.
  void SetAbandonedAside(Entry* entry);
  void SetSuspects(std::vector<std::string> suspects, uint32_t at_once);
  // The cycle was answered: its candidates are not to blame.
  void ClearSuspects(const events::v1::CycleRequested& cycle, const CycleResult& result);
  bool IsCycleDue(bool somebody_left);
  void BeginCycle();
  void AskCycle();
  // What is in flight, under another id.
  void AskCycleAs(uint64_t id);

  // It is later than it was told, but is not told yet: why, for when it is.
  void NoteSlip(Entry* entry, int64_t later_ms, const events::v1::Slip& slip);
  void Grow(const events::v1::Outcome& outcome);
  // Stops those that the answer names, or asks again where the choice does not hold any more.
  void StopVictims(const events::v1::CycleAnswered& answered);
  void StopFor(const Entry& preemptor,
               const events::v1::Outcome& outcome,
               const scheduling::Ahead& ahead);
  // An elastic job is to go on without these slots; or it is said again that it is.
  void Shrink(const Preemption::Stop& stop);
  // It is looked again when slots that the outcome counts on have not come free in time.
  void AwaitSlots(const events::v1::Outcome& outcome);
  // Marks the candidates of the cycle in flight; `marked` false takes the marks away.
  void MarkCandidates(bool marked);

  // --------------------------------------------------------------------------------- candidates.cc
  // Whom a cycle would try first; null: nobody is in line and free to be tried. O(owners in line).
  const Entry* FirstToTry();
  // Who is tried in the next cycle, in which order and how; says who is held back by a limit.
  void ChooseCandidates(events::v1::CycleRequested* cycle);
  // Of adaptive queues, who goes before the order of the line. Those that may not reserve.
  std::unordered_set<const Entry*> PreferAdaptive(scheduling::Pass* pass);
  void SayHeldBack(const std::vector<scheduling::HeldJob>& held);

  // ------------------------------------------------------------------------------ configuration.cc
  void OnQueueConfigured(const events::v1::QueueConfigured& configured);
  void ConfigureAdaptive(const std::string& name);
  // Of `adaptive` (libs/model/rules.h); not in pools with gpus.
  bool HasHindsight() const;
  void OnPoolConfigured(const events::v1::PoolConfigured& configured);
  // Those that nothing in the pool could run are tried again.
  void ComeBack();
  void OnInventoryChanged(const events::v1::InventoryChanged& changed);
  void OnReleased(const events::v1::Released& released);
  // Whose time is over under another configuration of the queue.
  void PlaceRunning(const std::string& queue);
  void OnWindowConfigured(const events::v1::WindowConfigured& configured);
  void SetWindows(Windows windows);

  // ----------------------------------------------------------------------------------- figures.cc
  // A stage of the job that began at `since_ms` is over.
  void Time(Timing::Kind kind, const Job& job, int64_t since_ms);
  // It starts, or is told to start, so much later than it was told before.
  void TimeSlip(const Job& job, int64_t later_ms, const events::v1::Slip& slip);

  const events::v1::PoolConfigured& config() const { return *state_.config; }

  std::string pool_;
  PoolState state_;
  JobBook book_;
  AdaptiveQueues adaptive_;
  // What decides, from what is above.
  const View view_{state_, book_};
  const Planning planning_{view_};
  const Elastic elastic_{view_};
  const Preemption preemption_{view_};
  const Promises promises_{view_};
  const Replacement replacement_{view_};
  const CyclePlanner planner_{view_, &adaptive_};

  // The batch.
  std::optional<PoolState> before_;
  std::vector<JobEvent> events_;
  // While a command is followed: what was done, and by whom; empty: nobody is known.
  std::string done_by_;
  std::vector<AttemptRecord> attempts_;
  std::vector<PromiseRecord> promise_entries_;
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
