// The queues of the pool whose strategy is `adaptive`, each with its virtual machine
// (libs/scheduling/adaptive.h), kept in step with their jobs; rows; and the undo of the batch.
//
// Each queue's machine is as large as the pool. While others use the pool, it starts virtually what
// they have taken really. By rules 7 nothing is done by it then (View::StrategyInForce); it goes
// on, as the others may leave.
//
// Sizes are parts of the pool as it was at one time. While its capacity stays within an eighth of
// that, the machine's capacity changes with it; beyond, all sizes are made anew: O(jobs), and as
// often as the pool has grown or shrunk by that much, not for every node.
//
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/queue_core/job_book.h"
#include "libs/queue_core/rows.h"
#include "libs/scheduling/adaptive.h"
#include "libs/scheduling/resources.h"

namespace fluxqueue::queue_core {

class AdaptiveQueues {
 public:
  // Of the queues of a pool nobody may be adaptive: then nothing costs anything.
  bool empty() const { return queues_.empty(); }
  // Null: the queue's strategy is another.
  scheduling::Adaptive* Find(const std::string& queue);
  const scheduling::Adaptive* Find(const std::string& queue) const;

  // Whenever the queue was configured or deleted, and its jobs are placed. What was off begins with
  // the jobs that are there. `estimate(job)`: in ms, 0 for unlimited.
  template <typename Estimate>
  void Configure(const std::string& name,
                 bool on,
                 bool hindsight,
                 const scheduling::Resources& capacity,
                 JobBook* book,
                 int64_t now_ms,
                 Estimate estimate);
  // The job is placed, or has ended.
  void Follow(const Entry& entry, int64_t estimate_ms, int64_t now_ms);
  // It was stopped for others, and has no claim to the place that it had: when it is followed
  // again, it is as if it had just come.
  void GiveUpPlace(const Job& job, int64_t now_ms);
  void SetCapacity(const scheduling::Resources& capacity, const JobBook& book, int64_t now_ms);
  // By the rules of the pool (libs/model/rules.h), of all queues.
  void SetHindsight(bool hindsight);

  // ---------------------------------------------------------------------------------- the batch
  void Commit();
  void Rollback();
  void Describe(Changes* changes) const;
  // All rows, as bytes, in a fixed order.
  std::vector<std::string> Rows() const;

  // ------------------------------------------------------------------------------------ restore
  void Clear();
  // False: it is a row of somebody else.
  bool AddRow(const queue::v1::UsageRow& row);

 private:
  struct AdaptiveQueue {
    scheduling::Adaptive rule;
    scheduling::Resources sized_by;
    std::optional<scheduling::Resources> sized_by_before;
  };

  // True: it is on from now on, and was not.
  bool Turn(const std::string& name, bool on, const scheduling::Resources& capacity);
  void FollowIn(AdaptiveQueue* queue, const Entry& entry, int64_t estimate_ms, int64_t now_ms);
  void DropOff();

  std::map<std::string, AdaptiveQueue> queues_;
};

template <typename Estimate>
void AdaptiveQueues::Configure(const std::string& name,
                               bool on,
                               bool hindsight,
                               const scheduling::Resources& capacity,
                               JobBook* book,
                               int64_t now_ms,
                               Estimate estimate) {
  const bool begins = Turn(name, on, capacity);
  if (!on) return;
  Find(name)->SetHindsight(hindsight);
  // A queue that was configured anew may have given its jobs other ranks.
  if (!begins) {
    for (const auto& [key, entry] : book->QueueOf(name)->line) {
      Follow(*entry, estimate(entry->job), now_ms);
    }
    return;
  }
  for (const Entry* entry : book->Jobs()) {
    if (entry->job.queue == name) Follow(*entry, estimate(entry->job), now_ms);
  }
}

}  // namespace fluxqueue::queue_core
