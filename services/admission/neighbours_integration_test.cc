// What the workloads' rows are compared with, in the tables that queue and matcher make, in a real
// Postgres.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"
#include "libs/testing/mini_postgres.h"
#include "services/admission/adapters/admission_store.h"

#include "admission_migrations.h"
#include "matcher_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue::admission {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NeighboursTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { postgres_ = new testing::MiniPostgres; }
  static void TearDownTestSuite() { delete std::exchange(postgres_, nullptr); }

  void SetUp() override {
    Make("queue", &migrations::queue());
    Make("matcher", &migrations::matcher());
    connection_ = Make("admission", &migrations::admission());
    Sql("INSERT INTO pools (pool, partition, config) VALUES ('p', 3, '')");
    Sql("INSERT INTO queue.inbox (partition, holder, epoch, next_offset) VALUES (3, 'q', 1, 70)");
    Sql("INSERT INTO matcher.inbox (partition, holder, epoch, next_offset) VALUES (3, 'm', 1, 50)");
  }

  static std::unique_ptr<postgres::Connection> Make(const std::string& schema,
                                                    const postgres::MigrationSet* tables) {
    auto connection =
        std::make_unique<postgres::Connection>(postgres::Options{.dsn = postgres_->dsn(),
                                                                 .application = "test",
                                                                 .schema = schema,
                                                                 .plans = postgres::Plans::kKept});
    In(*connection, [&](pqxx::transaction_base& tx) {
      tx.exec("DROP SCHEMA IF EXISTS " + schema + " CASCADE");
    });
    const absl::Status made =
        postgres::Migrate(*connection, schema, {&delivery::Migrations(), tables});
    CHECK(made.ok(), "{}", Message(made));
    return connection;
  }

  template <typename Work>
  static void In(postgres::Connection& connection, const Work& work) {
    const absl::Status status = connection.Transact([&](pqxx::transaction_base& tx) {
      work(tx);
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}", Message(status));
  }
  void Sql(const std::string& sql) {
    In(*connection_, [&](pqxx::transaction_base& tx) { tx.exec(sql); });
  }

  // Workloads j00001 … , each with a job that waits, and the matcher's jobspec.
  void Waiting(int count) {
    const std::string ids = fmt::format(
        "(SELECT 'j' || lpad(i::text, 5, '0') AS id FROM generate_series(1, {}) AS i) AS r", count);
    Sql("INSERT INTO workloads (uid, job_id, pool, queue, kind, namespace, name, resource_version, "
        "  revision, slots, priority, hold, cancelled, requests, demand_hash) "
        "SELECT id, id, 'p', 'default', 'Job', 'lab', id, '1', 1, 1, 0, false, false, '{}', 0 "
        "FROM " +
        ids);
    Sql("INSERT INTO queue.jobs (job_id, pool, queue, namespace, name, kind, state, version, "
        "  attempt, reason, message, slots, priority, created_ms, start_ms, updated_ms, "
        "  placement_hash, row) "
        "SELECT id, 'p', 'default', 'lab', id, 'Job', 'Pending', 1, 1, '', '', 1, 0, 0, 0, 0, 0, "
        "  '' FROM " +
        ids);
    Sql("INSERT INTO matcher.specs (job_id, part, revision, pool, slots, jobspec) "
        "SELECT id, 0, 1, 'p', 1, '' FROM " +
        ids);
    Sql("ANALYZE workloads; ANALYZE queue.jobs; ANALYZE matcher.specs");
  }

  Neighbours Compare(const NeighbourPages& pages = {}) {
    std::optional<Neighbours> neighbours;
    In(*connection_,
       [&](pqxx::transaction_base& tx) { neighbours = CompareNeighbours(tx, pages); });
    CHECK(neighbours.has_value(), "the tables are there");
    return *std::move(neighbours);
  }

  static testing::MiniPostgres* postgres_;
  std::unique_ptr<postgres::Connection> connection_;
};

testing::MiniPostgres* NeighboursTest::postgres_ = nullptr;

MATCHER_P(Lacks, uid, "") {
  return arg.uid == uid && arg.partition == 3;
}

TEST_F(NeighboursTest, WhatOneOfThemLacksIsFoundPageByPage) {
  Waiting(4500);
  Sql("DELETE FROM matcher.specs WHERE job_id IN ('j00007', 'j02007', 'j04500')");
  Sql("DELETE FROM queue.jobs WHERE job_id IN ('j00009', 'j04499')");

  Neighbours seen = Compare();
  EXPECT_THAT(seen.jobs.lacks, ElementsAre(Lacks("j00009"), Lacks("j04499")));
  EXPECT_EQ(seen.jobs.handled, (std::map<int, int64_t>{{3, 70}}));
  EXPECT_EQ(seen.jobs.until, "") << "only those are looked at that no job was seen of";
  EXPECT_THAT(seen.jobspecs.lacks, ElementsAre(Lacks("j00007")));
  EXPECT_EQ(seen.jobspecs.handled, (std::map<int, int64_t>{{3, 50}}));
  EXPECT_EQ(seen.jobspecs.until, "j02000");

  seen = Compare({.jobspecs = seen.jobspecs.until});
  EXPECT_THAT(seen.jobspecs.lacks, ElementsAre(Lacks("j02007")));
  seen = Compare({.jobs = "j00009", .jobspecs = seen.jobspecs.until});
  EXPECT_THAT(seen.jobs.lacks, ElementsAre(Lacks("j04499")));
  EXPECT_THAT(seen.jobspecs.lacks, ElementsAre(Lacks("j04500")));
  EXPECT_EQ(seen.jobspecs.until, "");
}

TEST_F(NeighboursTest, WhatIsCancelledOrRunsLacksNothing) {
  Waiting(3);
  Sql("DELETE FROM matcher.specs");
  Sql("UPDATE workloads SET cancelled = true WHERE uid = 'j00001'");
  Sql("UPDATE queue.jobs SET state = 'Running' WHERE job_id = 'j00002'");
  EXPECT_THAT(Compare().jobspecs.lacks, ElementsAre(Lacks("j00003")));
  Sql("DELETE FROM queue.jobs");
  EXPECT_THAT(Compare().jobs.lacks, IsEmpty()) << "they had been there: they have ended";
}

// A comparison must not grow with the tables: it runs beside what people submit.
TEST_F(NeighboursTest, OnlyAPageIsRead) {
  Waiting(60'000);
  EXPECT_THAT(Compare().jobs.lacks, IsEmpty());
  for (const char* statement : {"admission_lacking_jobs", "admission_lacking_jobspecs"}) {
    std::string plan;
    In(*connection_, [&](pqxx::transaction_base& tx) {
      CompareNeighbours(tx, {});
      for (const pqxx::row& row : tx.exec(fmt::format("EXPLAIN EXECUTE {}('j30000')", statement))) {
        plan += row[0].as<std::string>() + "\n";
      }
    });
    for (const char* table : {"workloads", "jobs", "specs"}) {
      EXPECT_THAT(plan, Not(HasSubstr(fmt::format("Seq Scan on {} ", table)))) << statement;
    }
    EXPECT_THAT(plan, HasSubstr("Index")) << statement;
  }
}

}  // namespace
}  // namespace fluxqueue::admission
