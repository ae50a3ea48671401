// Partitions taken and given up: their rows claimed, logs that were made anew or cut noticed, and
// all who keep something of a partition told. Confined to the loop's thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/delivery/committer.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/ledger.h"
#include "libs/delivery/message_folder.h"
#include "libs/delivery/options.h"
#include "libs/delivery/partition_table.h"
#include "libs/delivery/stats.h"
#include "libs/kafka/bus.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::delivery {

class PartitionHolder {
 public:
  // All references must outlive it.
  struct Deps {
    const LoopOptions& options;
    const std::string& topic;
    PartitionHandler& handler;
    Committer& committer;
    PartitionTable& table;
    MessageFolder& folder;
    Stats& stats;
  };

  explicit PartitionHolder(Deps deps) : deps_(deps) {}

  // Takes them, whoever has them, and loads what is kept of them. Any status but OK: none is held.
  absl::Status Claim(kafka::Subscription& consumer, const std::vector<int>& partitions);
  void Drop(int partition);
  // What an operator wants left out, in the partitions held.
  absl::Status ReadSkips();

  struct Log {
    kafka::Watermarks marks;
    // Where to go on. Before what was handled: the log is not the one that was handled (made anew,
    // or its end was lost). Behind it: the log was cut before it was handled.
    int64_t next_offset;
  };
  // The logs of the partitions, by the places up to which they were handled. One that was handled
  // ends no earlier, and has nothing before that place that was appended later. What is read twice
  // is a duplicate (stream_filter.h).
  static absl::StatusOr<std::map<int, Log>> ReadLogs(
      kafka::Subscription& consumer, const std::map<int, PartitionTable::Place>& handled);
  // Where to go on in partitions held.
  std::vector<kafka::Position> Positions(const std::vector<int>& partitions) const;

 private:
  // What a claim found in the tables.
  struct Claimed {
    InboxRow row;
    StreamFilter::Positions seen;
    std::vector<OutboxRow> leftovers;
    Skips skips;
  };

  absl::Status ClaimRow(pqxx::transaction_base& tx, const Log& log, Claimed* claimed);
  void Hold(int partition, Claimed claimed);
  std::string StreamOf(int partition) const;

  const Deps deps_;
};

}  // namespace fluxqueue::delivery
