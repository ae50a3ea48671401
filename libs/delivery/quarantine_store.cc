#include "libs/delivery/quarantine_store.h"

#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::delivery {
namespace {

using postgres::Exec;
using postgres::Statement;

constexpr Statement kLoad = {
    "delivery_quarantine",
    "SELECT kind, uid, space, name, version, reason, times, ends, held, told FROM quarantine "
    "WHERE shard = $1 AND NOT retry"};

constexpr Statement kUpsert = {
    "delivery_quarantine_upsert",
    "INSERT INTO quarantine AS q (shard, kind, uid, space, name, version, reason, times, ends, "
    "  held, told) "
    "SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], "
    "  $7::text[], $8::bigint[], $9::int[], $10::boolean[], $11::boolean[]) "
    "ON CONFLICT (shard, kind, uid) DO UPDATE SET space = EXCLUDED.space, name = EXCLUDED.name, "
    "  version = EXCLUDED.version, reason = EXCLUDED.reason, times = EXCLUDED.times, "
    "  ends = EXCLUDED.ends, held = EXCLUDED.held, told = EXCLUDED.told, last = now()"};

constexpr Statement kDelete = {
    "delivery_quarantine_delete",
    "DELETE FROM quarantine q USING unnest($2::text[], $3::text[]) AS d (kind, uid) "
    "WHERE q.shard = $1 AND q.kind = d.kind AND q.uid = d.uid"};

constexpr Statement kRetried = {
    "delivery_quarantine_retried",
    "DELETE FROM quarantine WHERE shard = $1 AND retry RETURNING kind, uid"};

// One statement, so that it is a transaction by itself: its commit waits for no disk, since only a
// process of ours that ends is to be survived.
constexpr Statement kMark = {
    "delivery_under_way",
    "WITH lazily AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) "
    "INSERT INTO under_way (shard, kind, uid, space, name, version) "
    "SELECT $1, k, u, s, n, v FROM lazily, unnest($2::text[], $3::text[], $4::text[], $5::text[], "
    "  $6::text[]) AS o (k, u, s, n, v) "
    "ON CONFLICT (shard) DO UPDATE SET kind = EXCLUDED.kind, uid = EXCLUDED.uid, "
    "  space = EXCLUDED.space, name = EXCLUDED.name, version = EXCLUDED.version"};

constexpr Statement kUnmark = {
    "delivery_under_way_unmark",
    "WITH lazily AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) "
    "DELETE FROM under_way USING lazily WHERE shard = $1"};

constexpr Statement kClear = {"delivery_under_way_clear", "DELETE FROM under_way WHERE shard = $1"};

constexpr Statement kCountEnd = {
    "delivery_count_end", "UPDATE leases SET ends = ends + $2 WHERE shard = $1 RETURNING ends"};

constexpr Statement kForgetEnds = {"delivery_forget_ends",
                                   "UPDATE leases SET ends = 0 WHERE shard = $1 AND epoch = $2"};

constexpr Statement kSuspect = {
    "delivery_under_way_suspect",
    "WITH mark AS (DELETE FROM under_way WHERE shard = $1 RETURNING *) "
    "INSERT INTO quarantine AS q (shard, kind, uid, space, name, version, reason, times, ends, "
    "  held, told) "
    "SELECT shard, kind, uid, space, name, version, 'the process ended while it was handled', 0, "
    "  1, false, false FROM mark "
    "ON CONFLICT (shard, kind, uid) DO UPDATE SET version = EXCLUDED.version, "
    "  reason = EXCLUDED.reason || ', ' || q.ends + 1 || ' times', ends = q.ends + 1, "
    "  held = q.held OR q.ends + 1 >= $2, told = q.told AND q.held, last = now()"};

struct ObjectArrays {
  postgres::TextArray kind, uid, space, name, version;
  void Add(const ObjectRef& object) {
    kind.Add(object.kind);
    uid.Add(object.uid);
    space.Add(object.space);
    name.Add(object.name);
    version.Add(object.version);
  }
};

}  // namespace

std::vector<QuarantineRow> LoadQuarantine(pqxx::transaction_base& tx, const std::string& shard) {
  std::vector<QuarantineRow> rows;
  for (const pqxx::row& row : Exec(tx, kLoad, shard)) {
    rows.push_back({.object = {.kind = row[0].as<std::string>(),
                               .space = row[2].as<std::string>(),
                               .name = row[3].as<std::string>(),
                               .uid = row[1].as<std::string>(),
                               .version = row[4].as<std::string>()},
                    .reason = row[5].as<std::string>(),
                    .times = row[6].as<int64_t>(),
                    .ends = row[7].as<int>(),
                    .held = row[8].as<bool>(),
                    .told = row[9].as<bool>()});
  }
  return rows;
}

void WriteQuarantine(pqxx::transaction_base& tx,
                     const std::string& shard,
                     const Quarantine::Changes& changes) {
  if (!changes.upserts.empty()) {
    ObjectArrays objects;
    postgres::TextArray reasons;
    postgres::BigintArray times, ends;
    postgres::BoolArray held, told;
    for (const QuarantineRow& row : changes.upserts) {
      objects.Add(row.object);
      reasons.Add(row.reason);
      times.Add(row.times);
      ends.Add(row.ends);
      held.Add(row.held);
      told.Add(row.told);
    }
    Exec(tx,
         kUpsert,
         shard,
         objects.kind.text(),
         objects.uid.text(),
         objects.space.text(),
         objects.name.text(),
         objects.version.text(),
         reasons.text(),
         times.text(),
         ends.text(),
         held.text(),
         told.text());
  }
  if (!changes.deletes.empty()) {
    postgres::TextArray kinds, uids;
    for (const auto& [kind, uid] : changes.deletes) {
      kinds.Add(kind);
      uids.Add(uid);
    }
    Exec(tx, kDelete, shard, kinds.text(), uids.text());
  }
}

std::vector<Quarantine::Key> TakeRetried(pqxx::transaction_base& tx, const std::string& shard) {
  std::vector<Quarantine::Key> keys;
  for (const pqxx::row& row : Exec(tx, kRetried, shard)) {
    keys.emplace_back(row[0].as<std::string>(), row[1].as<std::string>());
  }
  return keys;
}

void MarkUnderWay(pqxx::transaction_base& tx, const std::string& shard, const ObjectRef* object) {
  if (object == nullptr) {
    Exec(tx, kUnmark, shard);
    return;
  }
  ObjectArrays arrays;
  arrays.Add(*object);
  Exec(tx,
       kMark,
       shard,
       arrays.kind.text(),
       arrays.uid.text(),
       arrays.space.text(),
       arrays.name.text(),
       arrays.version.text());
}

void ClearUnderWay(pqxx::transaction_base& tx, const std::string& shard) {
  Exec(tx, kClear, shard);
}

int CountEnd(pqxx::transaction_base& tx, const std::string& shard, bool unclean) {
  if (unclean) Exec(tx, kSuspect, shard, Quarantine::kEnds);
  return Exec(tx, kCountEnd, shard, unclean ? 1 : 0)[0][0].as<int>();
}

void ForgetEnds(pqxx::transaction_base& tx, const std::string& shard, int64_t epoch) {
  Exec(tx, kForgetEnds, shard, epoch);
}

}  // namespace fluxqueue::delivery
