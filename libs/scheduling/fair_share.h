// One pass over the jobs that stand in line: which is tried first, which next, and which of them a
// limit holds back. A cycle takes its candidates from it.
//
// The naive way is to sort all that wait by who has had least. Departures:
// - Lines are sorted already (queue_tree.h); a pass merges their heads with heaps, so k jobs out of
//   n of o owners cost O(o + k · depth · log o), however many wait.
// - What is taken from a line counts as held at once, or the first of all would be given everything
//   before anybody else is looked at. So a pass fills progressively, as DRF does.
//
// At each level of the tree:
//   1. the child of a higher priority
//   2. one that holds less than its guarantee of all that its next job asks for and that is
//      guaranteed to it (rules 2 and 3: of some of that), before those that do not (or have none);
//      of every resource (up to rules 6: of cpu, memory and gpu)
//   3. the smallest share ÷ weight
//   4. the greater weight, then the lesser name
// An inner queue's own jobs come after those of its children.
//
// In a queue of order `priority` the jobs follow by rank and submission (waiting_list.h). In one of
// order `fair-share` the user with the smallest share ÷ weight is next, and of that user's jobs the
// one that is preferred, else the one of the highest rank; of users with equal shares the one whose
// job that is.
//
//   share = max over resources of  billing · (held + named + used on the average before) / capacity
//
// where the average is that of usage.h: somebody who has always held so much has as much again from
// the past, and somebody who stopped half of that after a half-life. This is the dominant share of
// DRF with a memory; `billing` is 1 where nothing else is said. While the pool's capacity is not
// known, a node of 64 cores, 256 GiB and 8 gpus stands for it: shares are only compared.
//
// Limits are asked for each job at its turn, with what the pass has named already counted in. The
// first job of a line that a limit is against holds up the line behind it, so that small jobs do
// not pass a large one of the same user for ever; other lines go on. A job that alone asks for more
// than a limit allows, is of no size that its queue takes, or waits for a budget's next period
// holds up no other.
//
// Doubles are compared only, and made in a fixed order: see usage.h. Thread-compatible; one pass at
// a time for a tree, which must not change in between.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/scheduling/queue_tree.h"

namespace fluxqueue::scheduling {

struct PassOptions {
  int64_t now_ms = 0;
  int64_t beginning_ms = 0;  // of the pool
  Resources capacity;        // of the pool; empty: not known
  // A guarantee counts for whatever is guaranteed, asked for or not (rules 1 of model/rules.h).
  bool guarantees_all = false;
  // Shares are taken of every resource of the capacity, and preferred jobs have no precedence over
  // the turns of users (rules 4). Else of cpu, memory and gpu alone.
  bool has_accounts = false;
  // Guarantees of other resources than cpu, memory and gpu count, too (rules 7).
  bool guarantees_others = false;
  // Of resources that count more or less than others in shares, by name; of gpus "gpu".
  std::map<std::string, double, std::less<>> billing = {};
};

// A job that a limit is against, and which.
struct HeldJob {
  const WaitingJob* job = nullptr;
  Held held;
  Level level = Level::kQueue;
  const Account* account = nullptr;
  const QueueNode* queue = nullptr;

  std::string Sentence() const;
};

// The limit that is against a job of the owner, with nothing else named. O(depth).
std::optional<HeldJob> HeldBack(const Owner& owner, const WaitingJob& job, int64_t now_ms);

class Pass {
 public:
  // The tree must outlive the pass.
  Pass(QueueTree* tree, const PassOptions& options);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  // The next to be tried; null: nobody else stands in line and is free to be tried.
  WaitingJob* Next();
  // These jobs of the queue are tried before the rest of its own, in this order, where no limit is
  // against them or against the first of their line; in the order fair-share each when it is its
  // user's turn. Before the first Next().
  struct Preferred {
    const Owner* owner = nullptr;
    WaitingJob* job = nullptr;
  };
  void Prefer(const std::string& queue, std::vector<Preferred> jobs);
  // No more of this queue's own jobs.
  void Close(const std::string& queue);

  // How many times `each`, up to `most`, no limit of the owner's is against, beside all that is
  // held and was named, nor any of one job, which `has` this already. So many count as named from
  // then on.
  uint32_t TakeSpare(const Owner& owner,
                     const Resources& has,
                     const Resources& each,
                     uint32_t most);

  // Those that were met up to now: heads of lines, and jobs that could never start.
  const std::vector<HeldJob>& held() const;
  // When a limit of gpu-hours or a budget that held a job may let go, by the passing of time alone.
  std::optional<int64_t> due_ms() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The dominant share of the account now, for people: 0.25 is a quarter of the pool.
double ShareOf(const QueueNode& queue, const Account& account, const PassOptions& options);

// The queue goes before those that have their guarantee, for a job that asks for these.
bool IsBelowGuarantee(const QueueNode& queue, const Resources& asked, const PassOptions& options);

// Of amounts that somebody holds now. Empty capacity: not known.
double DominantShare(const Resources& amounts, const Resources& capacity);

}  // namespace fluxqueue::scheduling
