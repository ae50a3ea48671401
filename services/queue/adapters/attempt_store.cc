#include "services/queue/adapters/attempt_store.h"

#include <fmt/format.h>

#include "libs/postgres/array.h"
#include "libs/postgres/grants.h"
#include "libs/postgres/statement.h"
#include "libs/postgres/table.h"

namespace fluxqueue::queue {
namespace {

using model::Month;
using postgres::Exec;
using postgres::Field;
using postgres::Shared;
using postgres::Statement;
using postgres::Table;
using postgres::TextArray;
using queue_core::AttemptRecord;

// Not by to_regclass: a session remembers that it found no such table, and asks again only once it
// locks some table.
constexpr Statement kMissing{"queue_missing_months",
                             "SELECT name FROM unnest($1::text[]) AS m(name) WHERE NOT EXISTS "
                             "  (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
                             "   WHERE i.inhparent = 'attempts'::regclass AND c.relname = m.name)"};
// Two who make the same partition would else get into each other's way. Nobody else locks the row,
// and nobody who may not write the table can: an advisory lock would be anybody's.
constexpr Statement kLockMonths{"queue_lock_months",
                                "SELECT FROM migrations ORDER BY name LIMIT 1 FOR UPDATE"};
constexpr Statement kMonths{
    "queue_months",
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "WHERE i.inhparent = 'attempts'::regclass"};

const Table<AttemptRecord>& Attempts() {
  static const Table<AttemptRecord> table(
      "queue.attempts",
      {Shared("pool")},
      {Field<&AttemptRecord::job_id>("job_id").Key(),
       Field<&AttemptRecord::attempt>("attempt").Key(),
       Field<&AttemptRecord::end_ms>("ended_ms").Key(),
       Field<&AttemptRecord::user>("username"),
       Field<&AttemptRecord::name_space>("namespace"),
       Field<&AttemptRecord::name>("name"),
       Field<&AttemptRecord::kind>("kind"),
       Field<&AttemptRecord::queue>("queue"),
       Field<&AttemptRecord::outcome>("outcome"),
       Field<&AttemptRecord::reason>("reason"),
       Field<&AttemptRecord::message>("message").As("left(r.message, 200)"),
       Field<&AttemptRecord::slots>("slots"),
       Field<&AttemptRecord::duration_ms>("duration_ms"),
       Field<&AttemptRecord::cpu>("cpu_millis"),
       Field<&AttemptRecord::memory>("memory_bytes"),
       Field<&AttemptRecord::gpu>("gpu_millis"),
       Field<&AttemptRecord::cpu_seconds>("cpu_milli_seconds"),
       Field<&AttemptRecord::memory_seconds>("memory_mib_seconds"),
       Field<&AttemptRecord::gpu_seconds>("gpu_milli_seconds"),
       Field<&AttemptRecord::submitted_ms>("submitted_ms"),
       Field<&AttemptRecord::waited_ms>("waited_ms"),
       Field<&AttemptRecord::start_ms>("start_ms")},
      postgres::Conflict::kKeep);
  return table;
}

std::vector<Month> Missing(pqxx::transaction_base& tx, const std::set<Month>& months) {
  TextArray names;
  for (const Month month : months) names.Add(model::PartitionOf(month));
  std::vector<Month> missing;
  for (const pqxx::row& row : Exec(tx, kMissing, names.text())) {
    missing.push_back(model::MonthOfPartition(row[0].as<std::string>()).value());
  }
  return missing;
}

}  // namespace

size_t WriteAttempts(pqxx::transaction_base& tx,
                     const std::string& pool,
                     const std::vector<AttemptRecord>& attempts) {
  if (attempts.empty()) return 0;
  std::set<Month> months;
  for (const AttemptRecord& attempt : attempts) months.insert(model::MonthOf(attempt.end_ms));
  MakeMonths(tx, months);
  return Attempts().Write(tx, attempts, pool);
}

// Attached, not CREATE … PARTITION OF: that would wait for all who read the table, a backup too,
// and let nobody write meanwhile.
void MakeMonths(pqxx::transaction_base& tx, const std::set<Month>& months) {
  if (Missing(tx, months).empty()) return;
  Exec(tx, kLockMonths);
  for (const Month month : Missing(tx, months)) {
    const std::string name = model::PartitionOf(month);
    tx.exec(fmt::format("CREATE TABLE {} (LIKE attempts INCLUDING ALL)", name));
    tx.exec(fmt::format("ALTER TABLE attempts ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})",
                        name,
                        model::BeginOf(month),
                        model::BeginOf(month + std::chrono::months(1))));
  }
  postgres::ApplyGrants(tx, "queue");
}

std::set<Month> Months(pqxx::transaction_base& tx) {
  std::set<Month> months;
  for (const pqxx::row& row : Exec(tx, kMonths)) {
    const auto month = model::MonthOfPartition(row[0].as<std::string>());
    if (month.has_value()) months.insert(*month);
  }
  return months;
}

void DropMonth(pqxx::transaction_base& tx, Month month) {
  tx.exec("SET LOCAL lock_timeout = 1000");
  tx.exec(fmt::format("DROP TABLE IF EXISTS {}", model::PartitionOf(month)));
}

}  // namespace fluxqueue::queue
