// The SQL of delivery's tables (migrations/0001_delivery.sql). Every function runs inside the
// caller's transaction and throws what libpqxx throws.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/delivery/stream_filter.h"
#include "libs/delivery/wire.h"

#include "absl/status/statusor.h"

namespace fluxqueue::delivery {

struct InboxRow {
  int partition = 0;
  int64_t epoch = 0;
  int64_t incarnation = 0;
  int64_t commits = 0;
  int64_t next_offset = 0;
  Millis append_time{0};  // the latest that a broker has said
  bool truncated = false;
  Millis log_time{0};
};

struct LeaseRow {
  std::string holder;
  int64_t epoch = 0;
  int64_t incarnation = 0;
  int64_t commits = 0;
  bool given_back = false;
};

// Takes the partition: epoch and incarnation are new, so whoever held it can commit nothing more.
InboxRow ClaimPartition(pqxx::transaction_base& tx,
                        int partition,
                        const std::string& holder,
                        const std::string& address);
// The log is not the one that was handled, or was cut: go on at `next_offset`, and forget what is
// to be left out, and the streams of earlier versions.
void ResetPartition(pqxx::transaction_base& tx, const InboxRow& row);
// Locks the rows, in the order of the partitions, and reads them.
std::vector<InboxRow> LockPartitions(pqxx::transaction_base& tx,
                                     const std::vector<int>& partitions);
StreamFilter::Positions LoadStreams(pqxx::transaction_base& tx, int partition);
// Forgets the streams from which nothing has come for `age`.
void DeleteStreams(pqxx::transaction_base& tx, int partition, Millis age);
// By offset, for what reason the messages are to be left out.
using Skips = std::map<int64_t, std::string>;
Skips LoadSkips(pqxx::transaction_base& tx, int partition);
// Forgets those before `next_offset`.
void DeleteSkips(pqxx::transaction_base& tx, int partition, int64_t next_offset);

// Takes the lease when it is free, has run out, or was ours under an earlier epoch. The row, or
// nothing when it is another's.
std::optional<LeaseRow> TakeLease(pqxx::transaction_base& tx,
                                  const std::string& shard,
                                  const std::string& holder,
                                  Millis ttl);
// Locks and renews the lease and counts a commit, if the row is still as in `lease`.
bool RenewLease(pqxx::transaction_base& tx,
                const std::string& shard,
                const LeaseRow& lease,
                Millis ttl);
std::optional<LeaseRow> LockLease(pqxx::transaction_base& tx, const std::string& shard);
void ReleaseLease(pqxx::transaction_base& tx, const std::string& shard, const LeaseRow& lease);

// What all owners of a stream have left: rows that may not be in Kafka, in the order of commits.
// `base`: without an incarnation.
absl::StatusOr<std::vector<OutboxRow>> LoadOutbox(pqxx::transaction_base& tx,
                                                  const std::string& base);

// All that a batch writes into the tables, in one statement. Returns the number of rows.
struct BatchRows {
  std::vector<InboxRow> moved;  // partition, next_offset, append_time, log_time
  struct Raised {
    int partition;
    std::string stream;
    StreamPosition position;
  };
  std::vector<Raised> raised;
  std::vector<Prefix> cleared;
  size_t size() const { return moved.size() + raised.size() + cleared.size(); }
};
uint64_t WriteBatch(pqxx::transaction_base& tx,
                    const BatchRows& rows,
                    const std::vector<OutboxRow>& sent);

}  // namespace fluxqueue::delivery
