#include "services/queue/adapters/attempt_store.h"

#include <fmt/format.h>

#include "libs/postgres/array.h"
#include "libs/postgres/grants.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::queue {
namespace {

using model::Month;
using postgres::BigintArray;
using postgres::Exec;
using postgres::Statement;
using postgres::TextArray;
using queue_core::AttemptRecord;

constexpr Statement kInsertAttempts{
    "queue_insert_attempts",
    "INSERT INTO attempts (pool, job_id, attempt, username, namespace, name, kind, queue, outcome, "
    "  reason, message, slots, duration_ms, cpu_millis, memory_bytes, gpu_millis, "
    "  cpu_milli_seconds, memory_mib_seconds, gpu_milli_seconds, submitted_ms, waited_ms, "
    "start_ms, "
    "  ended_ms) "
    "SELECT $1, job_id, attempt, username, namespace, name, kind, queue, outcome, reason, "
    "  left(message, 200), slots, duration_ms, cpu_millis, memory_bytes, gpu_millis, "
    "  cpu_milli_seconds, memory_mib_seconds, gpu_milli_seconds, submitted_ms, waited_ms, "
    "start_ms, "
    "  ended_ms "
    "FROM unnest($2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], "
    "  $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], "
    "  $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], "
    "  $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[]) "
    "  AS r(job_id, attempt, username, namespace, name, kind, queue, outcome, reason, message, "
    "       slots, duration_ms, cpu_millis, memory_bytes, gpu_millis, cpu_milli_seconds, "
    "       memory_mib_seconds, gpu_milli_seconds, submitted_ms, waited_ms, start_ms, ended_ms) "
    "ON CONFLICT DO NOTHING"};
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

// A column array for each column of queue.attempts.
struct Columns {
  TextArray ids, users, namespaces, names, kinds, queues, outcomes, reasons, messages;
  BigintArray attempts, slots, durations, cpus, memories, gpus, cpus_used, memories_used, gpus_used;
  BigintArray submitted, waited, starts, ends;

  void Add(const AttemptRecord& attempt) {
    ids.Add(attempt.job_id);
    attempts.Add(attempt.attempt);
    users.Add(attempt.user);
    namespaces.Add(attempt.name_space);
    names.Add(attempt.name);
    kinds.Add(attempt.kind);
    queues.Add(attempt.queue);
    outcomes.Add(attempt.outcome);
    reasons.Add(attempt.reason);
    messages.Add(attempt.message);
    slots.Add(attempt.slots);
    durations.Add(attempt.duration_ms);
    cpus.Add(attempt.cpu);
    memories.Add(attempt.memory);
    gpus.Add(attempt.gpu);
    cpus_used.Add(attempt.cpu_seconds);
    memories_used.Add(attempt.memory_seconds);
    gpus_used.Add(attempt.gpu_seconds);
    submitted.Add(attempt.submitted_ms);
    waited.Add(attempt.waited_ms);
    if (attempt.start_ms.has_value()) {
      starts.Add(*attempt.start_ms);
    } else {
      starts.AddNull();
    }
    ends.Add(attempt.end_ms);
  }
};

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
  Columns c;
  std::set<Month> months;
  for (const AttemptRecord& attempt : attempts) {
    c.Add(attempt);
    months.insert(model::MonthOf(attempt.end_ms));
  }
  MakeMonths(tx, months);
  Exec(tx,
       kInsertAttempts,
       pool,
       c.ids.text(),
       c.attempts.text(),
       c.users.text(),
       c.namespaces.text(),
       c.names.text(),
       c.kinds.text(),
       c.queues.text(),
       c.outcomes.text(),
       c.reasons.text(),
       c.messages.text(),
       c.slots.text(),
       c.durations.text(),
       c.cpus.text(),
       c.memories.text(),
       c.gpus.text(),
       c.cpus_used.text(),
       c.memories_used.text(),
       c.gpus_used.text(),
       c.submitted.text(),
       c.waited.text(),
       c.starts.text(),
       c.ends.text());
  return attempts.size();
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
