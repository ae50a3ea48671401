// Batch by batch, what was received of the partitions held: folded, committed, and when that fails
// told apart into what comes again and the message that is to blame. Confined to the loop's thread.
#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/committer.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/message_folder.h"
#include "libs/delivery/partition_table.h"
#include "libs/delivery/progress.h"
#include "libs/delivery/stats.h"
#include "libs/kafka/message.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::delivery {

class PartitionWorker {
 public:
  // All references must outlive it.
  struct Deps {
    const Clock& clock;
    PartitionHandler& handler;
    Committer& committer;
    PartitionTable& table;
    MessageFolder& folder;
    Stats& stats;
    Progress& progress;
  };

  explicit PartitionWorker(Deps deps) : deps_(deps) {}

  // Received, not committed.
  std::vector<kafka::Message>& inbox() { return inbox_; }
  const std::vector<kafka::Message>& inbox() const { return inbox_; }
  // All that was received: it will come again, or is another's.
  void Forget();

  // The handler has something to say besides.
  bool Due() const;
  // The next batch is to gather yet.
  bool Paced() const;

  // One batch, if there is reason for one. `settled`: the last try went through. True: what was to
  // be done is done; false: nothing was to be done, or the next turn does it, differently. Where
  // another has taken partitions, the table tells of them.
  absl::StatusOr<bool> Work(bool settled, const std::stop_token& stop);

 private:
  // Folds the inbox into the batch; `*folded` is how many of its messages were looked at.
  absl::Status Fold(Batch* batch, size_t* folded);
  // Folds and polls.
  absl::Status Make(bool due, Batch* batch, size_t* folded);
  bool MayKeep(bool settled, const Batch& batch) const;
  void Keep(const Batch& batch);
  absl::StatusOr<bool> Tidy(const std::stop_token& stop);
  void Rollback();
  // After a failed commit: what to do next.
  absl::StatusOr<bool> Recover(const absl::Status& status, const Batch& batch, size_t folded);

  const Deps deps_;
  std::vector<kafka::Message> inbox_;
  // A batch failed for a reason that one of its messages may be: so many of the inbox go one by
  // one.
  size_t single_ = 0;
};

}  // namespace fluxqueue::delivery
