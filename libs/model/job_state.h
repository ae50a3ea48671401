// The life of a job: its states, the facts that move it, and the one table that says which fact
// does what in which state.
//
//   Submitted ─► Pending ─► Allocated ─► Bound ─► Running ─► Succeeded │ Failed
//        ▲          │  ▲         │          │         │
//        └──────────┤  │         └──────────┴─────────┴──► Stopping ─► Cancelled │ Failed
//    (queue gone)   │  └───────────────── requeued ───────────┘
//                   ├─► Rejected   (bad, or its queue waits for no other nodes)
//                   │      └─► Submitted or Pending: handed in again, as a new attempt
//                   └─► Cancelled
//
// An end has no exit but that one. A job that was rejected has never run in the attempt that was,
// and its workload still waits: admission submits it once more, and names the version and the
// attempt that it goes on from (kResubmitted).
//
// A later fact of the world implies the earlier ones, because facts of different origin overtake
// each other: JobStarted in Allocated makes the job Running, JobEnded ends it in every state.
// Whatever may have started leaves by Stopping, so that nothing is given away that something still
// runs on.
//
// The table knows states and facts only. A fact that names an older attempt is stale and one that
// names a newer attempt is impossible, before the table is asked. Where it leaves a choice (`to`
// has several states), the queue core decides by what the job is.
//
// A claim is a job without pods (libs/model/workload.h): nothing of it starts or stops anywhere.
// The queue itself says that it runs, with its allocation, and that it has ended: cancelled,
// expired or failed with a node, without Stopping, as nothing runs on what it held. No binder and
// no cleanup speaks of it.
//
//   Pending ─► Allocated ─► Running ─► Succeeded (its time is over) │ Cancelled │ Failed (node
//   gone)
//
// Pure and constexpr; safe from every thread.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

namespace fluxqueue::model {

// The numbers are those of events.v1.JobState.
enum class JobState : uint8_t {
  kNone = 0,       // not known here (yet, or any more)
  kSubmitted = 1,  // its FluxQueue does not exist; who makes the FluxQueue moves it on
  kPending = 2,    // waits; the matcher's answers move it on
  kAllocated = 3,  // holds its exact nodes; the binder moves it on (a claim: the queue, at once)
  kBound = 4,      // every slot has its pod; cleanup moves it on, when the first pod runs
  kRunning = 5,    // cleanup moves it on, when the workload has ended (a claim: the queue)
  kStopping = 6,   // being stopped; the binder moves it on, or cleanup if it ends by itself
  kSucceeded = 7,  // the end
  kFailed = 8,     // the end
  kCancelled = 9,  // the end
  kRejected = 10,  // the end, unless admission submits it again
};
inline constexpr int kJobStates = 11;

// "Pending" …, as in the table queue.jobs and in FluxJob; "None" for kNone.
std::string_view Name(JobState state);
std::optional<JobState> ParseJobState(std::string_view name);

// Whom a job in this state waits for, for people: "the matcher". Empty for terminal states.
std::string_view WaitsFor(JobState state);

// A set of states.
class StateSet {
 public:
  constexpr StateSet() = default;
  constexpr StateSet(std::initializer_list<JobState> states) {
    for (JobState state : states) bits_ = static_cast<uint16_t>(bits_ | Bit(state));
  }

