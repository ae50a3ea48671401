#include "libs/delivery/ledger.h"

#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/delivery/incarnation.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::delivery {
namespace {

using postgres::Exec;
using postgres::Statement;

constexpr Statement kClaim = {
    "delivery_claim",
    "INSERT INTO inbox AS i (partition, holder, address, epoch, incarnation) "
    "VALUES ($1, $2, $3, 1, $4) "
    "ON CONFLICT (partition) DO UPDATE SET holder = EXCLUDED.holder, address = EXCLUDED.address, "
    "  epoch = i.epoch + 1, incarnation = EXCLUDED.incarnation "
    "RETURNING partition, epoch, incarnation, commits, next_offset, append_ms, truncated, log_ms"};

constexpr Statement kReset = {
    "delivery_reset",
    "WITH forgotten AS (DELETE FROM inbox_streams WHERE partition = $1 AND strpos(stream, '.') = "
    "0), "
    "unskipped AS (DELETE FROM skips WHERE partition = $1) "
    "UPDATE inbox SET next_offset = $2, truncated = true WHERE partition = $1"};

constexpr Statement kLock = {
    "delivery_lock",
    "SELECT partition, epoch, incarnation, commits, next_offset, append_ms, truncated, log_ms "
    "FROM inbox "
    "WHERE partition = ANY($1::int[]) ORDER BY partition FOR UPDATE"};

constexpr Statement kStreams = {"delivery_streams",
                                "SELECT stream, seq, gaps FROM inbox_streams WHERE partition = $1"};

// Those of earlier versions go on where they were, however long ago.
constexpr Statement kDeleteStreams = {
    "delivery_delete_streams",
    "DELETE FROM inbox_streams WHERE partition = $1 AND strpos(stream, '.') > 0 "
    "AND raised < now() - $2 * interval '1 ms'"};

constexpr Statement kSkips = {"delivery_skips",
                              "SELECT at_offset, who, why FROM skips WHERE partition = $1"};

constexpr Statement kDeleteSkips = {"delivery_delete_skips",
                                    "DELETE FROM skips WHERE partition = $1 AND at_offset < $2"};

constexpr Statement kTakeLease = {
    "delivery_take_lease",
    "INSERT INTO leases AS l (shard, holder, epoch, incarnation, expires) "
    "VALUES ($1, $2, 1, $4, clock_timestamp() + $3 * interval '1 ms') "
    "ON CONFLICT (shard) DO UPDATE SET holder = EXCLUDED.holder, epoch = l.epoch + 1, "
    "incarnation = EXCLUDED.incarnation, expires = clock_timestamp() + $3 * interval '1 ms' "
    "WHERE l.expires < clock_timestamp() OR l.holder = EXCLUDED.holder "
    "RETURNING holder, epoch, incarnation, commits, false"};

constexpr Statement kRenewLease = {
    "delivery_renew_lease",
    "UPDATE leases SET commits = commits + 1, expires = clock_timestamp() + $5 * interval '1 ms' "
    "WHERE shard = $1 AND epoch = $2 AND incarnation = $3 AND commits = $4"};

constexpr Statement kLockLease = {
    "delivery_lock_lease",
    "SELECT holder, epoch, incarnation, commits, expires = '-infinity' FROM leases "
    "WHERE shard = $1 FOR UPDATE"};

constexpr Statement kReleaseLease = {"delivery_release_lease",
                                     "UPDATE leases SET expires = '-infinity' "
                                     "WHERE shard = $1 AND epoch = $2 AND incarnation = $3"};

constexpr Statement kOutbox = {"delivery_outbox",
                               "SELECT topic, partition, last_seq, blob, stream FROM outbox "
                               "WHERE split_part(stream, '.', 1) = $1 ORDER BY number"};

// One statement for all tables: a round trip for each would cost more than the writes.
constexpr Statement kWrite = {
    "delivery_write",
    "WITH moved AS ("
    "  UPDATE inbox i SET commits = i.commits + 1, next_offset = m.next_offset, "
    "    append_ms = m.append_ms, log_ms = m.log_ms"
    "  FROM unnest($1::int[], $2::bigint[], $3::bigint[], $18::bigint[]) "
    "    AS m (partition, next_offset, append_ms, log_ms)"
    "  WHERE i.partition = m.partition), "
    "raised AS ("
    "  INSERT INTO inbox_streams (partition, stream, seq, gaps)"
    "  SELECT * FROM unnest($4::int[], $5::text[], $6::bigint[], $17::text[])"
    "  ON CONFLICT (partition, stream) DO UPDATE SET seq = EXCLUDED.seq, gaps = EXCLUDED.gaps, "
    "    raised = now()), "
    "sent AS ("
    "  INSERT INTO outbox (stream, topic, partition, last_seq, count, blob)"
    "  SELECT * FROM unnest($7::text[], $8::text[], $9::int[], $10::bigint[], $11::int[], "
    "    $12::bytea[])) "
    "DELETE FROM outbox o"
    "  USING unnest($13::text[], $14::text[], $15::int[], $16::bigint[])"
    "    AS c (stream, topic, partition, last_seq)"
    "  WHERE o.stream = c.stream AND o.topic = c.topic AND o.partition = c.partition"
    "    AND o.last_seq <= c.last_seq"};

InboxRow ToInboxRow(const pqxx::row& row) {
  return {row[0].as<int>(),
          row[1].as<int64_t>(),
          row[2].as<int64_t>(),
          row[3].as<int64_t>(),
          row[4].as<int64_t>(),
          Millis{row[5].as<int64_t>()},
          row[6].as<bool>(),
          Millis{row[7].as<int64_t>()}};
}

std::optional<LeaseRow> ToLeaseRow(const pqxx::result& result) {
  if (result.empty()) return std::nullopt;
  const pqxx::row row = result[0];
  return LeaseRow{row[0].as<std::string>(),
                  row[1].as<int64_t>(),
                  row[2].as<int64_t>(),
                  row[3].as<int64_t>(),
                  row[4].as<bool>()};
}

}  // namespace

