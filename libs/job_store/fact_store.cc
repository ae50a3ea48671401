#include "libs/job_store/fact_store.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::job_store {
namespace {

using events::v1::JobFact;
using postgres::Exec;
using postgres::Statement;

constexpr Statement kPage{
    "fact_store_page",
    "SELECT row FROM queue.jobs "
    "WHERE job_id > $1 AND ($2 = '' OR pool = $2) AND ($3 = '' OR queue = $3) "
    "  AND ($4 = '' OR namespace = $4) AND ($5 = '' OR kind = $5) "
    "  AND (cardinality($6::text[]) = 0 OR state = ANY($6::text[])) AND ($7::boolean OR live) "
    "  AND ($8::boolean OR kind <> 'Claim' OR namespace <> '') "
    "ORDER BY job_id LIMIT $9::bigint"};
constexpr Statement kNamed{"fact_store_named",
                           "SELECT row FROM queue.jobs WHERE namespace = $1 AND name = $2 "
                           "ORDER BY live DESC, created_ms DESC LIMIT 10"};
constexpr Statement kFind{"fact_store_find", "SELECT row FROM queue.jobs WHERE job_id = $1"};
constexpr Statement kAccepted{"fact_store_accepted",
                              "SELECT job_id FROM queue.commands WHERE client_id = $1"};
constexpr Statement kClaims{
    "fact_store_claims",
    "SELECT count(*), coalesce(sum(jobspec_bytes), 0)::bigint FROM queue.jobs "
    "WHERE username = $1 AND live AND kind = 'Claim'"};
constexpr Statement kClaimsBelow{
    "fact_store_claims_below",
    "SELECT count(*), coalesce(sum(jobspec_bytes), 0)::bigint FROM queue.jobs "
    "WHERE starts_with(username, $1) AND live AND kind = 'Claim'"};
constexpr Statement kSpace{
    "fact_store_space",
    "SELECT q.queue, q.row, count(j.job_id), coalesce(sum(j.jobspec_bytes), 0)::bigint "
    "FROM queue.queues q LEFT JOIN queue.jobs j "
    "  ON j.pool = q.pool AND j.queue = q.queue AND j.namespace = $2 AND j.live "
    "WHERE q.pool = $1 GROUP BY q.queue, q.row"};
constexpr Statement kHolder{"fact_store_holder",
                            "SELECT i.holder, i.address FROM queue.pools p "
                            "JOIN queue.inbox i USING (partition) WHERE p.pool = $1"};

absl::StatusOr<queue::v1::JobRow> ReadRow(const pqxx::field& field) {
  queue::v1::JobRow row;
  if (!row.ParseFromString(pqxx::binarystring(field).str())) {
    return Internal("a row of queue.jobs does not decode");
  }
  return row;
}

absl::StatusOr<JobFact> ReadFact(const pqxx::field& field) {
  ASSIGN_OR_RETURN(queue::v1::JobRow row, ReadRow(field));
  return std::move(*row.mutable_fact());
}

}  // namespace

FactStore::FactStore(postgres::Options options, size_t connections)
    : connections_(options, connections) {}

absl::StatusOr<std::vector<JobFact>> FactStore::Page(const FactFilter& filter,
                                                     const std::string& after,
                                                     size_t limit) {
  postgres::TextArray states;
  for (const std::string& state : filter.states) states.Add(state);
  std::vector<JobFact> facts;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    facts.clear();
    for (const pqxx::row& row : Exec(tx,
                                     kPage,
                                     after,
                                     filter.pool,
                                     filter.queue,
                                     filter.space,
                                     filter.kind,
                                     states.text(),
                                     filter.ended,
                                     filter.claims,
                                     static_cast<int64_t>(limit))) {
      ASSIGN_OR_RETURN(JobFact fact, ReadFact(row[0]));
      facts.push_back(std::move(fact));
    }
    return absl::OkStatus();
  }));
  return facts;
}

absl::StatusOr<std::vector<JobFact>> FactStore::Named(const std::string& space,
                                                      const std::string& name) {
  std::vector<JobFact> facts;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    facts.clear();
    for (const pqxx::row& row : Exec(tx, kNamed, space, name)) {
      ASSIGN_OR_RETURN(JobFact fact, ReadFact(row[0]));
      facts.push_back(std::move(fact));
    }
    return absl::OkStatus();
  }));
  return facts;
}

absl::StatusOr<std::optional<JobFact>> FactStore::Find(const std::string& job_id) {
  ASSIGN_OR_RETURN(std::optional<queue::v1::JobRow> row, FindRow(job_id));
  if (!row.has_value()) return std::nullopt;
  return std::move(*row->mutable_fact());
}

absl::StatusOr<std::optional<queue::v1::JobRow>> FactStore::FindRow(const std::string& job_id) {
  std::optional<queue::v1::JobRow> found;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    found.reset();
    for (const pqxx::row& row : Exec(tx, kFind, job_id)) {
      ASSIGN_OR_RETURN(found, ReadRow(row[0]));
    }
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<std::map<std::string, QueueUse>> FactStore::UseOf(const std::string& pool,
                                                                 const std::string& space) {
  std::map<std::string, QueueUse> queues;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    queues.clear();
    for (const pqxx::row& row : Exec(tx, kSpace, pool, space)) {
      queue::v1::QueueRow stored;
      if (!stored.ParseFromString(pqxx::binarystring(row[1]).str())) {
        return Internal("a row of queue.queues does not decode");
      }
      queues[row[0].as<std::string>()] = {.parent = stored.config().parent(),
                                          .jobs = row[2].as<int64_t>(),
                                          .jobspec_bytes = row[3].as<int64_t>()};
    }
    return absl::OkStatus();
  }));
  return queues;
}

absl::StatusOr<std::optional<std::string>> FactStore::Accepted(const std::string& client_id) {
  std::optional<std::string> job_id;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    job_id.reset();
    for (const pqxx::row& row : Exec(tx, kAccepted, client_id)) job_id = row[0].as<std::string>();
    return absl::OkStatus();
  }));
  return job_id;
}

absl::StatusOr<ClaimUse> FactStore::ClaimsOf(const std::string& user) {
  return ClaimsBy(kClaims, user);
}

absl::StatusOr<ClaimUse> FactStore::ClaimsOfAll(const std::string& prefix) {
  return ClaimsBy(kClaimsBelow, prefix);
}

absl::StatusOr<ClaimUse> FactStore::ClaimsBy(const Statement& statement, const std::string& users) {
  ClaimUse use;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    const pqxx::result rows = Exec(tx, statement, users);
    use = {.claims = rows[0][0].as<int64_t>(), .bytes = rows[0][1].as<int64_t>()};
    return absl::OkStatus();
  }));
  return use;
}

absl::StatusOr<std::optional<Holder>> FactStore::HolderOf(const std::string& pool) {
  std::optional<Holder> holder;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    holder.reset();
    for (const pqxx::row& row : Exec(tx, kHolder, pool)) {
      holder = Holder{row[0].as<std::string>(), row[1].as<std::string>()};
    }
    return absl::OkStatus();
  }));
  return holder;
}

}  // namespace fluxqueue::job_store