  constexpr bool Has(JobState state) const { return (bits_ & Bit(state)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  // The one state of a set of one.
  constexpr std::optional<JobState> Only() const {
    std::optional<JobState> only;
    for (int i = 0; i < kJobStates; ++i) {
      if (!Has(static_cast<JobState>(i))) continue;
      if (only.has_value()) return std::nullopt;
      only = static_cast<JobState>(i);
    }
    return only;
  }
  constexpr void Add(JobState state) { bits_ = static_cast<uint16_t>(bits_ | Bit(state)); }

  friend constexpr StateSet operator|(StateSet a, StateSet b) {
    StateSet both;
    both.bits_ = static_cast<uint16_t>(a.bits_ | b.bits_);
    return both;
  }
  friend constexpr bool operator==(StateSet, StateSet) = default;

 private:
  static constexpr uint16_t Bit(JobState state) {
    return static_cast<uint16_t>(1U << static_cast<unsigned>(state));
  }
  uint16_t bits_ = 0;
};

// The names of a set, in the order of the enum: the guard of an SQL update, `state = ANY($1)`.
std::vector<std::string_view> Names(StateSet states);

using enum JobState;
inline constexpr StateSet kTerminalStates = {kSucceeded, kFailed, kCancelled, kRejected};
// Pods of it may be bound: it leaves by Stopping or by its own end.
inline constexpr StateSet kHoldingStates = {kAllocated, kBound, kRunning, kStopping};
inline constexpr StateSet kWaitingStates = {kSubmitted, kPending};
inline constexpr StateSet kLiveStates = kWaitingStates | kHoldingStates;

constexpr bool IsTerminal(JobState state) {
  return kTerminalStates.Has(state);
}

// What can be learnt about a job, and from whom.
enum class Fact : uint8_t {
  kSubmitted,      // admission: JobSubmitted; a command: SubmitClaim
  kResubmitted,    // admission: JobSubmitted that names the rejected job that it goes on from
  kUpdated,        // admission: JobUpdated without a new jobspec; commands
  kResized,        // admission: JobUpdated with a new revision of the jobspec
  kCancelled,      // admission: JobUpdated with cancel; a command
  kWithdrawn,      // admission: JobWithdrawn
  kQueueAppeared,  // admission: QueueConfigured
  kQueueVanished,  // admission: QueueConfigured, deleted
  kAllocated,      // matcher: an outcome of a cycle
  kRefused,        // matcher: busy or reserved
  kUnsatisfiable,  // matcher: nothing here could run it, as the nodes are now
  kInvalid,        // matcher: the jobspec itself is bad
  kNodeGone,       // matcher: InventoryChanged.broken
  kBound,          // binder: JobBound
  kBindFailed,     // binder: BindFailed
  kStopped,        // binder: JobStopped
  kVacated,        // binder: SlotsVacated
  kSlotsLost,      // binder: SlotsLost
  kStarted,        // cleanup: JobStarted; of a claim the queue itself
  kPodEnded,       // cleanup: PodEnded
  kEnded,          // cleanup: JobEnded
  kNodeLost,       // cleanup: JobNodeLost
  kExpired,        // the queue itself: the time of a claim is over
};
inline constexpr int kFacts = 23;

std::string_view Name(Fact fact);

enum class Verdict : uint8_t {
  kApply,       // it changes the job (perhaps only its attributes)
  kStale,       // too late, or known already: counted and dropped
  kImpossible,  // a defect of ours: dead letter and alarm
};

std::string_view Name(Verdict verdict);

struct Transition {
  Verdict verdict = Verdict::kImpossible;
  // Applied: the states that the job can be in afterwards. Else empty.
  StateSet to;

  friend constexpr bool operator==(const Transition&, const Transition&) = default;
};

// Of the versions of a job so many of the last are kept in its history, at least.
inline constexpr uint64_t kKeptEvents = 1000;

namespace internal {

struct Rule {
  // In the order in which one reads a rule; the members stand so that none is padded.
  constexpr Rule(Fact what, StateSet when, Verdict judged, StateSet then = {})
      : fact(what), verdict(judged), from(when), to(then) {}

  Fact fact;
  Verdict verdict;
  StateSet from;
  StateSet to;
};

inline constexpr StateSet kEnds = {kSucceeded, kFailed, kCancelled};
inline constexpr StateSet kNothing = {kNone};
inline constexpr StateSet kStarted = {kBound, kRunning};

// Terminal states have no exit but the one of Rejected: else every fact is stale there, which is
// why no rule names them. Of a job that is not known every fact but its submission is stale too: it
// has ended and is forgotten.
inline constexpr Rule kRules[] = {
    {Fact::kSubmitted, kNothing, Verdict::kApply, {kSubmitted, kPending}},
    {Fact::kSubmitted, kLiveStates, Verdict::kStale},
    {Fact::kResubmitted, {kRejected}, Verdict::kApply, {kSubmitted, kPending}},
    {Fact::kResubmitted, kLiveStates, Verdict::kStale},

    // Its queue may change to one that does not exist, or to one that does.
    {Fact::kUpdated, kWaitingStates, Verdict::kApply, kWaitingStates},
    {Fact::kUpdated, {kAllocated}, Verdict::kApply, {kAllocated}},
    {Fact::kUpdated, {kBound}, Verdict::kApply, {kBound}},
    {Fact::kUpdated, {kRunning}, Verdict::kApply, {kRunning}},
    {Fact::kUpdated, {kStopping}, Verdict::kApply, {kStopping}},

    {Fact::kResized, kWaitingStates, Verdict::kApply, kWaitingStates},
    {Fact::kResized, {kAllocated, kStopping}, Verdict::kApply, {kStopping}},
    // What nobody would make again goes on with what it has.
    {Fact::kResized, {kBound}, Verdict::kApply, {kBound, kStopping}},
    {Fact::kResized, {kRunning}, Verdict::kApply, {kRunning, kStopping}},

    {Fact::kCancelled, kWaitingStates, Verdict::kApply, {kCancelled}},
    {Fact::kCancelled, {kAllocated, kBound, kStopping}, Verdict::kApply, {kStopping}},
    // Nothing of a claim has to be stopped.
    {Fact::kCancelled, {kRunning}, Verdict::kApply, {kStopping, kCancelled}},
    {Fact::kWithdrawn, kWaitingStates, Verdict::kApply, {kCancelled}},
    {Fact::kWithdrawn, kHoldingStates, Verdict::kApply, {kStopping}},

    {Fact::kQueueAppeared, {kSubmitted}, Verdict::kApply, {kPending}},
    {Fact::kQueueAppeared, {kPending}, Verdict::kStale},
    {Fact::kQueueAppeared, kHoldingStates, Verdict::kStale},
    {Fact::kQueueVanished, {kPending}, Verdict::kApply, {kSubmitted}},
    {Fact::kQueueVanished, {kSubmitted}, Verdict::kStale},
    {Fact::kQueueVanished, kHoldingStates, Verdict::kStale},

    // Judged for the attempt that was asked for. In Submitted nothing of the present attempt was
    // asked for; what a holding job holds was answered once.
    {Fact::kAllocated, {kPending}, Verdict::kApply, {kAllocated}},
    {Fact::kAllocated, {kSubmitted}, Verdict::kImpossible},
    {Fact::kAllocated, kHoldingStates, Verdict::kImpossible},
    {Fact::kRefused, {kPending}, Verdict::kApply, {kPending}},
    {Fact::kRefused, {kSubmitted}, Verdict::kImpossible},
    {Fact::kRefused, kHoldingStates, Verdict::kImpossible},
    {Fact::kUnsatisfiable, {kPending}, Verdict::kApply, {kPending, kRejected}},
    {Fact::kUnsatisfiable, {kSubmitted}, Verdict::kImpossible},
    {Fact::kUnsatisfiable, kHoldingStates, Verdict::kImpossible},
    {Fact::kInvalid, {kPending}, Verdict::kApply, {kRejected}},
    {Fact::kInvalid, {kSubmitted}, Verdict::kImpossible},
    {Fact::kInvalid, kHoldingStates, Verdict::kImpossible},

    {Fact::kNodeGone, {kAllocated, kBound}, Verdict::kApply, {kStopping}},
    // Whoever holds a claim believes to have its nodes, so it is not given others.
    {Fact::kNodeGone, {kRunning}, Verdict::kApply, {kStopping, kFailed}},
    {Fact::kNodeGone, {kStopping}, Verdict::kStale},
    {Fact::kNodeGone, kWaitingStates, Verdict::kImpossible},

    {Fact::kBound, {kAllocated}, Verdict::kApply, {kBound}},
    {Fact::kBound, kStarted, Verdict::kStale},
    // Learnt too late to stay, early enough to know that a pod was bound.
    {Fact::kBound, {kStopping}, Verdict::kApply, {kStopping}},
    {Fact::kBound, kWaitingStates, Verdict::kImpossible},

    {Fact::kBindFailed, {kAllocated, kBound, kRunning}, Verdict::kApply, {kStopping}},
    {Fact::kBindFailed, {kStopping}, Verdict::kStale},
    {Fact::kBindFailed, kWaitingStates, Verdict::kImpossible},

    // Requeued it waits again; or it has failed, or was cancelled.
    {Fact::kStopped, {kStopping}, Verdict::kApply, {kSubmitted, kPending, kFailed, kCancelled}},
    {Fact::kStopped, {kAllocated, kBound, kRunning}, Verdict::kImpossible},
    {Fact::kStopped, kWaitingStates, Verdict::kImpossible},

    // Only what has all its pods gives slots back while it goes on; what stops gives all of them.
    {Fact::kVacated, {kBound}, Verdict::kApply, {kBound}},
    {Fact::kVacated, {kRunning}, Verdict::kApply, {kRunning}},
    {Fact::kVacated, {kStopping}, Verdict::kStale},
    {Fact::kVacated, {kAllocated}, Verdict::kImpossible},
    {Fact::kVacated, kWaitingStates, Verdict::kImpossible},

    // Of one whose pods are not all bound yet, one that was bound may have been put out.
    {Fact::kSlotsLost, {kAllocated}, Verdict::kApply, {kAllocated}},
    {Fact::kSlotsLost, {kBound}, Verdict::kApply, {kBound}},
    {Fact::kSlotsLost, {kRunning}, Verdict::kApply, {kRunning}},
    {Fact::kSlotsLost, {kStopping}, Verdict::kStale},
    {Fact::kSlotsLost, kWaitingStates, Verdict::kImpossible},

    {Fact::kStarted, {kAllocated, kBound}, Verdict::kApply, {kRunning}},
    {Fact::kStarted, {kRunning}, Verdict::kStale},
    {Fact::kStarted, {kStopping}, Verdict::kApply, {kStopping}},
    {Fact::kStarted, kWaitingStates, Verdict::kImpossible},

    {Fact::kPodEnded, {kAllocated}, Verdict::kApply, {kAllocated}},
    {Fact::kPodEnded, {kBound}, Verdict::kApply, {kBound}},
    {Fact::kPodEnded, {kRunning}, Verdict::kApply, {kRunning}},
    {Fact::kPodEnded, {kStopping}, Verdict::kApply, {kStopping}},
    {Fact::kPodEnded, kWaitingStates, Verdict::kImpossible},

    {Fact::kEnded, kLiveStates, Verdict::kApply, kEnds},

    {Fact::kNodeLost, {kAllocated, kBound, kRunning}, Verdict::kApply, {kStopping}},
    {Fact::kNodeLost, {kStopping}, Verdict::kApply, {kStopping}},
    {Fact::kNodeLost, kWaitingStates, Verdict::kImpossible},

    {Fact::kExpired, {kRunning}, Verdict::kApply, {kSucceeded}},
    {Fact::kExpired, {kAllocated, kBound, kStopping}, Verdict::kImpossible},
    {Fact::kExpired, kWaitingStates, Verdict::kImpossible},
};

using Table = std::array<std::array<Transition, kFacts>, kJobStates>;

// How many rules speak about a pair; the table is right when it is one for each live state, and
// for the two that a job comes from when it is submitted.
constexpr int Mentions(JobState state, Fact fact) {
  int mentions = 0;
  for (const Rule& rule : kRules) mentions += rule.fact == fact && rule.from.Has(state) ? 1 : 0;
  return mentions;
}

constexpr bool Complete() {
  for (int state = 0; state < kJobStates; ++state) {
    for (int fact = 0; fact < kFacts; ++fact) {
      const auto from = static_cast<JobState>(state);
      const auto what = static_cast<Fact>(fact);
      const bool submitted = (from == kNone && what == Fact::kSubmitted) ||
                             (from == kRejected && what == Fact::kResubmitted);
      if (Mentions(from, what) != (kLiveStates.Has(from) || submitted ? 1 : 0)) {
        return false;
      }
    }
  }
  return true;
}
static_assert(Complete(), "a pair (state, fact) has no rule, or more than one");

constexpr Table MakeTable() {
  Table table;
  for (int state = 0; state < kJobStates; ++state) {
    for (int fact = 0; fact < kFacts; ++fact) table[state][fact] = {Verdict::kStale, {}};
    for (const Rule& rule : kRules) {
      if (!rule.from.Has(static_cast<JobState>(state))) continue;
      table[state][static_cast<int>(rule.fact)] = {rule.verdict, rule.to};
    }
  }
  return table;
}
inline constexpr Table kTable = MakeTable();

}  // namespace internal

constexpr Transition Judge(JobState state, Fact fact) {
  return internal::kTable[static_cast<int>(state)][static_cast<int>(fact)];
}

// The states from which some fact leads to `to`, itself included where a fact leaves it there.
constexpr StateSet Before(JobState to) {
  StateSet before;
  for (int state = 0; state < kJobStates; ++state) {
    for (const Transition& transition : internal::kTable[state]) {
      if (transition.to.Has(to)) before.Add(static_cast<JobState>(state));
    }
  }
  return before;
}

constexpr bool CanMove(JobState from, JobState to) {
  return Before(to).Has(from);
}

}  // namespace fluxqueue::model
