// The strategy `adaptive`: the very short ones pass, and whoever EASY would have started by now
// goes first. README.md tells why, what it gives, and what did not work.
//
// A cycle tries, in this order:
//   passers   jobs so short for how long they have waited that their start costs nobody anything
//             worth counting; by estimate; without a reservation. Of those that wait, job j passes
//             when  e² ≤ c · (wait + e),  e its predicted run time, that is when its expansion
//             factor (wait + e) / e has reached e / c: what it gains falls with e, and what it
//             costs rises with e. c is kPassShare of the run time below which lies only kPassWork
//             of the work done so far: no number of seconds, but what is short on this pool.
//   pinned    jobs that the virtual machine (virtual_machine.h) has started, in that order. Each
//             may reserve, up to Strategy::most_reservations of them.
//   the rest  in the order of the line; they may reserve too
//
// Pinning wants the virtual run times to be true. So how far estimates were off, weighted by work,
// is kept: when it is at most kGood of them, estimates are good (raw); when it is so after all were
// multiplied by the one factor alpha = ran / estimated, they are good but too long (scaled), and
// plans count on the multiplied ones. Else nobody is pinned, and the rest is everybody.
//
// Valve: when the first of the pinned (or of the line, where nobody is) has waited for more than
// twice as long as it waited virtually, and a day, nobody passes until it has started.
//
// Nobody starves. The virtual machine is EASY with finite run times, so the shadow time of its
// first job only comes nearer, and each job gets a virtual start. Once it has that, a finite number
// of jobs stand before it among the pinned: later virtual starts stand behind. The first of them
// has the first reservation, which only passers can put off, and the valve ends that. So it starts;
// and so does the next. Where nobody is pinned the same holds of the first in line. The mode does
// not change while the valve is shut.
//
// Higher ranks (priority, ageing) go first among the virtual, the pinned and the rest. Passers pass
// whatever their rank. An unlimited job never passes.
//
// With hindsight (rules 6 of libs/model/rules.h) it cannot be fooled by what is declared:
//   price      In the place of e stands what jobs of the user took (reliability.h), as it is when
//              the job comes into line. Plans, virtual ones too, count on no less.
//   crashes    Runs that ended badly are not learnt.
//   decay      All sums are halved every kEndsPerHalving ends.
//   hindsight  The virtual machine corrects itself as run times become known, so it says what EASY
//              would have done also where estimates are bad. So all are pinned always.
// c is half of that of before: with the others it is enough, and more costs p99.
//
// The virtual machine knows one line. While several queues use the pool, or where users have turns,
// it cannot say what EASY would have done; the queue is tried as EASY then (rules 7).
//
// Integers throughout; pure; time is an argument. Thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/scheduling/reliability.h"
#include "libs/scheduling/virtual_machine.h"

namespace fluxqueue::scheduling {

inline constexpr uint32_t kAdaptiveReservations = 64;
// kPassWork, kPassShare, kGood and kBad as fractions: 0.0003, 0.01 (0.005), 0.10, 0.15.
inline constexpr int64_t kPassWorkPer10000 = 3;
inline constexpr int64_t kPassSharePer1000 = 10;
inline constexpr int64_t kHindsightPassSharePer1000 = 5;
inline constexpr int64_t kGoodPercent = 10;
inline constexpr int64_t kBadPercent = 15;
// The mode is judged at each of the first ends, and then at every so many.
inline constexpr uint64_t kFirstEnds = 9;
inline constexpr uint64_t kEndsPerJudgement = 32;
inline constexpr uint64_t kEndsPerHalving = 4096;
inline constexpr int64_t kValveTimes = 2;
inline constexpr int64_t kValveMs = 86'400'000;

// Work done, by run time: how short are the shortest jobs that together did so much?
class WorkHistogram {
 public:
  static constexpr size_t kBuckets = 128;

  // Where bucket i begins, 2^(i/4) seconds, in whole ms.
  static int64_t Edge(size_t bucket);
  static size_t BucketOf(int64_t run_ms);

