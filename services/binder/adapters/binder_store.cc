#include "services/binder/adapters/binder_store.h"

#include <set>

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/log.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"
#include "libs/postgres/table.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;
using postgres::ArrayText;
using postgres::BigintArray;
using postgres::Blob;
using postgres::Exec;
using postgres::Field;
using postgres::SharedKey;
using postgres::Statement;
using postgres::Table;
using postgres::TextArray;

// LATERAL … OFFSET 0: the keys drive, also in a plan that is kept (postgres::Plans::kKept).
constexpr Statement kLoadPlacements{
    "binder_load_placements",
    "SELECT a.job_id, a.attempt, a.placement, a.released "
    "FROM unnest($1::text[], $2::bigint[]) AS wanted(job_id, attempt) "
    "CROSS JOIN LATERAL ("
    "  SELECT * FROM matcher.allocations x "
    "  WHERE x.job_id = wanted.job_id AND x.attempt = wanted.attempt AND x.part = 0 OFFSET 0) a"};
// A matcher of an older release lets no binder read them.
constexpr Statement kKnowsNodes{"binder_knows_nodes",
                                "SELECT has_table_privilege('matcher.graph_nodes', 'SELECT')"};
constexpr Statement kLoadNodes{
    "binder_load_nodes",
    "SELECT n.pool, n.name, n.uid FROM unnest($1::text[], $2::text[]) AS wanted(pool, name) "
    "CROSS JOIN LATERAL ("
    "  SELECT * FROM matcher.graph_nodes x "
    "  WHERE x.pool = wanted.pool AND x.name = wanted.name OFFSET 0) n "
    "WHERE n.present"};
constexpr Statement kLoadPools{"binder_load_pools", "SELECT pool, partition FROM admission.pools"};

// A queue of an older release has no such table, and lets no binder read.
constexpr Statement kKnowsLackNodes{
    "binder_knows_lack_nodes",
    "SELECT count(*) = 2 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'queue' AND c.relname IN ('lack_nodes', 'jobs') "
    "  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"};
constexpr Statement kLoadLackNodes{
    "binder_load_lack_nodes",
    "SELECT j.row, job_id FROM queue.lack_nodes l JOIN queue.jobs j USING (job_id) "
    "WHERE j.state = 'Pending' AND j.reason IN ('Busy', 'Reserved', 'Unsatisfiable') "
    "ORDER BY job_id"};

// `version` is that of an attempt's first fact, or of the one that stops it.
constexpr Statement kLoadMissed{
    "binder_load_missed",
    "(SELECT j.row, j.job_id, false FROM queue.jobs j LEFT JOIN jobs b USING (job_id) "
    " WHERE j.job_id > $1 AND j.live AND j.kind <> 'Claim' AND "
    "   j.state IN ('Allocated', 'Bound', 'Running', 'Stopping') AND "
    "   (b.job_id IS NULL OR b.attempt < j.attempt "
    "    OR (j.state = 'Stopping' AND b.version < j.version)) "
    " ORDER BY job_id LIMIT $2) "
    "UNION ALL "
    "(SELECT j.row, j.job_id, false FROM jobs b JOIN queue.jobs j USING (job_id) "
    " WHERE b.job_id > $1 AND j.version > b.version AND "
    "   j.state NOT IN ('Allocated', 'Bound', 'Running', 'Stopping') "
    " ORDER BY job_id LIMIT $2) "
    "UNION ALL "
    "(SELECT NULL, b.job_id, true FROM jobs b JOIN queue.jobs j USING (job_id, attempt) "
    " WHERE b.job_id > $1 AND ((b.stopped AND j.state = 'Stopping') "
    "   OR (b.failed AND j.state IN ('Allocated', 'Bound', 'Running'))) "
    " ORDER BY job_id LIMIT $2) "
    "ORDER BY 2 LIMIT $2"};

constexpr Statement kForgetJobs{"binder_forget_jobs",
                                "DELETE FROM jobs WHERE job_id = ANY($1::text[])"};
constexpr Statement kForgetSlots{"binder_forget_slots",
                                 "DELETE FROM slots WHERE job_id = ANY($1::text[])"};
