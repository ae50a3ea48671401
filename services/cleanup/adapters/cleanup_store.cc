#include "services/cleanup/adapters/cleanup_store.h"

#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::cleanup {
namespace {

constexpr postgres::Statement kLive{
    "cleanup_live",
    "SELECT job_id, kind, namespace, name, attempt, "
    "  state IN ('Allocated', 'Bound', 'Running', 'Stopping'), state = 'Running' "
    "FROM queue.jobs WHERE live AND kind <> 'Claim'"};
constexpr postgres::Statement kHasTaken{
    "cleanup_has_taken",
    "SELECT EXISTS (SELECT FROM binder.slots WHERE job_id = $1 AND state = 'taken')"};
constexpr postgres::Statement kGraphNodes{
    "cleanup_graph_nodes", "SELECT pool, node FROM matcher.graph_nodes WHERE present"};
constexpr postgres::Statement kPools{
    "cleanup_pools", "SELECT job_id, pool FROM queue.jobs WHERE job_id = ANY($1::text[])"};
// Each job's slots are read once, however many pods name it; the pods are then joined by a hash. A
// pod that was fenced in one slot may have another.
constexpr postgres::Statement kProofs{
    "cleanup_proofs",
    "WITH hints AS MATERIALIZED ("
    "  SELECT * FROM unnest($1::text[], $2::text[]) AS h(job_id, pod_uid)) "
    "SELECT s.pod_uid, s.job_id, s.attempt, s.part, s.slot, s.slots, s.namespace, s.node "
    "FROM (SELECT DISTINCT job_id FROM hints) wanted "
    "CROSS JOIN LATERAL ("
    "  SELECT x.*, j.slots FROM binder.slots x JOIN queue.jobs j USING (job_id) "
    "  WHERE x.job_id = wanted.job_id AND x.state <> 'fenced' OFFSET 0) s "
    "JOIN hints h ON h.job_id = s.job_id AND h.pod_uid = s.pod_uid"};
constexpr postgres::Statement kPartition{"cleanup_partition",
                                         "SELECT partition FROM admission.pools WHERE pool = $1"};

}  // namespace

std::vector<LiveJob> LoadLiveJobs(pqxx::transaction_base& tx) {
  std::vector<LiveJob> jobs;
  for (const pqxx::row& row : postgres::Exec(tx, kLive)) {
    jobs.push_back({row[0].as<std::string>(),
                    row[1].as<std::string>(),
                    row[2].as<std::string>(),
                    row[3].as<std::string>(),
                    row[4].as<uint32_t>(),
                    row[5].as<bool>(),
                    row[6].as<bool>()});
  }
  return jobs;
}

bool HasTakenSlots(pqxx::transaction_base& tx, const std::string& job_id) {
  return postgres::Exec(tx, kHasTaken, job_id)[0][0].as<bool>();
}

std::vector<std::pair<std::string, events::v1::Node>> LoadGraphNodes(pqxx::transaction_base& tx) {
  std::vector<std::pair<std::string, events::v1::Node>> nodes;
  for (const pqxx::row& row : postgres::Exec(tx, kGraphNodes)) {
    auto& [pool, node] = nodes.emplace_back();
    pool = row[0].as<std::string>();
    // A node that does not decode is said anew.
    if (!node.ParseFromString(pqxx::binarystring(row[1]).str())) nodes.pop_back();
  }
  return nodes;
}

void LoadProofs(pqxx::transaction_base& tx, std::span<const Hint> hints, Proofs* proofs) {
  postgres::TextArray job_ids, pod_uids;
  for (const Hint& hint : hints) {
    job_ids.Add(hint.job_id);
    pod_uids.Add(hint.pod_uid);
  }
  for (const pqxx::row& row : postgres::Exec(tx, kProofs, job_ids.text(), pod_uids.text())) {
    (*proofs)[row[0].as<std::string>()] = {.job_id = row[1].as<std::string>(),
                                           .slot = {.attempt = row[2].as<uint32_t>(),
                                                    .part = row[3].as<uint32_t>(),
                                                    .slot = row[4].as<uint32_t>(),
                                                    .slots = row[5].as<uint32_t>()},
                                           .space = row[6].as<std::string>(),
                                           .node = row[7].as<std::string>()};
  }
}

std::vector<std::pair<std::string, std::string>> LoadPoolsOf(
    pqxx::transaction_base& tx, const std::vector<std::string>& job_ids) {
  postgres::TextArray ids;
  for (const std::string& job_id : job_ids) ids.Add(job_id);
  std::vector<std::pair<std::string, std::string>> pools;
  for (const pqxx::row& row : postgres::Exec(tx, kPools, ids.text())) {
    pools.emplace_back(row[0].as<std::string>(), row[1].as<std::string>());
  }
  return pools;
}

std::optional<int> LoadPartition(pqxx::transaction_base& tx, const std::string& pool) {
  for (const pqxx::row& row : postgres::Exec(tx, kPartition, pool)) return row[0].as<int>();
  return std::nullopt;
}

}  // namespace fluxqueue::cleanup