InboxRow ClaimPartition(pqxx::transaction_base& tx,
                        int partition,
                        const std::string& holder,
                        const std::string& address) {
  return ToInboxRow(Exec(tx, kClaim, partition, holder, address, NewIncarnation())[0]);
}

void ResetPartition(pqxx::transaction_base& tx, const InboxRow& row) {
  Exec(tx, kReset, row.partition, row.next_offset);
}

std::vector<InboxRow> LockPartitions(pqxx::transaction_base& tx,
                                     const std::vector<int>& partitions) {
  postgres::BigintArray keys;
  for (const int partition : partitions) keys.Add(partition);
  std::vector<InboxRow> rows;
  for (const pqxx::row& row : Exec(tx, kLock, keys.text())) rows.push_back(ToInboxRow(row));
  return rows;
}

StreamFilter::Positions LoadStreams(pqxx::transaction_base& tx, int partition) {
  StreamFilter::Positions positions;
  for (const pqxx::row& row : Exec(tx, kStreams, partition)) {
    positions[row[0].as<std::string>()] =
        StreamPosition::Parse(row[1].as<uint64_t>(), row[2].as<std::string>());
  }
  return positions;
}

void DeleteStreams(pqxx::transaction_base& tx, int partition, Millis age) {
  Exec(tx, kDeleteStreams, partition, static_cast<int64_t>(age.count()));
}

Skips LoadSkips(pqxx::transaction_base& tx, int partition) {
  Skips skips;
  for (const pqxx::row& row : Exec(tx, kSkips, partition)) {
    skips[row[0].as<int64_t>()] =
        fmt::format("left out by {}: {}", row[1].as<std::string>(), row[2].as<std::string>());
  }
  return skips;
}

void DeleteSkips(pqxx::transaction_base& tx, int partition, int64_t next_offset) {
  Exec(tx, kDeleteSkips, partition, next_offset);
}

std::optional<LeaseRow> TakeLease(pqxx::transaction_base& tx,
                                  const std::string& shard,
                                  const std::string& holder,
                                  Millis ttl) {
  return ToLeaseRow(
      Exec(tx, kTakeLease, shard, holder, static_cast<int64_t>(ttl.count()), NewIncarnation()));
}

