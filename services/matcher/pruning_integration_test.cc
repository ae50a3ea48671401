// What goes of the matcher's tables once it is old, and by which indexes rows are reached, in a
// real Postgres.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/matcher_rows/matcher_rows.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"
#include "libs/postgres/pruner.h"
#include "libs/testing/mini_postgres.h"
#include "services/matcher/adapters/matcher_store.h"

#include "matcher_migrations.h"

namespace fluxqueue::matcher {
namespace {

using postgres::Pruner;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Millis kDay = std::chrono::hours(24);

class PruningTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { postgres_ = new testing::MiniPostgres; }
  static void TearDownTestSuite() { delete std::exchange(postgres_, nullptr); }

  static postgres::Options Database() {
    return {.dsn = postgres_->dsn(),
            .application = "test",
            .schema = "matcher",
            .plans = postgres::Plans::kKept};
  }
  static void Must(const absl::Status& status) { CHECK(status.ok(), "{}", Message(status)); }

  void SetUp() override {
    connection_ = std::make_unique<postgres::Connection>(Database());
    Sql("DROP SCHEMA IF EXISTS matcher CASCADE");
    Must(postgres::Migrate(
        *connection_, "matcher", {&delivery::Migrations(), &migrations::matcher()}));
  }

  void In(const std::function<void(pqxx::transaction_base&)>& work) {
    Must(connection_->Transact([&](pqxx::transaction_base& tx) {
      work(tx);
      return absl::OkStatus();
    }));
  }
  void Sql(const std::string& sql) {
    In([&](pqxx::transaction_base& tx) { tx.exec(sql); });
  }
  int64_t Count(const std::string& from) {
    int64_t count = 0;
    In([&](pqxx::transaction_base& tx) {
      count = tx.exec("SELECT count(*) FROM " + from)[0][0].as<int64_t>();
    });
    return count;
  }

  // Allocations of a pool; `released`: SQL, NULL: they are held.
  void Allocated(const std::string& pool,
                 const std::string& name,
                 int64_t count,
                 const std::string& released) {
    Sql(
        fmt::format("INSERT INTO allocations SELECT '{0}-{1}-' || i, 1, 0, '{0}', '', 1, {2} IS "
                    "NOT NULL, {2} FROM generate_series(1, {3}) AS i",
                    pool,
                    name,
                    released,
                    count));
  }

  static testing::MiniPostgres* postgres_;
  std::unique_ptr<postgres::Connection> connection_;
};

testing::MiniPostgres* PruningTest::postgres_ = nullptr;

TEST_F(PruningTest, WhatWasReleasedLongAgoGoesOfAllPools) {
  Allocated("main", "old", 2 * Pruner::kMost, "now() - interval '25 h'");
  Allocated("idle", "old", 500, "now() - interval '30 h'");
  Allocated("main", "young", 10, "now() - interval '23 h'");
  Allocated("main", "held", 10, "NULL::timestamptz");
  size_t deleted = 0;
  In([&](pqxx::transaction_base& tx) { deleted = PruneReleased(tx, kDay); });
  EXPECT_EQ(deleted, static_cast<size_t>(Pruner::kMost)) << "so many at once";
  EXPECT_EQ(Count("allocations WHERE pool = 'idle'"), 0) << "the oldest first";
  RealClock clock;
  Pruner pruner(Database(), clock, [](pqxx::transaction_base& /*tx*/) -> Pruner::Steps {
    return {[](pqxx::transaction_base& tx) { return PruneReleased(tx, kDay); }};
  });
  Must(pruner.RunOnce([](Millis /*rest*/) { return true; }));
  EXPECT_EQ(Count("allocations"), 20);
  EXPECT_EQ(Count("allocations WHERE released"), 10);
}

TEST_F(PruningTest, ARowInUseIsPassedOver) {
  Allocated("main", "old", 3, "now() - interval '25 h'");
  postgres::Connection other(Database());
  Must(other.Transact([&](pqxx::transaction_base& tx) {
    tx.exec("SELECT FROM allocations WHERE job_id = 'main-old-2' FOR UPDATE");
    size_t deleted = 0;
    In([&](pqxx::transaction_base& own) { deleted = PruneReleased(own, kDay); });
    EXPECT_EQ(deleted, 2U);
    return absl::OkStatus();
  }));
  EXPECT_EQ(Count("allocations"), 1);
}

// A restart reads what lives; with rows enough that each way to them has its price.
TEST_F(PruningTest, WhatIsOldAndWhatLivesAreReachedByIndexes) {
  Sql("INSERT INTO pools (pool, partition, row) VALUES ('main', 3, '')");
  for (const char* pool : {"main", "other"}) {
    Allocated(pool, "old", 20'000, "now() - interval '25 h'");
    Allocated(pool, "held", 1'000, "NULL::timestamptz");
    for (const char* insert :
         {"specs SELECT '{0}' || i, 0, 1, '{0}', 1, '' FROM generate_series(1, 5000) AS i",
          "reservations SELECT '{0}' || i, 1, 0, '{0}', '' FROM generate_series(1, 5000) AS i",
          "graph_nodes SELECT '{0}', i, i, i, '', true FROM generate_series(1, 5000) AS i",
          "answers SELECT '{0}', i, '' FROM generate_series(1, 1000) AS i"}) {
      Sql("INSERT INTO " + fmt::format(fmt::runtime(insert), pool));
    }
  }
  Sql("ANALYZE");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"matcher_prune(1000, 1000)", "Index Scan using allocations_released"},
      {"matcher_rows_allocations('main')", "allocations_live"},
      {"matcher_rows_nodes('main')", "graph_nodes_pkey"},
      {"matcher_rows_specs('main')", "specs_pool"},
      {"matcher_rows_reservations('main')", "reservations_pool"},
      {"matcher_rows_answer('main')", "answers_pkey"}};
  In([&](pqxx::transaction_base& tx) {
    PruneReleased(tx, kDay);
    const auto pools = matcher_rows::LoadPools(tx, 3);
    ASSERT_EQ(pools.size(), 1U);
    EXPECT_EQ(pools[0].rows.allocations.size(), 1'000U);
    for (const auto& [call, index] : expected) {
      std::string plan;
      for (const pqxx::row& row : tx.exec("EXPLAIN EXECUTE " + call)) {
        plan += row[0].as<std::string>() + "\n";
      }
      EXPECT_THAT(plan, AllOf(HasSubstr(index), Not(HasSubstr("Seq Scan")))) << call;
    }
  });
}

}  // namespace
}  // namespace fluxqueue::matcher
