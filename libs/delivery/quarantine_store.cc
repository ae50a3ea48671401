#include "libs/delivery/quarantine_store.h"

#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"
#include "libs/postgres/table.h"

namespace fluxqueue::delivery {
namespace {

using postgres::Exec;
using postgres::Field;
using postgres::SharedKey;
using postgres::Statement;
using postgres::Table;
using postgres::TextArray;

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

// Of the schema of the service whose shard it is.
const Table<QuarantineRow>& Rows() {
  static const Table<QuarantineRow> table(
      "quarantine",
      {SharedKey("shard")},
      {Field<&QuarantineRow::object, &ObjectRef::kind>("kind").Key(),
       Field<&QuarantineRow::object, &ObjectRef::uid>("uid").Key(),
       Field<&QuarantineRow::object, &ObjectRef::space>("space"),
       Field<&QuarantineRow::object, &ObjectRef::name>("name"),
       Field<&QuarantineRow::object, &ObjectRef::version>("version"),
       Field<&QuarantineRow::reason>("reason"),
       Field<&QuarantineRow::times>("times"),
       Field<&QuarantineRow::ends>("ends"),
       Field<&QuarantineRow::held>("held"),
       Field<&QuarantineRow::told>("told"),
       postgres::Computed<QuarantineRow>("last", "now()")});
  return table;
}

}  // namespace

std::vector<QuarantineRow> LoadQuarantine(pqxx::transaction_base& tx, const std::string& shard) {
  static const std::string sql = Rows().Select("WHERE t.shard = $1 AND NOT t.retry");
  return Rows().Read(Exec(tx, Statement{"delivery_quarantine", sql.c_str()}, shard));
}

void WriteQuarantine(pqxx::transaction_base& tx,
                     const std::string& shard,
                     const Quarantine::Changes& changes) {
  Rows().Write(tx, changes.upserts, shard);
  std::vector<QuarantineRow> deleted;
  for (const auto& [kind, uid] : changes.deletes) {
    deleted.push_back({.object = {.kind = kind, .uid = uid}});
  }
  Rows().Delete(tx, deleted, shard);
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
  // Arrays, which clean the texts.
  TextArray kind, uid, space, name, version;
  kind.Add(object->kind);
  uid.Add(object->uid);
  space.Add(object->space);
  name.Add(object->name);
  version.Add(object->version);
  Exec(tx, kMark, shard, kind.text(), uid.text(), space.text(), name.text(), version.text());
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