bool RenewLease(pqxx::transaction_base& tx,
                const std::string& shard,
                const LeaseRow& lease,
                Millis ttl) {
  const pqxx::result renewed = Exec(tx,
                                    kRenewLease,
                                    shard,
                                    lease.epoch,
                                    lease.incarnation,
                                    lease.commits,
                                    static_cast<int64_t>(ttl.count()));
  return renewed.affected_rows() == 1;
}

std::optional<LeaseRow> LockLease(pqxx::transaction_base& tx, const std::string& shard) {
  return ToLeaseRow(Exec(tx, kLockLease, shard));
}

void ReleaseLease(pqxx::transaction_base& tx, const std::string& shard, const LeaseRow& lease) {
  Exec(tx, kReleaseLease, shard, lease.epoch, lease.incarnation);
}

absl::StatusOr<std::vector<OutboxRow>> LoadOutbox(pqxx::transaction_base& tx,
                                                  const std::string& base) {
  std::vector<OutboxRow> rows;
  for (const pqxx::row& row : Exec(tx, kOutbox, base)) {
    OutboxRow item;
    item.stream = row[4].as<std::string>();
    item.target = {row[0].as<std::string>(), row[1].as<int>()};
    item.last_seq = row[2].as<uint64_t>();
    const pqxx::binarystring blob(row[3]);
    RETURN_IF_ERROR(DecodeBlob({blob.get(), blob.size()}, &item));
    rows.push_back(std::move(item));
  }
  return rows;
}

uint64_t WriteBatch(pqxx::transaction_base& tx,
                    const BatchRows& rows,
                    const std::vector<OutboxRow>& sent) {
  if (rows.size() == 0 && sent.empty()) return 0;
  postgres::BigintArray moved_partition, next_offset, append_ms, log_ms;
  for (const InboxRow& row : rows.moved) {
    moved_partition.Add(row.partition);
    next_offset.Add(row.next_offset);
    append_ms.Add(row.append_time.count());
    log_ms.Add(row.log_time.count());
  }
  postgres::BigintArray raised_partition, raised_seq;
  postgres::TextArray raised_stream, raised_gaps;
  for (const BatchRows::Raised& raised : rows.raised) {
    raised_partition.Add(raised.partition);
    raised_stream.Add(raised.stream);
    raised_seq.Add(static_cast<int64_t>(raised.position.highest));
    raised_gaps.Add(raised.position.GapsText());
  }
  postgres::TextArray stream, topic;
  postgres::BigintArray partition, last_seq, count;
  postgres::ByteaArray blob;
  for (const OutboxRow& row : sent) {
    stream.Add(row.stream);
    topic.Add(row.target.topic);
    partition.Add(row.target.partition);
    last_seq.Add(static_cast<int64_t>(row.last_seq));
    count.Add(static_cast<int64_t>(row.records.size()));
    blob.Add(EncodeBlob(row.records));
  }
  postgres::TextArray cleared_stream, cleared_topic;
  postgres::BigintArray cleared_partition, cleared_seq;
  for (const Prefix& prefix : rows.cleared) {
    cleared_stream.Add(prefix.stream);
    cleared_topic.Add(prefix.target.topic);
    cleared_partition.Add(prefix.target.partition);
    cleared_seq.Add(static_cast<int64_t>(prefix.last_seq));
  }
  Exec(tx,
       kWrite,
       moved_partition.text(),
       next_offset.text(),
       append_ms.text(),
       raised_partition.text(),
       raised_stream.text(),
       raised_seq.text(),
       stream.text(),
       topic.text(),
       partition.text(),
       last_seq.text(),
       count.text(),
       blob.text(),
       cleared_stream.text(),
       cleared_topic.text(),
       cleared_partition.text(),
       cleared_seq.text(),
       raised_gaps.text(),
       log_ms.text());
  return rows.size() + 2 * sent.size();
}

}  // namespace fluxqueue::delivery
