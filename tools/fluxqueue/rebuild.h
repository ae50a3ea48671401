// The tables that the cores of queue and matcher are restored from, of one pool: as they are,
// beside what its log says that they must be; and written by that. Of the queue these are jobs
// (all that have not ended, and of the others those that jobs may still depend on), queues, usage,
// the cycle that waits for its answer and the pool; of the matcher allocations that are held,
// nodes, jobspecs, reservations, the last answer and the pool. By what is left (the history
// of jobs, accounting, what was released) nothing is decided, and it stays as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/matcher_core/rows.h"
#include "libs/queue_core/rows.h"
#include "libs/verify/row_tables.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cli {

// What each service has handled of the partition: the first offsets that it has not.
struct Reached {
  int64_t queue = 0;
  int64_t matcher = 0;
};

// From queue.inbox and matcher.inbox. `locks`: which stay locked until the transaction ends; else
// all that is read in it is of this moment. NotFound: a service has handled nothing of it.
absl::StatusOr<Reached> ReadReached(pqxx::transaction_base& tx, int partition, bool locks);

// FailedPrecondition says who is to be stopped: a queue or a matcher is connected to the database.
absl::Status CheckStopped(pqxx::transaction_base& tx, int partition);

// By table, in text: each row as something that equals only its like, sorted.
using TableRows = std::map<std::string, std::vector<std::string>>;
TableRows RowsOf(const queue_core::Rows& rows);
TableRows RowsOf(const matcher_core::Rows& rows);
// As the tables have them.
TableRows ReadTables(pqxx::transaction_base& tx, const std::string& pool, int partition);

struct TableDifference {
  std::string table{};
  size_t equal = 0;
  size_t unknown = 0;  // rows that the log does not say
  size_t missing = 0;  // that the table does not have
};
// A row that is another counts as both.
std::vector<TableDifference> Compare(const TableRows& tables, const TableRows& log);

// No owner of the partition can commit any more without taking it again.
void WriteTables(pqxx::transaction_base& tx,
                 const std::string& pool,
                 int partition,
                 const verify::QueueTables& queue,
                 const verify::MatcherTables& matcher);

}  // namespace fluxqueue::cli
