// A machine that exists in thought: it is as large as the pool, gets the jobs that the pool gets,
// at the same times, and schedules them by plain EASY in the order of the line. Nobody passes
// anybody there but by EASY's backfill. When a job starts on it is when EASY would have started it.
// The strategy `adaptive` gives the real starts in that order (adaptive.h says why).
//
// The virtual pass, at each moment at which something ends or comes, in the order of the line:
//   1. start while the first fits
//   2. the first that does not has a shadow time, at which by plan enough is free for it, and
//   leaves
//      an extra amount free then
//   3. of the rest start those that fit and end by the shadow time, or are within the extra
//
// How long a job runs virtually: as long as it really ran, when that is known. When it really runs,
// until it really ends, or as long as it was estimated to. When it has not started: as long as its
// estimate and the factor by which estimates turned out to be too long say. A job without an
// estimate (unlimited) runs until it has really ended; the first job in line that has to wait for
// such a one lets nobody pass, as the matcher does.
//
// Hindsight (rules 6). Run times that were assumed turn out to be others: a job that really started
// later than virtually is known to have ended virtually when it has ended really, which is later.
// So the machine turns back: to the moment from which on it was wrong, at most kHindsightMs ago. It
// undoes what it did since, and does it again with what it knows now. What it would have to undo
// stands in the records, which are kept for that long. With it a run time that is not known is the
// estimate: a plan of EASY, too, knows no better.
//
// Sizes are parts of the pool, of which there are kWholePool, so one number stands for cpu, memory
// and gpus: the greatest of the shares (SizeOf). A job larger than the machine counts as large as
// it. A job whose size is not known is of size 0 and starts at once: of such jobs the virtual order
// is that of the line. The capacity may change; what runs then goes on.
//
// Jobs stay known after their real end for as long as they wait or run virtually: those that passed
// early are ghosts in the virtual line, and hold there what they would have held.
//
// Naive is one pass over all that wait at each event. Here the line is a tree that knows the least
// size and the least estimate of its subtrees, by class of size; the ends are a tree of sums. So an
// event costs O(log n) for each job that starts, and some false hopes: not O(n).
//
// Everything is integers, and follows from the jobs' records and the small VirtualState: a machine
// made of them again equals the one that wrote them. Changed records are remembered until Commit.
// Time is an argument, in whole milliseconds, and must not go back. Thread-compatible.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/base/journaled.h"
#include "libs/scheduling/resources.h"
#include "libs/scheduling/summed_tree.h"
#include "libs/scheduling/waiting_list.h"

namespace fluxqueue::scheduling {

// A power of two, so that n-ths of machines of 2^k processors are whole numbers.
inline constexpr int64_t kWholePool = int64_t{1} << 30;
inline constexpr int64_t kUnset = -1;
inline constexpr int64_t kNeverMs = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kHindsightMs = 86'400'000;

// The greatest share of the pool's cpu, memory or gpus, in parts of kWholePool, rounded down.
// 0 when the capacity is not known.
int64_t SizeOf(const Resources& amounts, const Resources& capacity);

// Estimates are multiplied by ran / estimated, which is at most 1.
struct Scale {
  int64_t ran = 1;
  int64_t estimated = 1;  // above 0

  // Rounded up, at least 1; 0 (unlimited) stays 0.
  int64_t Of(int64_t estimate_ms) const;
};

// What is known of a job; all of it is kept.
struct VirtualJob {
  OrderKey key;             // its place in line
  int64_t size = 0;         // of kWholePool
  int64_t estimate_ms = 0;  // as declared; 0: unlimited
  int64_t since_ms = 0;     // when it came into line
  // Really: it stands in line; when it was started; how long it ran, once it has ended.
  bool waits = false;
  int64_t started_ms = kUnset;
  int64_t run_ms = kUnset;
  // Virtually. It runs from the start to the end; plans count on the planned end.
  int64_t virtual_start_ms = kUnset;
  int64_t planned_end_ms = kUnset;
  int64_t virtual_end_ms = kUnset;
  bool over = false;
  // As long as it will run by what jobs of its user took (reliability.h); 0: not asked.
  int64_t price_ms = 0;

  // What plans count on. 0: unlimited. Who declares too little gains nothing by it.
  int64_t length_ms() const { return estimate_ms == 0 ? 0 : std::max(estimate_ms, price_ms); }
  bool runs_virtually() const { return virtual_start_ms != kUnset && !over; }
  friend bool operator==(const VirtualJob&, const VirtualJob&) = default;
};

struct VirtualState {
  int64_t now_ms = 0;
  bool due = false;  // something came or went at `now_ms`, and no pass has looked at it yet
  int64_t capacity = kWholePool;
  Scale predicted;  // of a job that has not started
  Scale planned;    // of what plans count on
  bool hindsight = false;
};

class VirtualMachine {
 public:
  VirtualMachine() = default;
  VirtualMachine(const VirtualMachine&) = delete;  // its trees point to its jobs
  VirtualMachine& operator=(const VirtualMachine&) = delete;

