// The ledger (libs/delivery/ledger.h, quarantine_store.h) over the database in memory.
#include <algorithm>

#include "libs/base/check.h"
#include "libs/delivery/incarnation.h"
#include "libs/delivery/ledger.h"
#include "libs/delivery/quarantine_store.h"
#include "tests/simulation/sim_database.h"

namespace fluxqueue::delivery {

using simulation::DeliveryTables;
using simulation::SimTx;

InboxRow ClaimPartition(pqxx::transaction_base& tx,
                        int partition,
                        const std::string& /*holder*/,
                        const std::string& /*address*/) {
  SimTx& sim = SimTx::Of(tx);
  InboxRow& row = sim.delivery().inbox.Edit(partition);
  row.partition = partition;
  ++row.epoch;
  row.incarnation = sim.database().NewIncarnation();
  return row;
}

void ResetPartition(pqxx::transaction_base& tx, const InboxRow& row) {
  DeliveryTables& tables = SimTx::Of(tx).delivery();
  tables.streams.EraseIf([&](const auto& key, const auto&) {
    return key.first == row.partition && !HasIncarnation(key.second);
  });
  tables.skips.EraseIf([&](const auto& key, const auto&) { return key.first == row.partition; });
  if (!tables.inbox.Has(row.partition)) return;
  InboxRow& kept = tables.inbox.Edit(row.partition);
  kept.next_offset = row.next_offset;
  kept.truncated = true;
}

std::vector<InboxRow> LockPartitions(pqxx::transaction_base& tx,
                                     const std::vector<int>& partitions) {
  std::vector<InboxRow> rows;
  for (const auto& [partition, row] : SimTx::Of(tx).delivery().inbox.rows()) {
    if (std::ranges::find(partitions, partition) != partitions.end()) rows.push_back(row);
  }
  return rows;
}

StreamFilter::Positions LoadStreams(pqxx::transaction_base& tx, int partition) {
  StreamFilter::Positions positions;
  for (const auto& [key, stream] : SimTx::Of(tx).delivery().streams.rows()) {
    if (key.first == partition) positions[key.second] = stream.position;
  }
  return positions;
}

void DeleteStreams(pqxx::transaction_base& tx, int partition, Millis age) {
  SimTx& sim = SimTx::Of(tx);
  const Millis before = sim.database().Now() - age;
  sim.delivery().streams.EraseIf([&](const auto& key, const auto& stream) {
    return key.first == partition && HasIncarnation(key.second) && stream.raised < before;
  });
}

Skips LoadSkips(pqxx::transaction_base& tx, int partition) {
  Skips skips;
  for (const auto& [key, why] : SimTx::Of(tx).delivery().skips.rows()) {
    if (key.first == partition) skips[key.second] = why;
  }
  return skips;
}

void DeleteSkips(pqxx::transaction_base& tx, int partition, int64_t next_offset) {
  SimTx::Of(tx).delivery().skips.EraseIf([&](const auto& key, const auto&) {
    return key.first == partition && key.second < next_offset;
  });
}

std::optional<LeaseRow> TakeLease(pqxx::transaction_base& tx,
                                  const std::string& shard,
                                  const std::string& holder,
                                  Millis ttl) {
  SimTx& sim = SimTx::Of(tx);
  const Millis now = sim.database().Now();
  const DeliveryTables::Lease* known = sim.delivery().leases.Find(shard);
  if (known != nullptr && known->expires >= now && known->row.holder != holder) {
    return std::nullopt;
  }
  DeliveryTables::Lease& lease = sim.delivery().leases.Edit(shard);
  lease.row.holder = holder;
  ++lease.row.epoch;
  lease.row.incarnation = sim.database().NewIncarnation();
  lease.row.given_back = false;
  lease.expires = now + ttl;
  return lease.row;
}

bool RenewLease(pqxx::transaction_base& tx,
                const std::string& shard,
                const LeaseRow& lease,
                Millis ttl) {
  SimTx& sim = SimTx::Of(tx);
  const DeliveryTables::Lease* known = sim.delivery().leases.Find(shard);
  if (known == nullptr || known->row.epoch != lease.epoch ||
      known->row.incarnation != lease.incarnation || known->row.commits != lease.commits) {
    return false;
  }
  DeliveryTables::Lease& row = sim.delivery().leases.Edit(shard);
  ++row.row.commits;
  row.row.given_back = false;
  row.expires = sim.database().Now() + ttl;
  return true;
}

std::optional<LeaseRow> LockLease(pqxx::transaction_base& tx, const std::string& shard) {
  const DeliveryTables::Lease* known = SimTx::Of(tx).delivery().leases.Find(shard);
  return known == nullptr ? std::nullopt : std::optional(known->row);
}

void ReleaseLease(pqxx::transaction_base& tx, const std::string& shard, const LeaseRow& lease) {
  const DeliveryTables::Lease* known = SimTx::Of(tx).delivery().leases.Find(shard);
  if (known == nullptr || known->row.epoch != lease.epoch ||
      known->row.incarnation != lease.incarnation) {
    return;
  }
  DeliveryTables::Lease& row = SimTx::Of(tx).delivery().leases.Edit(shard);
  row.expires = Millis::min();
  row.row.given_back = true;
}

absl::StatusOr<std::vector<OutboxRow>> LoadOutbox(pqxx::transaction_base& tx,
                                                  const std::string& base) {
  std::vector<OutboxRow> rows;
  for (const auto& [number, row] : SimTx::Of(tx).delivery().outbox.rows()) {
    if (BaseOf(row.stream) == base) rows.push_back(row);
  }
  return rows;
}

uint64_t WriteBatch(pqxx::transaction_base& tx,
                    const BatchRows& rows,
                    const std::vector<OutboxRow>& sent) {
  SimTx& sim = SimTx::Of(tx);
  DeliveryTables& tables = sim.delivery();
  for (const InboxRow& moved : rows.moved) {
    if (!tables.inbox.Has(moved.partition)) continue;
    InboxRow& row = tables.inbox.Edit(moved.partition);
    ++row.commits;
    row.next_offset = moved.next_offset;
    row.append_time = moved.append_time;
    row.log_time = moved.log_time;
  }
  for (const BatchRows::Raised& raised : rows.raised) {
    tables.streams.Put({raised.partition, raised.stream}, {raised.position, sim.database().Now()});
  }
  for (const OutboxRow& row : sent) tables.outbox.Put(++tables.last_number, row);
  for (const Prefix& prefix : rows.cleared) {
    tables.outbox.EraseIf([&](const auto&, const OutboxRow& row) {
      return row.stream == prefix.stream && row.target == prefix.target &&
             row.last_seq <= prefix.last_seq;
    });
  }
  return rows.size() + 2 * sent.size();
}

// ---- quarantine

namespace {
auto KeyOf(const std::string& shard, const ObjectRef& object) {
  return std::tuple(shard, object.kind, object.uid);
}
}  // namespace

std::vector<QuarantineRow> LoadQuarantine(pqxx::transaction_base& tx, const std::string& shard) {
  std::vector<QuarantineRow> rows;
  for (const auto& [key, held] : SimTx::Of(tx).delivery().quarantine.rows()) {
    if (std::get<0>(key) == shard && !held.retry) rows.push_back(held.row);
  }
  return rows;
}

void WriteQuarantine(pqxx::transaction_base& tx,
                     const std::string& shard,
                     const Quarantine::Changes& changes) {
  auto& quarantine = SimTx::Of(tx).delivery().quarantine;
  for (const QuarantineRow& row : changes.upserts) {
    quarantine.Edit(KeyOf(shard, row.object)).row = row;
  }
  for (const auto& [kind, uid] : changes.deletes) quarantine.Erase({shard, kind, uid});
}

std::vector<Quarantine::Key> TakeRetried(pqxx::transaction_base& tx, const std::string& shard) {
  auto& quarantine = SimTx::Of(tx).delivery().quarantine;
  std::vector<Quarantine::Key> keys;
  for (const auto& [key, held] : quarantine.rows()) {
    if (std::get<0>(key) == shard && held.retry) {
      keys.emplace_back(std::get<1>(key), std::get<2>(key));
    }
  }
  for (const auto& [kind, uid] : keys) quarantine.Erase({shard, kind, uid});
  return keys;
}

void MarkUnderWay(pqxx::transaction_base& tx, const std::string& shard, const ObjectRef* object) {
  auto& under_way = SimTx::Of(tx).delivery().under_way;
  if (object == nullptr) {
    under_way.Erase(shard);
  } else {
    under_way.Put(shard, *object);
  }
}

void ClearUnderWay(pqxx::transaction_base& tx, const std::string& shard) {
  SimTx::Of(tx).delivery().under_way.Erase(shard);
}

int CountEnd(pqxx::transaction_base& tx, const std::string& shard, bool unclean) {
  DeliveryTables& tables = SimTx::Of(tx).delivery();
  const ObjectRef* marked = tables.under_way.Find(shard);
  if (unclean && marked != nullptr) {
    const ObjectRef object = *marked;
    const bool known = tables.quarantine.Has(KeyOf(shard, object));
    QuarantineRow& row = tables.quarantine.Edit(KeyOf(shard, object)).row;
    if (!known) row.object = object;
    row.object.version = object.version;
    row.reason = "the process ended while it was handled";
    ++row.ends;
    row.told = row.told && row.held;
    row.held = row.held || row.ends >= Quarantine::kEnds;
  }
  if (unclean) tables.under_way.Erase(shard);
  const int* ends = tables.ends.Find(shard);
  const int now = unclean ? (ends == nullptr ? 0 : *ends) + 1 : (ends == nullptr ? 0 : *ends);
  tables.ends.Put(shard, now);
  return now;
}

void ForgetEnds(pqxx::transaction_base& tx, const std::string& shard, int64_t epoch) {
  DeliveryTables& tables = SimTx::Of(tx).delivery();
  const DeliveryTables::Lease* lease = tables.leases.Find(shard);
  if (lease != nullptr && lease->row.epoch == epoch) tables.ends.Erase(shard);
}

}  // namespace fluxqueue::delivery
