// Who may be stopped so that a job that waits can start: preemption, by priority and of borrowed
// share. Says only who may be and in which order; the matcher finds the few whose room is of use.
//
// by_priority   jobs of a lower priority that would also stand behind it in line: of its queue, or
//               below a branch of the tree of queues with a lower priority than its own branch. In
//               a queue of order fair-share only jobs of its own user, as among users it is not
//               priority that decides.
// reclaim       jobs below a sibling branch (of no higher priority) that has more of something than
//               its guarantee, while the job's branch, with the job and all that is tried before
//               it, has no more than its own. Branches meet where the ways up of the two queues do.
//               Nothing on the victim's side falls below its guarantee, with all victims named
//               before taken together: of what the job asks for and its branch is guaranteed, where
//               the victim's side is guaranteed that too, and the victim holds some (rules 4); else
//               of everything. Every resource counts, and of a victim what it holds: a queue that
//               has fewer gpus than its guarantee may lose a job without gpus. Up to rules 6 cpu,
//               memory and gpus count, whatever the victim holds.
//
// Both ask that the victim be behind the job once it waits again: else it would take its room back,
// and be stopped again, for ever. (fair_share.h has the order: priority of the branch, then who is
// below the guarantee.) So a rank raised by aging protects, too.
//
// Never: jobs that no controller makes again. What is being stopped already comes free without a
// loss, so it is named first, whoever it belongs to: nobody is stopped while waiting is enough.
//
// VictimRules answers for one job at a time; stop_list.h makes of it what a cycle names.
// ChooseVictims is what cycles of rules 2 name: a few, least work lost first: (now − start) ×
// dominant share; then the latest start, then the id. Pure. O(jobs · log jobs · depth).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/scheduling/queue_tree.h"
#include "libs/scheduling/resources.h"

namespace fluxqueue::scheduling {

inline constexpr size_t kMostVictims = 64;

// What is to start before the job, by queue and with all that is below it.
using Ahead = std::unordered_map<const QueueNode*, Resources>;
// Counts the job in all queues on its way up.
void AddAhead(const Owner& owner, const Resources& amounts, Ahead* ahead);

struct Preemptor {
  const Owner* owner = nullptr;
  int32_t priority = 0;
  int64_t rank = 0;  // aging.h
  const Resources* amounts = nullptr;
  bool by_priority = false;
  bool reclaim = false;
  // Reclaims what exceeds a guarantee in one resource from those who have others' too (rules 4).
  bool by_resource = false;
  // Guarantees count every resource, and protect only jobs that hold some of it (rules 7).
  bool every_resource = false;
};

// A job that holds something.
struct HoldingJob {
  std::string_view id;
  const Owner* owner = nullptr;
  int32_t priority = 0;
  int64_t rank = 0;  // were it in line
  const Resources* amounts = nullptr;
  int64_t start_ms = 0;  // 0: has not started, and loses nothing
  bool recreatable = false;
  bool stopping = false;
  // Elastic, from rules 7 on. What it is giving back already, beside `amounts`; and what one slot
  // has, where it may give some back and go on. Null: none.
  const Resources* leaving = nullptr;
  const Resources* slot = nullptr;

  // The same job, with these amounts.
  HoldingJob With(const Resources* part) const {
    HoldingJob job = *this;
    job.amounts = part;
    return job;
  }
};

struct Victim {
  enum class Why { kStopping, kPriority, kReclaim };
  size_t job = 0;  // its place among those that hold something
  Why why = Why::kStopping;

  friend bool operator==(const Victim&, const Victim&) = default;
};

// Of one preemptor. What it refers to must outlive it.
class VictimRules {
 public:
  VictimRules(const Preemptor& preemptor, const Ahead& ahead)
      : preemptor_(preemptor), ahead_(ahead) {}

  // Why this job may be stopped, beside all that are taken already; nothing: it may not. Never
  // kStopping. O(depth).
  std::optional<Victim::Why> MayStop(const HoldingJob& job) const;
  // The same of one that is being stopped. If it may stand ahead of the preemptor once it waits
  // again (among queues of equal priority, and users, shares decide, which change), no other may
  // be stopped until it does: it might take the room.
  void TakeStopping(const HoldingJob& job);
  // It counts as gone from here on.
  void Take(const HoldingJob& job) { AddAhead(*job.owner, *job.amounts, &taken_); }

  // A queue whose guarantee stands between the preemptor and a job that is reclaimed, and of which
  // resources it must keep it: bits, by the place of the resource, and names of others that are
  // guaranteed to it, sorted.
  struct Lender {
    const QueueNode* queue = nullptr;
    uint32_t counted = 0;
    std::vector<std::string_view> others = {};
  };
  // From the job's own queue up to where the ways of both meet.
  static std::vector<Lender> LendersOf(const Preemptor& preemptor, const Owner& victim);
  // What the lender's queue holds beyond its guarantee; of what is not guaranteed or not counted,
  // kNoGuarantee. Those of its jobs that are reclaimed may hold so much together, what is taken
  // included.
  static constexpr int64_t kNoGuarantee = std::numeric_limits<int64_t>::max();
  static std::array<int64_t, kShared> SpareOf(const Lender& lender);
  // The same of one of its others.
  static int64_t SpareOf(const Lender& lender, std::string_view other);

 private:
  bool MayStandAhead(const HoldingJob& job) const;
  bool ByPriority(const HoldingJob& job) const;
  bool Reclaims(const HoldingJob& job) const;
  bool HasRightTo(const QueueNode& branch) const;
  bool CanSpare(const Lender& lender, const Resources& amounts) const;
  bool CanSpareOfEvery(const Lender& lender, const Resources& amounts) const;

  const Preemptor& preemptor_;
  const Ahead& ahead_;
  Ahead taken_;
  bool awaits_ = false;  // somebody who is being stopped
};

// At most `most`. Empty capacity: not known.
std::vector<Victim> ChooseVictims(const Preemptor& preemptor,
                                  const std::vector<HoldingJob>& holding,
                                  const Ahead& ahead,
                                  const Resources& capacity,
                                  int64_t now_ms,
                                  size_t most = kMostVictims);

}  // namespace fluxqueue::scheduling
