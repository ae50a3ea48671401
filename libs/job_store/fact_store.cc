#include "libs/job_store/fact_store.h"

#include <utility>

#include "fluxqueue/queue/v1/rows.pb.h"

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
    "ORDER BY job_id LIMIT $8::bigint"};
constexpr Statement kFind{"fact_store_find", "SELECT row FROM queue.jobs WHERE job_id = $1"};
constexpr Statement kAccepted{"fact_store_accepted",
                              "SELECT job_id FROM queue.commands WHERE client_id = $1"};
constexpr Statement kQueueHolder{"fact_store_queue_holder",
                                 "SELECT i.holder, i.address FROM queue.pools p "
                                 "JOIN queue.inbox i USING (partition) WHERE p.pool = $1"};
constexpr Statement kMatcherHolder{"fact_store_matcher_holder",
                                   "SELECT i.holder, i.address FROM matcher.pools p "
                                   "JOIN matcher.inbox i USING (partition) WHERE p.pool = $1"};

absl::StatusOr<JobFact> ReadFact(const pqxx::field& field) {
  queue::v1::JobRow row;
  if (!row.ParseFromString(pqxx::binarystring(field).str())) {
    return Internal("a row of queue.jobs does not decode");
  }
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
                                     static_cast<int64_t>(limit))) {
      ASSIGN_OR_RETURN(JobFact fact, ReadFact(row[0]));
      facts.push_back(std::move(fact));
    }
    return absl::OkStatus();
  }));
  return facts;
}

absl::StatusOr<std::optional<JobFact>> FactStore::Find(const std::string& job_id) {
  std::optional<JobFact> found;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    found.reset();
    for (const pqxx::row& row : Exec(tx, kFind, job_id)) {
      ASSIGN_OR_RETURN(found, ReadFact(row[0]));
    }
    return absl::OkStatus();
  }));
  return found;
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

absl::StatusOr<std::optional<Holder>> FactStore::HolderOf(const std::string& pool,
                                                          Service service) {
  const Statement& statement = service == Service::kQueue ? kQueueHolder : kMatcherHolder;
  std::optional<Holder> holder;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    holder.reset();
    for (const pqxx::row& row : Exec(tx, statement, pool)) {
      holder = Holder{row[0].as<std::string>(), row[1].as<std::string>()};
    }
    return absl::OkStatus();
  }));
  return holder;
}

}  // namespace fluxqueue::job_store
