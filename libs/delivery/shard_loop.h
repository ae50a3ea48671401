// The delivery loop of a service that has no log to read: it watches something (a shard, such as
// "watch") and says what it saw. One replica holds the shard's lease, a row with holder, epoch and
// expiry by the database's clock; the others wait.
//
//   ShardLoop loop({.loop = …, .shard = "watch"}, handler, clock);
//   std::jthread thread([&](std::stop_token stop) { status = loop.Run(stop); });
//
// A batch is what handler.Poll has to say when HasWork() or WakeAt() ask for it. It commits in one
// transaction, which first locks the lease row and checks that the epoch is ours, and renews it.
// Publication, doubts and errors are as in partition_loop.h; the stream is "<service>/<shard>". A
// replica that stops gives the lease back; one that was killed loses it after session_timeout.
//
// Objects. A handler that is shown objects by a watch asks a Quarantine before it handles each
// (quarantine.h). When Poll throws, or says that it can never succeed, the object that it asked for
// last is put into quarantine (row, dead letter, metric), and the handler's memory is made again by
// Drop and Load. When Write says so, the objects of the batch come again one by one, and the one
// that fails alone is put into quarantine. All others go on. What fails without an object ends Run.
//
// The same for what ends the process. When a lease was taken kManyEnds times in a row from a holder
// that had not given it back, objects come one by one, and each is marked in the database before it
// is handled, which costs a short statement. What was marked at two such ends is put into
// quarantine: an object that always ends the process does so four times. This lasts until all that
// was listed has been handled, kCarefulFor at least and kCarefulAtMost at most.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/faults.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/options.h"
#include "libs/delivery/quarantine.h"
#include "libs/delivery/stats.h"
#include "libs/postgres/migrations.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

class ShardLoop {
 public:
  struct Options {
    LoopOptions loop;
    std::string shard;
    // Of the service's own tables, besides delivery's.
    std::vector<const postgres::MigrationSet*> migrations{};
    // Of its handler; must outlive the loop. Null: it is shown no objects.
    Quarantine* quarantine = nullptr;
  };
  static constexpr int kManyEnds = 2;
  static constexpr std::chrono::seconds kCarefulFor{30};
  static constexpr std::chrono::minutes kCarefulAtMost{5};

  // All references must outlive the loop.
  ShardLoop(Options options,
            ShardHandler& handler,
            const Clock& clock,
            FaultInjector* faults = nullptr);
  ~ShardLoop();

  // As PartitionLoop's.
  absl::Status Run(std::stop_token stop);

  // Thread-safe: handler.HasWork() may have become true.
  void Wake();
  // Thread-safe: OK when the lease is ours and the last batch went through, or another replica
  // holds it; else what is in the way.
  absl::Status Ready() const;
  // As PartitionLoop's.
  absl::Status Alive() const;
  // Thread-safe: the lease is ours.
  bool Held() const;
  const Stats& stats() const;

  // For the handler, which is called by the loop's thread: how many batches with messages were
  // committed, and up to which of them all messages are in Kafka; and where the next record of a
  // partition of the pools' topic will be (blocks for up to two seconds). Who reads beyond an end
  // that was asked for once all was acknowledged has read all that was said.
  uint64_t Said() const;
  uint64_t Acknowledged() const;
  absl::StatusOr<int64_t> LogEnd(int partition);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluxqueue::delivery
