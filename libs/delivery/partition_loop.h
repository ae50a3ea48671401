// The delivery loop over the partitions of a topic: exactly-once effects on at-least-once transport
// (architecture.md, "Delivery").
//
//   PartitionLoop loop({.options = …, .topic = topics.pool}, handler, clock);
//   std::jthread thread([&](std::stop_token stop) { status = loop.Run(stop); });
//
// A batch is the messages that one poll gives, from all partitions held, and what handler.Poll has
// to say. It commits in one transaction, which first locks the inbox row of every partition held
// and checks that the epoch is ours and that the row stands where our memory does. After the commit
// its messages are published from memory; their outbox rows are deleted by a later commit, as an
// unbroken prefix, once Kafka has acknowledged them.
//
// What can repeat: Handle and Poll of a batch that was rolled back; publication (consumers drop
// duplicates by stream and sequence). What cannot: Commit of a message's batch, and the rows of
// Write.
//
// The offset moves with the rows, never in Kafka. A commit whose outcome is unknown is settled by
// reading the inbox row under its lock. A partition whose row carries another's epoch is dropped at
// once, and taken again only if the group still assigns it to us a session timeout later.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/faults.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/options.h"
#include "libs/delivery/stats.h"
#include "libs/postgres/migrations.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

class PartitionLoop {
 public:
  struct Options {
    LoopOptions loop;
    // What it consumes: loop.topics.pool or loop.topics.jobs.
    std::string topic;
    // Of the service's own tables, besides delivery's.
    std::vector<const postgres::MigrationSet*> migrations{};
  };

  // All references must outlive the loop.
  PartitionLoop(Options options,
                PartitionHandler& handler,
                const Clock& clock,
                FaultInjector* faults = nullptr);
  ~PartitionLoop();

  // Makes what is missing of tables and topics (prepare.h), then works until `stop`: the batch
  // under way is finished, what was committed is published (for up to a second), and OK is
  // returned. Any other status means that the process must stop. Call it once.
  absl::Status Run(std::stop_token stop);

  // Thread-safe: handler.HasWork() may have become true.
  void Wake();
  // Thread-safe: OK when the group was joined and the last batch went through; else what is in the
  // way.
  absl::Status Ready() const;
  // Thread-safe: OK while the loop gets on, also where it waits for what is away; else it hangs,
  // and only a new process mends that.
  absl::Status Alive() const;
  const Stats& stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluxqueue::delivery
