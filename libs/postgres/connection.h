// A connection to Postgres, and a pool of them.
//
//   postgres::Connection db({.dsn = config.dsn, .application = "queue", .schema = "queue"});
//   absl::Status status = db.Transact([&](pqxx::transaction_base& tx) {
//     postgres::Exec(tx, kInsertJobs, ids.text(), states.text());    // may throw: Transact turns
//     it into a status return absl::OkStatus();
//   });
//
// The connection is opened when it is first needed and again after it broke, never within a
// transaction. Names without a schema mean the one in the options.
//
// No call waits for ever: a server that has answered no statement for longer than its own timeouts
// (statement, idle in a transaction) allow is given up like one that has closed the connection
// (answer_watch.h). During COMMIT that leaves the outcome unknown. So nothing may lift these by SQL
// alone: see Limits.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/postgres/status.h"
#include "libs/postgres/store.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::postgres {

// How prepared statements are planned.
enum class Plans {
  // For each execution, by what the tables hold then: for statements that read much.
  kAnew,
  // Once, to reach rows through indexes: for statements that touch the rows of some keys, however
  // large their tables become. A plan that is kept would else be the one of the first batches, when
  // the tables were empty: sequential scans, for ever. A join must say which side drives: see
  // LATERAL … OFFSET 0 in the services' stores.
  kKept,
};

struct Options {
  std::string dsn;
  std::string application;  // shown in pg_stat_activity
  std::string schema;       // search_path
  Plans plans = Plans::kAnew;
  Millis connect_timeout{5000};
  // 0, which is none to Postgres, is not to be used: how long we wait for an answer follows from
  // it.
  Millis statement_timeout{30000};
  Millis lock_timeout{5000};
  // The server ends a transaction whose client has gone silent, so that it does not hold our locks
  // for ever.
  Millis idle_in_transaction_timeout{10000};
  // Called on the connection's thread with each answer of the server; must not throw.
  std::function<void()> answered{};
};

// Of one transaction, in place of the options': for one that is known to take long.
struct Limits {
  Millis statement_timeout;
  Millis idle_in_transaction_timeout;
  // How long an answer is waited for; 0: a little longer than the two allow.
  Millis answer_timeout{0};
};

// Confined to one thread.
class Connection final : public Store {
 public:
  explicit Connection(Options options);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs `work` in a read-write transaction and commits when it returns OK. The status of `work`,
  // or else of the database (status.h); IsOutcomeUnknown when the connection died during the
  // commit.
  absl::Status Transact(const Work& work) override;
  absl::Status Transact(const Limits& limits, const Work& work) override;
  // The same without a transaction: each statement for itself. For reads of one statement.
  absl::Status Query(const Work& work) override;

  // Drops the connection; the next call makes a new one.
  void Close() override;
  const Options& options() const { return options_; }

 private:
  struct Session;

  absl::Status Open();
  // Opens if need be, runs `body`, turns exceptions into statuses, drops a connection that broke.
  // `patience`: with each answer.
  absl::Status Run(Millis patience,
                   const std::function<absl::Status(pqxx::connection_base&)>& body);

  const Options options_;
  const std::string server_;  // for messages: host, port, database and user; no password
  std::unique_ptr<Session> session_;
};

// Connections for several threads. Thread-safe. A call waits for a free one when `size` are in use.
class Pool {
 public:
  Pool(const Options& options, size_t size);

  absl::Status Transact(const Work& work);
  absl::Status Query(const Work& work);

 private:
  absl::Status With(const std::function<absl::Status(Connection&)>& body);

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Connection>> free_;
};

}  // namespace fluxqueue::postgres