std::string Bytes(const pqxx::field& field) {
  return pqxx::binarystring(field).str();
}

const Table<JobRow>& Jobs() {
  static const Table<JobRow> table("binder.jobs",
                                   {},
                                   {Field<&JobRow::job_id>("job_id").Key(),
                                    Field<&JobRow::partition>("partition"),
                                    Field<&JobRow::pool>("pool"),
                                    Field<&JobRow::version>("version"),
                                    Field<&JobRow::attempt>("attempt"),
                                    Blob<&JobRow::fact>("fact"),
                                    Field<&JobRow::failed>("failed"),
                                    Field<&JobRow::stopped>("stopped"),
                                    Field<&JobRow::resumed>("resumed")});
  return table;
}

// Their part is 0.
const Table<SlotRow>& Slots() {
  static const Table<SlotRow> table(
      "binder.slots",
      {SharedKey("part")},
      {Field<&SlotRow::job_id>("job_id").Key(),
       Field<&SlotRow::attempt>("attempt").Key(),
       Field<&SlotRow::slot>("slot").Key(),
       Field<&SlotRow::space>("namespace").Once(),
       Field<&SlotRow::value, &Slot::node>("node"),
       Field<&SlotRow::value, &Slot::pod_uid>("pod_uid"),
       Field<&SlotRow::value, &Slot::pod_name>("pod_name"),
       {.spec = {.name = "state"},
        .put = [](const SlotRow& row,
                  ArrayText* values) { values->AddText(Name(row.value.state)); },
        .take =
            [](const pqxx::field& field, SlotRow* row) {
              row->value.state = ParseSlotState(field.c_str()).value_or(SlotState::kTaken);
            }},
       Field<&SlotRow::value, &Slot::bound_once>("bound_once"),
       Field<&SlotRow::value, &Slot::succeeded>("succeeded")});
  return table;
}

}  // namespace

std::vector<StoredJob> LoadJobs(pqxx::transaction_base& tx, int partition) {
  static const std::string of_partition = Jobs().Select("WHERE t.partition = $1");
  static const std::string slots_of_jobs = Slots().Select(
      "JOIN binder.jobs j USING (job_id, attempt) WHERE j.partition = $1 AND t.part = 0");
  std::map<std::string, StoredJob> jobs;
  const Statement load_jobs{"binder_load_jobs", of_partition.c_str()};
  for (const pqxx::row& row : Exec(tx, load_jobs, partition)) {
    JobRow job = Jobs().Read(row);
    std::string job_id = job.job_id;
    jobs[std::move(job_id)].job = std::move(job);
  }
  const Statement load_slots{"binder_load_slots", slots_of_jobs.c_str()};
  for (const pqxx::row& row : Exec(tx, load_slots, partition)) {
    SlotRow slot = Slots().Read(row);
    jobs.at(slot.job_id).slots.push_back(std::move(slot));
  }
  std::vector<StoredJob> stored;
  stored.reserve(jobs.size());
  for (auto& [job_id, job] : jobs) stored.push_back(std::move(job));
  return stored;
}

void WriteRows(pqxx::transaction_base& tx, const Rows& rows) {
  TextArray jobs, slots;
  for (const std::string& job_id : rows.forgotten) {
    jobs.Add(job_id);
    slots.Add(job_id);
  }
  for (const std::string& job_id : rows.renewed) slots.Add(job_id);
  if (!jobs.empty()) Exec(tx, kForgetJobs, jobs.text());
  if (!slots.empty()) Exec(tx, kForgetSlots, slots.text());
  Jobs().Write(tx, rows.jobs);
  Slots().Write(tx, rows.slots, 0);
}