  void Add(int64_t run_ms, int64_t work) { work_[BucketOf(run_ms)] += work; }
  // The beginning of the first bucket up to which more than that part of all work was done; one
  // second when none was.
  int64_t QuantileMs(int64_t per_10000) const;

  void Halve();

  const std::array<int64_t, kBuckets>& work() const { return work_; }
  void Set(size_t bucket, int64_t work) { work_.at(bucket) = work; }

 private:
  std::array<int64_t, kBuckets> work_{};
};

// How good estimates have been. Work is the time times the part of the pool, in 2^-10 ms of the
// whole pool.
struct Accuracy {
  int64_t estimated = 0;
  int64_t ran = 0;
  int64_t error = 0;         // sum of |estimate - run|
  int64_t scaled_error = 0;  // sum of |alpha · estimate - run|, alpha as it was before
  uint64_t ends = 0;
  bool raw = true;
  bool scaled = false;

  Scale alpha() const;
  void Learn(int64_t size, int64_t estimate_ms, int64_t run_ms, bool may_judge);
  void Halve();
};

class Adaptive {
 public:
  // Small, and copied for the undo; with the jobs' records it is all there is.
  struct State {
    bool on = false;
    bool hindsight = false;
    bool shut = false;  // the valve, at the last Choose
    Accuracy accuracy;
    WorkHistogram histogram;
  };

  bool on() const { return state_.on; }
  // Off: all is forgotten.
  void Turn(bool on);
  void SetHindsight(bool hindsight);

  // It stands in line, again or still: what it asks for may have changed. estimate 0: unlimited.
  void Wait(OrderKey key,
            int64_t size,
            int64_t estimate_ms,
            int64_t now_ms,
            const std::string& user = {});
  // Really started, at `started_ms` if it was not known; perhaps long ago.
  void Start(OrderKey key, int64_t size, int64_t estimate_ms, int64_t started_ms, int64_t now_ms);
  // Really over: what had started has run until now, what had not is forgotten.
  void End(uint64_t submission,
           int64_t now_ms,
           const std::string& user = {},
           bool succeeded = true);
  // No longer in line, and not started: held, moved, set aside.
  void Leave(uint64_t submission, int64_t now_ms);
  void Resize(uint64_t submission, int64_t size);
  void SetCapacity(int64_t capacity, int64_t now_ms);
  bool Knows(uint64_t submission) const { return machine_.Find(submission) != nullptr; }

  // Whom a cycle tries before the others, who follow in the order of the line. Brings the virtual
  // machine to this moment.
  struct Choice {
    std::vector<OrderKey> passers;
    std::vector<OrderKey> pinned;
  };
  // `free`: of kWholePool; passers are within it together. At most `most` of each.
  Choice Choose(int64_t now_ms, int64_t free, size_t most);
  // What a plan counts on for the job, which is said to take so long.
  int64_t PlanOf(uint64_t submission, int64_t estimate_ms) const;

  const State& state() const { return state_; }
  const VirtualMachine& machine() const { return machine_; }
  const Reliability& reliability() const { return reliability_; }

  // ---------------------------------------------------------------------------------- the batch
  bool changed() const { return before_.has_value(); }
  void Commit();
  void Rollback();
  // As it was kept.
  void Set(const State& state, const VirtualState& machine);
  void Set(const VirtualJob& job) { machine_.Set(job); }
  void Set(const std::string& user, const Reliability::Record& record) {
    reliability_.Set(user, record);
  }

 private:
  bool Passes(int64_t estimate_ms, int64_t since_ms, int64_t now_ms, int64_t quantile_ms) const;
  bool ValveShut(int64_t now_ms) const;
  void AddPassers(int64_t now_ms, int64_t free, size_t most, Choice* choice) const;
  void Remember();
  void Learn(const VirtualJob& job, int64_t run_ms, const std::string& user);
  bool pins() const { return state_.hindsight || state_.accuracy.raw || state_.accuracy.scaled; }

  struct Before {
    State state;
    VirtualState machine;
  };
  State state_;
  VirtualMachine machine_;
  Reliability reliability_;
  std::optional<Before> before_;
};

}  // namespace fluxqueue::scheduling