  const VirtualState& state() const { return state_; }
  void SetScales(Scale predicted, Scale planned);
  void SetCapacity(int64_t capacity);
  void SetHindsight(bool hindsight) { state_.hindsight = hindsight; }

  // Null: not known. By submission.
  const VirtualJob* Find(uint64_t submission) const;
  size_t size() const { return jobs_.size(); }
  int64_t used() const { return used_; }

  // All that ends before `now_ms`, and the passes of those moments. The next two go on from there.
  void AdvanceTo(int64_t now_ms);
  // Also what ends at `now_ms`, and the pass of that moment.
  void PassAt(int64_t now_ms);

  // Stands in line from now on; a job that has started before keeps its virtual start.
  // REQUIRES: the job is not known, or it does not wait.
  void Wait(const VirtualJob& job);
  // Really starts. Known from now on, if it was not: running, since `job.started_ms`.
  void Start(const VirtualJob& job);
  // Has really ended; it had started.
  void End(uint64_t submission);
  // Changes what is known of a job that waits and has no virtual start, or its estimate, price or
  // size.
  void Amend(
      uint64_t submission, OrderKey key, int64_t size, int64_t estimate_ms, int64_t price_ms = 0);
  void Forget(uint64_t submission);
  void Clear();

  // Those that stand in line; of them those with a virtual start, by rank, that start, submission.
  const std::set<OrderKey>& in_line() const { return in_line_; }
  using PinnedKey = std::tuple<int64_t, int64_t, uint64_t>;  // -rank, virtual start, submission
  const std::set<PinnedKey>& pinned() const { return pinned_; }

  // The lowest prices first; where they were not asked, the shortest estimates.
  struct Short {
    uint32_t least_size = 0;
    int64_t least_estimate_ms = 0;
    int64_t oldest_ms = 0;

    static Short Of(const std::pair<int64_t, uint64_t>& key, const VirtualJob* job);
    void Join(const Short& other);
  };
  using Shortest = SummedTree<std::pair<int64_t, uint64_t>, const VirtualJob*, Short>;
  const Shortest& shortest() const { return shortest_; }

  // ---------------------------------------------------------------------------------- the batch
  // By submission.
  auto Changes() const { return jobs_.Changes(); }
  void Commit() { jobs_.Commit(); }
  void Rollback(const VirtualState& state);
  // As they were kept.
  void Set(const VirtualJob& job);
  void Set(const VirtualState& state) { state_ = state; }
  // By submission. O(n log n).
  std::map<uint64_t, VirtualJob> All() const;

 private:
  // By class of size, the least size and estimate.
  struct Least {
    static constexpr int kClasses = 13;
    std::array<uint32_t, kClasses> size;
    std::array<uint32_t, kClasses> estimate_s;  // rounded down

    static Least Of(const OrderKey& key, const VirtualJob* job);
    void Join(const Least& other);
  };
  struct Sum {
    int64_t size = 0;

    static Sum Of(const std::pair<int64_t, uint64_t>& key, int64_t size) {
      (void)key;
      return {size};
    }
    void Join(const Sum& other) { size += other.size; }
  };
  // Who may pass the first that waits.
  struct Gap {
    int64_t free = 0;
    int64_t longest_ms = 0;  // by estimate, to end by the shadow time
    int64_t extra = 0;

    bool Takes(const VirtualJob& job) const;
    bool MayTake(const Least& least) const;
  };

  int64_t SizeNow(const VirtualJob& job) const { return std::min(job.size, state_.capacity); }
  int64_t free() const { return state_.capacity - used_; }
  void Index(const VirtualJob& job);
  void Unindex(const VirtualJob& job);
  // REQUIRES: it is known.
  template <typename F>
  void Change(uint64_t submission, F change);
  void DropIfDone(uint64_t submission);
  void EndInHindsight(uint64_t submission);
  void TurnBack(int64_t to_ms);
  void Reopen(int64_t to_ms);
  // Those that nothing can be learnt of any more.
  void DropOld();
  void EndUpTo(int64_t now_ms);
  void Pass();
  void Backfill(const VirtualJob& first);
  Gap GapBeside(const VirtualJob& first) const;
  void StartVirtually(const VirtualJob& job);

  VirtualState state_;
  Journaled<std::unordered_map<uint64_t, VirtualJob>> jobs_;

  // What follows from the records.
  SummedTree<OrderKey, const VirtualJob*, Least> line_;           // wait virtually
  SummedTree<std::pair<int64_t, uint64_t>, int64_t, Sum> plans_;  // run virtually, by planned end
  std::set<std::pair<int64_t, uint64_t>> ends_;                   // … by end
  std::set<std::pair<int64_t, uint64_t>> over_;                   // are over virtually, by end
  std::set<std::pair<int64_t, uint64_t>> starts_;                 // have started virtually
  std::set<std::pair<int64_t, uint64_t>> came_;                   // wait virtually, by since_ms
  std::set<PinnedKey> pinned_;
  std::set<OrderKey> in_line_;
  Shortest shortest_;
  int64_t used_ = 0;
};

}  // namespace fluxqueue::scheduling