namespace {

// By pool and name.
using Uids = std::map<std::pair<std::string, std::string>, std::string>;

Uids LoadNodes(pqxx::transaction_base& tx, const std::vector<PlacementKey>& keys) {
  std::set<std::pair<std::string, std::string>> wanted;
  for (const PlacementKey& key : keys) {
    for (const std::string& node : key.nodes) wanted.emplace(key.pool, node);
  }
  Uids uids;
  if (wanted.empty() || !Exec(tx, kKnowsNodes)[0][0].as<bool>()) return uids;
  TextArray pools;
  TextArray names;
  for (const auto& [pool, name] : wanted) {
    pools.Add(pool);
    names.Add(name);
  }
  for (const pqxx::row& row : Exec(tx, kLoadNodes, pools.text(), names.text())) {
    uids[{row[0].as<std::string>(), row[1].as<std::string>()}] = row[2].as<std::string>();
  }
  return uids;
}

std::map<std::string, std::string> UidsOf(const PlacementKey& key, const Uids& uids) {
  std::map<std::string, std::string> of_key;
  for (const std::string& node : key.nodes) {
    const auto uid = uids.find({key.pool, node});
    if (uid != uids.end()) of_key.insert({node, uid->second});
  }
  return of_key;
}

}  // namespace

// Nodes first: each statement sees what was committed when it began, and a node that is another
// takes its slots along.
std::map<std::pair<std::string, uint32_t>, PlacementRow> LoadPlacements(
    pqxx::transaction_base& tx, const std::vector<PlacementKey>& keys) {
  const Uids uids = LoadNodes(tx, keys);
  std::map<std::pair<std::string, uint32_t>, PlacementRow> placements;
  if (keys.empty()) return placements;
  TextArray ids;
  BigintArray attempts;
  for (const PlacementKey& key : keys) {
    ids.Add(key.job_id);
    attempts.Add(key.attempt);
  }
  for (const pqxx::row& row : Exec(tx, kLoadPlacements, ids.text(), attempts.text())) {
    PlacementRow placement;
    const auto job_id = row[0].as<std::string>();
    if (!placement.placement.ParseFromString(Bytes(row[2]))) {
      LogError("placement in matcher.allocations does not decode", {{"job", job_id}});
      continue;
    }
    placement.released = row[3].as<bool>();
    placements.emplace(std::pair(job_id, row[1].as<uint32_t>()), std::move(placement));
  }
  for (const PlacementKey& key : keys) {
    const auto placement = placements.find({key.job_id, key.attempt});
    if (placement != placements.end()) placement->second.node_uids = UidsOf(key, uids);
  }
  return placements;
}

std::optional<std::vector<JobFact>> LoadLackNodes(pqxx::transaction_base& tx) {
  if (!Exec(tx, kKnowsLackNodes)[0][0].as<bool>()) return std::nullopt;
  std::vector<JobFact> facts;
  for (const pqxx::row& row : Exec(tx, kLoadLackNodes)) {
    fluxqueue::queue::v1::JobRow job;
    if (job.ParseFromString(Bytes(row[0]))) {
      facts.push_back(std::move(*job.mutable_fact()));
    } else {
      LogError("a row of queue.jobs does not decode", {{"job", row[1].as<std::string>()}});
    }
  }
  return facts;
}

Missed LoadMissed(pqxx::transaction_base& tx, const std::string& after) {
  Missed missed;
  if (!Exec(tx, kKnowsLackNodes)[0][0].as<bool>()) return missed;
  const pqxx::result rows = Exec(tx, kLoadMissed, after, kMostMissed);
  if (static_cast<int64_t>(rows.size()) == kMostMissed) {
    missed.next = rows.back()[1].as<std::string>();
  }
  for (const pqxx::row& row : rows) {
    const auto job_id = row[1].as<std::string>();
    fluxqueue::queue::v1::JobRow job;
    if (row[2].as<bool>()) {
      missed.ends.push_back(job_id);
    } else if (job.ParseFromString(Bytes(row[0]))) {
      missed.facts.push_back(std::move(*job.mutable_fact()));
    } else {
      LogError("a row of queue.jobs does not decode", {{"job", job_id}});
    }
  }
  return missed;
}

std::map<std::string, int> LoadPools(pqxx::transaction_base& tx) {
  std::map<std::string, int> pools;
  for (const pqxx::row& row : Exec(tx, kLoadPools)) {
    pools[row[0].as<std::string>()] = row[1].as<int>();
  }
  return pools;
}

}  // namespace fluxqueue::binder
