// What the jobs topic may have lost, found by the tables of queue and binder in a real Postgres.
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"
#include "libs/testing/mini_postgres.h"
#include "services/binder/adapters/binder_store.h"

#include "binder_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue::binder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MissedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Make("queue", &migrations::queue());
    connection_ = Make("binder", &migrations::binder());
  }

  std::unique_ptr<postgres::Connection> Make(const std::string& schema,
                                             const postgres::MigrationSet* tables) {
    auto connection = std::make_unique<postgres::Connection>(
        postgres::Options{.dsn = postgres_.dsn(), .application = "test", .schema = schema});
    const absl::Status made =
        postgres::Migrate(*connection, schema, {&delivery::Migrations(), tables});
    CHECK(made.ok(), "{}", Message(made));
    return connection;
  }
  template <typename Work>
  void In(const Work& work) {
    const absl::Status done = connection_->Transact([&](pqxx::transaction_base& tx) {
      work(tx);
      return absl::OkStatus();
    });
    ASSERT_TRUE(done.ok()) << Message(done);
  }

  // As the queue has it.
  void Queue(const std::string& id, const std::string& state, int version, int attempt = 1) {
    fluxqueue::queue::v1::JobRow row;
    row.mutable_fact()->set_job_id(id);
    In([&](pqxx::transaction_base& tx) {
      tx.exec_params(
          "INSERT INTO queue.jobs (job_id, pool, queue, namespace, name, kind, state, version, "
          "  attempt, reason, message, slots, priority, created_ms, start_ms, updated_ms, "
          "  placement_hash, row) "
          "VALUES ($1, 'p', 'default', 'lab', $1, 'Job', $2, $3, $4, '', '', 1, 0, 0, 0, 0, 0, $5)",
          id,
          state,
          version,
          attempt,
          pqxx::binarystring(row.SerializeAsString()));
    });
  }
  // As the binder follows it.
  struct Followed {
    std::string id;
    uint64_t version = 0;
    bool failed = false;
    bool stopped = false;
  };
  void Follow(const Followed& followed) {
    Rows rows;
    JobRow& job = rows.jobs.emplace_back();
    job.job_id = followed.id;
    job.pool = "p";
    job.version = followed.version;
    job.attempt = 1;
    job.failed = followed.failed;
    job.stopped = followed.stopped;
    In([&](pqxx::transaction_base& tx) { WriteRows(tx, rows); });
  }
  Missed Load() {
    Missed missed;
    In([&](pqxx::transaction_base& tx) { missed = LoadMissed(tx, ""); });
    return missed;
  }

  testing::MiniPostgres postgres_;
  std::unique_ptr<postgres::Connection> connection_;
};

MATCHER_P(IsOf, id, "") {
  return arg.job_id() == id;
}

TEST_F(MissedTest, AFactThatHasNotComeIsTakenFromTheTable) {
  Queue("allocated", "Allocated", 2);
  Queue("again", "Allocated", 5, 2);
  Queue("ended", "Succeeded", 4);
  Queue("followed", "Running", 4);
  Queue("stops", "Stopping", 4);
  Queue("waits", "Pending", 1);
  Follow({.id = "again", .version = 2});
  Follow({.id = "ended", .version = 2});
  Follow({.id = "followed", .version = 2});
  Follow({.id = "stops", .version = 2});
  const Missed missed = Load();
  EXPECT_THAT(missed.facts,
              ElementsAre(IsOf("again"), IsOf("allocated"), IsOf("ended"), IsOf("stops")));
  EXPECT_THAT(missed.ends, IsEmpty());
}

TEST_F(MissedTest, AnEndThatTheQueueHasNotHeardIsSaidAgain) {
  Queue("failed", "Allocated", 2);
  Queue("heard", "Pending", 4, 2);
  Queue("started", "Running", 3);
  Queue("stopped", "Stopping", 3);
  Follow({.id = "failed", .version = 2, .failed = true});
  Follow({.id = "heard", .version = 4, .failed = true});
  Follow({.id = "started", .version = 2});
  Follow({.id = "stopped", .version = 3, .stopped = true});
  EXPECT_THAT(Load().ends, ElementsAre("failed", "stopped"));
}

}  // namespace
}  // namespace fluxqueue::binder
