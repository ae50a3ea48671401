// What goes of the queue's tables once it is old, and by which indexes rows are reached, in a real
// Postgres.
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
#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"
#include "libs/postgres/pruner.h"
#include "libs/testing/mini_postgres.h"
#include "services/queue/adapters/prune_store.h"
#include "services/queue/adapters/queue_store.h"

#include "queue_migrations.h"

namespace fluxqueue::queue {
namespace {

using postgres::Pruner;
using std::chrono::hours;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Millis kWeek = hours(7 * 24);

class PruningTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { postgres_ = new testing::MiniPostgres; }
  static void TearDownTestSuite() { delete std::exchange(postgres_, nullptr); }

  static postgres::Options Database() {
    return {.dsn = postgres_->dsn(),
            .application = "test",
            .schema = "queue",
            .plans = postgres::Plans::kKept};
  }
  static void Must(const absl::Status& status) { CHECK(status.ok(), "{}", Message(status)); }

  void SetUp() override {
    connection_ = std::make_unique<postgres::Connection>(Database());
    Sql("DROP SCHEMA IF EXISTS queue CASCADE");
    Must(postgres::Migrate(*connection_, "queue", {&delivery::Migrations(), &migrations::queue()}));
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

  // The pool's endings `first` … `last`, so long ago, with three events and a promise each.
  void Ended(const std::string& pool, int64_t first, int64_t last, Millis ago) {
    const std::string jobs =
        fmt::format("(SELECT '{0}-' || i AS id, i FROM generate_series({1}, {2}) AS i) AS r",
                    pool,
                    first,
                    last);
    Sql(fmt::format("INSERT INTO pools VALUES ('{}', 3, '') ON CONFLICT DO NOTHING", pool));
    Sql(
        fmt::format("INSERT INTO jobs (job_id, pool, queue, namespace, name, kind, state, version, "
                    "  attempt, reason, message, slots, priority, created_ms, start_ms, "
                    "  updated_ms, placement_hash, row, ending) "
                    "SELECT id, '{}', 'default', 'team', id, 'Job', 'Succeeded', 3, 1, '', '', 1, "
                    "  0, 0, 0, extract(epoch FROM now()) * 1000 - {} + i, 0, '', i FROM {}",
                    pool,
                    ago.count(),
                    jobs));
    Sql("INSERT INTO job_events SELECT id, v, 0, 'Pending', 1, '', '' FROM generate_series(1, 3) "
        "AS v, " +
        jobs);
    Sql("INSERT INTO promises SELECT id, 1, 'default', 0, 0, 0, false, false, '', '' FROM " + jobs);
  }
  // Jobs that have not ended.
  void Live(const std::string& pool, int64_t count) {
    Ended(pool, 1'000'001, 1'000'000 + count, Millis(0));
    Sql("UPDATE jobs SET state = 'Pending', ending = 0 WHERE ending > 1000000");
  }

  size_t Prune(const std::string& pool, uint64_t kept) {
    size_t deleted = 0;
    In([&](pqxx::transaction_base& tx) { deleted = PruneEnded(tx, pool, kWeek, kept); });
    return deleted;
  }

  // Of the statement that `work` has prepared, as it is kept. `call`: "name('main', 1)".
  std::string PlanOf(const std::function<void(pqxx::transaction_base&)>& work,
                     const std::string& call) {
    std::string plan;
    In([&](pqxx::transaction_base& tx) {
      work(tx);
      for (const pqxx::row& row : tx.exec("EXPLAIN EXECUTE " + call)) {
        plan += row[0].as<std::string>() + "\n";
      }
    });
    return plan;
  }

  static testing::MiniPostgres* postgres_;
  std::unique_ptr<postgres::Connection> connection_;
};

testing::MiniPostgres* PruningTest::postgres_ = nullptr;

bool Always(Millis /*rest*/) {
  return true;
}

TEST_F(PruningTest, WhatIsOldGoesWithAllThatIsToldOfIt) {
  Ended("main", 1, 10, kWeek + hours(1));
  Ended("main", 11, 15, kWeek - hours(1));
  Live("main", 2);
  EXPECT_EQ(Prune("main", /*kept=*/15), 0U) << "the last ones stay, however old";
  EXPECT_EQ(Prune("main", /*kept=*/12), 3U);
  EXPECT_EQ(Count("jobs WHERE ending BETWEEN 1 AND 3"), 0);
  EXPECT_EQ(Count("job_events WHERE job_id IN ('main-1', 'main-3')"), 0);
  EXPECT_EQ(Count("promises WHERE job_id = 'main-2'"), 0);
  EXPECT_EQ(Count("job_events WHERE job_id = 'main-4'"), 3);
  EXPECT_EQ(Prune("main", /*kept=*/0), 7U) << "those of the last week stay";
  EXPECT_EQ(Count("jobs"), 7);
  EXPECT_EQ(Count("jobs WHERE live"), 2);
  EXPECT_EQ(Count("job_events"), 7 * 3);
}

TEST_F(PruningTest, ATransactionIsBounded) {
  Ended("main", 1, Pruner::kMost + 10, 2 * kWeek);
  EXPECT_EQ(Prune("main", 0), static_cast<size_t>(Pruner::kMost));
  EXPECT_EQ(Count("jobs WHERE ending > 1000"), 10) << "the oldest first";
  EXPECT_EQ(Prune("main", 0), 10U);
}

TEST_F(PruningTest, ARowInUseIsPassedOver) {
  Ended("main", 1, 5, 2 * kWeek);
  postgres::Connection other(Database());
  Must(other.Transact([&](pqxx::transaction_base& tx) {
    tx.exec("UPDATE jobs SET state = 'Pending', ending = 0 WHERE job_id = 'main-2'");
    EXPECT_EQ(Prune("main", 0), 4U);
    return absl::OkStatus();
  }));
  EXPECT_EQ(Prune("main", 0), 0U) << "it lives again";
  EXPECT_EQ(Count("job_events WHERE job_id = 'main-2'"), 3);
}

// Nothing says anything in any of them.
TEST_F(PruningTest, AllPoolsGoThroughUntilNothingIsOld) {
  const int kept = 10'000;
  for (const char* pool : {"busy", "idle"}) {
    Ended(pool, 1, 2'500, 2 * kWeek);
    Ended(pool, 2'501, 2'500 + kept, Millis(0));
  }
  Sql("INSERT INTO cycles SELECT 'idle', i, '', true FROM generate_series(1, 4000) AS i");
  Sql("INSERT INTO commands SELECT 'c' || i, 'job', now() - interval '25 h' FROM "
      "generate_series(1, 2000) AS i");
  Sql("INSERT INTO commands SELECT 'young', 'job'");
  RealClock clock;
  Pruner pruner(
      Database(), clock, [](pqxx::transaction_base& tx) { return PruneSteps(tx, kWeek); });
  Must(pruner.RunOnce(Always));
  EXPECT_EQ(Count("jobs"), 2 * kept);
  EXPECT_EQ(Count("job_events"), 2 * kept * 3);
  EXPECT_EQ(Count("cycles"), 1000);
  EXPECT_EQ(Count("cycles WHERE cycle_id > 3000"), 1000);
  EXPECT_EQ(Count("commands"), 1);
}

TEST_F(PruningTest, ItRestsAfterEachTransactionAndStopsThere) {
  Ended("main", 1, 12'500, 2 * kWeek);
  RealClock clock;
  int steps = 0;
  Pruner pruner(Database(), clock, [&](pqxx::transaction_base& /*tx*/) -> Pruner::Steps {
    return {[&](pqxx::transaction_base& tx) {
      ++steps;
      return PruneEnded(tx, "main", kWeek, 10'000);
    }};
  });
  int rests = 0;
  Must(pruner.RunOnce([&](Millis /*rest*/) { return ++rests < 2; }));
  EXPECT_EQ(rests, 2);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(Count("jobs"), 10'500);
  Must(pruner.Run([&](Millis /*rest*/) { return ++rests < 4; }));
  EXPECT_EQ(Count("jobs"), 10'000) << "less than it may delete: that was all";
  EXPECT_EQ(steps, 3);
}

TEST_F(PruningTest, AStepThatFailsKeepsNoOtherFromWork) {
  RealClock clock;
  int others = 0;
  Pruner pruner(Database(), clock, [&](pqxx::transaction_base& /*tx*/) -> Pruner::Steps {
    return {[](pqxx::transaction_base& tx) {
              return static_cast<size_t>(tx.exec("DELETE FROM nowhere").affected_rows());
            },
            [&](pqxx::transaction_base& /*tx*/) { return ++others < 3 ? Pruner::kMost : 0; }};
  });
  EXPECT_TRUE(absl::IsUnavailable(pruner.RunOnce(Always)));
  EXPECT_EQ(others, 3);
}

// With rows enough that each way to them has its price.
class PlanTest : public PruningTest {
 protected:
  void SetUp() override {
    PruningTest::SetUp();
    Ended("main", 1, 20'000, 2 * kWeek);
    Ended("other", 1, 20'000, 2 * kWeek);
    Live("main", 2'000);
    Sql("INSERT INTO cycles SELECT p, i, '', i < 1000 FROM generate_series(1, 1000) AS i, "
        "  unnest(ARRAY['main', 'other']) AS p");
    Sql("INSERT INTO commands SELECT 'c' || i, 'job', now() - i * interval '1 minute' "
        "FROM generate_series(1, 20000) AS i");
    Sql("ANALYZE");
  }
};

TEST_F(PlanTest, WhatIsOldIsReachedByIndexes) {
  const std::string ended =
      PlanOf([](pqxx::transaction_base& tx) { PruneEnded(tx, "main", kWeek, 10'000); },
             "queue_prune_ended('main', 10000, 0, 1000)");
  EXPECT_THAT(ended,
              AllOf(HasSubstr("Index Scan using jobs_ending"),
                    HasSubstr("(pool = $1) AND (ending <= $2)"),
                    HasSubstr("jobs_pkey"),
                    HasSubstr("job_events_pkey"),
                    HasSubstr("promises_pkey")));
  EXPECT_THAT(ended, AllOf(Not(HasSubstr("Seq Scan")), Not(HasSubstr("Sort"))));
  const std::string last =
      PlanOf([](pqxx::transaction_base& tx) { PruneEnded(tx, "main", kWeek, 0); },
             "queue_last_ending('main')");
  EXPECT_THAT(last, AllOf(HasSubstr("Backward using jobs_ending"), Not(HasSubstr("Seq Scan"))));
  const std::string cycles = PlanOf([](pqxx::transaction_base& tx) { PruneCycles(tx, "main"); },
                                    "queue_prune_cycles('main', 1000)");
  EXPECT_THAT(cycles, AllOf(HasSubstr("cycles_pkey"), Not(HasSubstr("Seq Scan"))));
  const std::string commands =
      PlanOf([](pqxx::transaction_base& tx) { PruneCommands(tx); }, "queue_prune_commands(1000)");
  EXPECT_THAT(commands, AllOf(HasSubstr("commands_accepted"), Not(HasSubstr("Seq Scan"))));
}

// What a replica reads when it takes a partition. Of what it reads by cursors see tests/plans.
TEST_F(PlanTest, WhatARestartReadsIsReachedByIndexes) {
  const auto load = [](pqxx::transaction_base& tx) {
    const auto pools = LoadPools(tx, 3);
    ASSERT_EQ(pools.size(), 2U);
    EXPECT_EQ(pools[0].second.jobs.size(), 2'000U);
    EXPECT_EQ(pools[0].second.endings.size(), 10'000U);
    EXPECT_EQ(pools[0].second.cycles_unanswered.size(), 1U);
  };
  for (const auto& [call, index] : std::vector<std::pair<std::string, std::string>>{
           {"queue_load_cycles('main')", "cycles_pkey"},
           {"queue_load_queues('main')", "queues_pkey"},
           {"queue_load_usage('main')", "usage_pkey"}}) {
    EXPECT_THAT(PlanOf(load, call), AllOf(HasSubstr(index), Not(HasSubstr("Seq Scan")))) << call;
  }
}

}  // namespace
}  // namespace fluxqueue::queue
