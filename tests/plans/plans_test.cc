// What services run over and over, on tables with all that has run in years: what a statement reads
// is bounded by what lives, and by what it is asked for, never by what has ended.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
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
#include "libs/testing/mini_postgres.h"
#include "services/admission/adapters/admission_store.h"
#include "services/binder/adapters/binder_store.h"
#include "services/cleanup/adapters/cleanup_store.h"
#include "services/matcher/adapters/matcher_store.h"
#include "services/queue/adapters/flux_job_source.h"
#include "services/queue/adapters/prune_store.h"
#include "services/queue/adapters/queue_store.h"
#include "tests/plans/plan_watch.h"

#include "admission_migrations.h"
#include "binder_migrations.h"
#include "fmt/format.h"
#include "matcher_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue {
namespace {

using postgres::Pruner;
using Tx = pqxx::transaction_base;

// Jobs that live: half of them wait, half have an allocation.
constexpr int kLive = 2'000;
// Of these, and of what a step of a pruner takes, a few rows each.
constexpr int64_t kMostRead = 10 * std::max<int64_t>(kLive, Pruner::kMost);
// Transactions of which it is measured how long they take.
constexpr int kPrunerSteps = 10;

int64_t EndedJobs() {
  const char* rows = std::getenv("FLUXQUEUE_PLAN_ROWS");
  return rows == nullptr ? 50'000 : std::atoll(rows);
}

class PlansTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    postgres_ = new testing::MiniPostgres;
    for (const auto& [schema, tables] : std::map<std::string, const postgres::MigrationSet*>{
             {"admission", &migrations::admission()},
             {"binder", &migrations::binder()},
             {"matcher", &migrations::matcher()},
             {"queue", &migrations::queue()}}) {
      postgres::Connection connection(Database(schema));
      Must(postgres::Migrate(connection, schema, {&delivery::Migrations(), tables}));
    }
    postgres::Connection connection(Database("queue"));
    const Millis long_enough(1'800'000);
    Must(connection.Transact({long_enough, long_enough}, [](Tx& tx) {
      Fill(tx);
      return absl::OkStatus();
    }));
    Must(connection.Transact({long_enough, long_enough}, [](Tx& tx) {
      tx.exec("ANALYZE");
      return absl::OkStatus();
    }));
    testing::WatchPlans(*postgres_);
  }
  static void TearDownTestSuite() { delete std::exchange(postgres_, nullptr); }

  static postgres::Options Database(const std::string& schema) {
    return {.dsn = postgres_->dsn(),
            .application = "test",
            .schema = schema,
            .plans = postgres::Plans::kKept};
  }
  static void Must(const absl::Status& status) { CHECK(status.ok(), "{}", Message(status)); }

  // `{0}`: how many have ended, `{1}`: how many live; ids are j1, j2 …, the last live.
  static void Insert(Tx& tx, const char* sql) {
    tx.exec(fmt::format(fmt::runtime(sql), EndedJobs(), kLive));
  }
  static void Fill(Tx& tx) {
    FillQueue(tx);
    FillMatcher(tx);
    tx.exec("INSERT INTO binder.inbox (partition, holder, epoch) VALUES (3, 'b', 1)");
    Insert(tx,
           "INSERT INTO binder.jobs SELECT 'j' || i, 3, 'p', 2, 1, '', false, false, false "
           "FROM generate_series({0} + 1, {0} + {1} / 2) AS i");
    Insert(tx,
           "INSERT INTO binder.slots SELECT 'j' || i, 1, 0, 0, 'n' || i % 100, 'u' || i, 'pod', "
           "  'lab', 'bound', true, false FROM generate_series({0} + 1, {0} + {1} / 2) AS i");
    tx.exec("INSERT INTO admission.pools VALUES ('p', 3, '')");
    Insert(tx,
           "INSERT INTO admission.workloads (uid, job_id, pool, queue, kind, namespace, name, "
           "  resource_version, revision, slots, priority, hold, cancelled, requests, demand_hash) "
           "SELECT 'j' || i, 'j' || i, 'p', 'default', 'Job', 'lab', 'j' || i, '1', 1, 1, 0, "
           "  false, false, '{{}}', 0 FROM generate_series({0} + 1, {0} + {1}) AS i");
  }
  static void FillQueue(Tx& tx) {
    tx.exec("INSERT INTO queue.pools VALUES ('p', 3, '')");
    tx.exec("INSERT INTO queue.inbox (partition, holder, epoch) VALUES (3, 'q', 1)");
    Insert(tx,
           "INSERT INTO queue.jobs (job_id, pool, queue, namespace, name, kind, state, version, "
           "  attempt, reason, message, slots, priority, created_ms, start_ms, updated_ms, "
           "  placement_hash, row, ending, username) "
           "SELECT 'j' || i, 'p', 'default', 'lab', 'j' || i, 'Job', "
           "  CASE WHEN i <= {0} THEN 'Succeeded' WHEN i <= {0} + {1} / 2 THEN 'Running' "
           "    ELSE 'Pending' END, "
           "  3, 1, '', '', 1, 0, i, 0, i, 0, '', CASE WHEN i <= {0} THEN i ELSE 0 END, 'u' "
           "FROM generate_series(1, {0} + {1}) AS i");
    Insert(tx,
           "INSERT INTO queue.job_events SELECT 'j' || i, v, 0, 'Pending', 1, '', '' "
           "FROM generate_series(1, {0} + {1}) AS i, generate_series(1, 3) AS v");
    Insert(tx,
           "INSERT INTO queue.promises SELECT 'j' || i, 1, 'default', 0, 1, NULL, false, false, "
           "  '', '' FROM generate_series(1, {0} + {1}) AS i");
    Insert(tx,
           "INSERT INTO queue.commands SELECT 'c' || i, 'j' || i, now() - interval '2 days' "
           "FROM generate_series(1, {0}) AS i");
    // As many as a pool has between two steps of its pruner.
    tx.exec("INSERT INTO queue.cycles SELECT 'p', i, '', true FROM generate_series(1, 5000) AS i");
    Insert(tx,
           "INSERT INTO queue.lack_nodes SELECT 'j' || i, 'p' "
           "FROM generate_series({0} + {1} - 9, {0} + {1}) AS i");
  }
  static void FillMatcher(Tx& tx) {
    tx.exec("INSERT INTO matcher.pools VALUES ('p', 3, '')");
    tx.exec("INSERT INTO matcher.inbox (partition, holder, epoch) VALUES (3, 'm', 1)");
    Insert(tx,
           "INSERT INTO matcher.allocations SELECT 'j' || i, 1, 0, 'p', '', 0, i <= {0}, "
           "  CASE WHEN i <= {0} THEN now() - interval '2 days' END "
           "FROM generate_series(1, {0} + {1} / 2) AS i");
    Insert(tx,
           "INSERT INTO matcher.specs SELECT 'j' || i, 0, 1, 'p', 1, '' "
           "FROM generate_series({0} + 1, {0} + {1}) AS i");
    Insert(tx, "INSERT INTO matcher.answers SELECT 'p', i, '' FROM generate_series(1, 100) AS i");
    Insert(tx,
           "INSERT INTO matcher.graph_nodes SELECT 'p', 'n' || i, 'u', i, '', true "
           "FROM generate_series(1, 1000) AS i");
  }

  static std::string Ended() { return fmt::format("j{}", EndedJobs() / 2); }
  static std::string Running() { return fmt::format("j{}", EndedJobs() + 1); }
  static std::string Waiting() { return fmt::format("j{}", EndedJobs() + kLive); }

  // What `work` runs as this service, in a transaction that is rolled back. At least one statement.
  static void ReadsLittle(const std::string& service, const std::function<void(Tx&)>& work) {
    postgres::Connection connection(Database(service));
    std::unique_ptr<testing::PlanWatch> watch;
    const absl::Status done = connection.Transact([&](Tx& tx) {
      watch = std::make_unique<testing::PlanWatch>(tx.conn());
      work(tx);
      return absl::CancelledError("rolled back");
    });
    EXPECT_TRUE(absl::IsCancelled(done)) << done;
    const std::vector<testing::PlanRun> runs = watch->Take();
    watch.reset();
    EXPECT_FALSE(runs.empty());
    for (const testing::PlanRun& run : runs) {
      EXPECT_LE(run.rows, kMostRead) << run.query << "\n" << run.plan;
    }
  }

  static testing::MiniPostgres* postgres_;
};

testing::MiniPostgres* PlansTest::postgres_ = nullptr;

// The watch itself: what reads a whole table is seen to do so.
TEST_F(PlansTest, AScanOfATableIsCounted) {
  postgres::Connection connection(Database("queue"));
  std::unique_ptr<testing::PlanWatch> watch;
  Must(connection.Transact([&](Tx& tx) {
    watch = std::make_unique<testing::PlanWatch>(tx.conn());
    tx.exec("SELECT FROM jobs WHERE message = 'none has this'");
    return absl::OkStatus();
  }));
  const std::vector<testing::PlanRun> runs = watch->Take();
  watch.reset();
  ASSERT_EQ(runs.size(), 1);
  EXPECT_EQ(runs[0].rows, EndedJobs() + kLive);
}

TEST_F(PlansTest, OfTheQueueThatTakesAPartition) {
  ReadsLittle("queue", [](Tx& tx) { queue::LoadPools(tx, 3); });
}

TEST_F(PlansTest, OfABatchOfTheQueue) {
  queue_core::Changes changes;
  changes.pool = "row";
  for (const std::string& id : {Running(), Waiting(), std::string("new")}) {
    changes.jobs.push_back({.job_id = id,
                            .queue = "default",
                            .name_space = "lab",
                            .name = id,
                            .kind = "Job",
                            .state = model::JobState::kRunning,
                            .version = 512,
                            .reason = "",
                            .message = "",
                            .user = "u",
                            .row = ""});
    changes.events.push_back({.job_id = id, .version = 512, .reason = "", .message = ""});
    changes.promises.push_back({.job_id = id, .version = 512, .queue = "default", .slip = {}});
  }
  changes.queues = {{.queue = "default", .row = ""}, {.queue = "gone", .deleted = true, .row = ""}};
  changes.usage = {{.kind = "user", .name = "u", .row = ""},
                   {.kind = "user", .name = "gone", .deleted = true, .row = ""}};
  changes.cycles_requested = {{.cycle_id = 5001, .requested = ""}};
  changes.cycles_answered = {5001};
  ReadsLittle("queue", [&](Tx& tx) { queue::WriteChanges(tx, "p", 3, changes); });
}

TEST_F(PlansTest, OfCommandsAndOfWhatLacksNodes) {
  ReadsLittle("queue", [](Tx& tx) {
    queue::FindJobs(tx, {Running(), Ended(), "none"});
    queue::InsertCommands(tx, {{.client_id = "c", .job_id = Running()}});
    queue::WriteLackNodes(tx, "p", {Waiting()});
  });
}

TEST_F(PlansTest, OfWhatFluxJobsAreMadeOf) {
  ReadsLittle("queue", [](Tx& tx) {
    ASSERT_TRUE(queue::ReadFluxJobs(tx, {Running(), Ended()}).ok());
    ASSERT_TRUE(queue::ReadLiveFacts(tx, [](const auto&) {}).ok());
    ASSERT_TRUE(queue::ReadFactsOf(tx, {Running(), Ended()}, [](const auto&) {}).ok());
  });
}

TEST_F(PlansTest, OfThePruners) {
  ReadsLittle("queue", [](Tx& tx) { EXPECT_GT(queue::PruneEnded(tx, "p", Millis(0), 10), 0); });
  ReadsLittle("queue", [](Tx& tx) { EXPECT_GT(queue::PruneCycles(tx, "p"), 0); });
  ReadsLittle("queue", [](Tx& tx) { EXPECT_GT(queue::PruneCommands(tx), 0); });
  ReadsLittle("matcher", [](Tx& tx) { EXPECT_GT(matcher::PruneReleased(tx, Millis(0)), 0); });
}

// It is printed, so that it can be held against how many end: see services/queue/README.md.
TEST_F(PlansTest, HowManyThePrunersDelete) {
  const auto rate = [](const char* what, const std::string& service, const Pruner::Step& step) {
    postgres::Connection connection(Database(service));
    int64_t deleted = 0;
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < kPrunerSteps; ++i) {
      Must(connection.Transact([&](Tx& tx) {
        deleted += static_cast<int64_t>(step(tx));
        return absl::OkStatus();
      }));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    EXPECT_EQ(deleted, kPrunerSteps * Pruner::kMost) << what;
    fmt::print("{}: {:.0f} a second\n", what, static_cast<double>(deleted) / took.count());
  };
  rate("jobs that have ended, with their events and promises", "queue", [](Tx& tx) {
    return queue::PruneEnded(tx, "p", Millis(0), 10);
  });
  rate("commands", "queue", [](Tx& tx) { return queue::PruneCommands(tx); });
  rate("allocations that were released", "matcher", [](Tx& tx) {
    return matcher::PruneReleased(tx, Millis(0));
  });
}

TEST_F(PlansTest, OfTheMatcherThatTakesAPartition) {
  ReadsLittle("matcher", [](Tx& tx) { matcher_rows::LoadPools(tx, 3); });
}

TEST_F(PlansTest, OfABatchOfTheMatcher) {
  matcher_core::Changes changes;
  changes.released = {{Running(), 1, 0}};
  changes.allocations = {{.key = {Waiting(), 1, 0}, .placement = ""}};
  changes.nodes_dropped = {"n1"};
  changes.nodes = {{.name = "n2", .uid = "", .ordinal = 2, .node = "", .present = true}};
  changes.specs_dropped = {{Running(), 0}};
  changes.specs = {{.job_id = "new", .part = 0, .jobspec = ""}};
  changes.reservations_dropped = {{Running(), 1, 0}};
  changes.reservations = {{.key = {Waiting(), 1, 0}, .placement = ""}};
  changes.answers = {{.cycle_id = 101, .answer = ""}};
  changes.answers_dropped_through = 99;
  changes.pool = "row";
  ReadsLittle("matcher", [&](Tx& tx) { matcher::WriteChanges(tx, "p", 3, changes, false); });
}

TEST_F(PlansTest, OfWhoLooksAtTheGraph) {
  ReadsLittle("matcher", [](Tx& tx) {
    matcher_rows::LoadHead(tx, "p");
    matcher_rows::LoadAllocationsOf(tx, "p", {Running(), Ended()});
    matcher_rows::LoadHolders(tx, "p");
  });
}

TEST_F(PlansTest, OfTheBinder) {
  ReadsLittle("binder", [](Tx& tx) { binder::LoadJobs(tx, 3); });
  ReadsLittle("binder", [](Tx& tx) {
    binder::LoadPlacements(tx, {{Running(), 1, "p", {"n1"}}, {Ended(), 1}});
    binder::LoadMissed(tx, "");
    binder::LoadLackNodes(tx);
    binder::LoadPools(tx);
  });
}

TEST_F(PlansTest, OfABatchOfTheBinder) {
  binder::Rows rows;
  rows.forgotten = {Ended(), Running()};
  rows.renewed = {Waiting()};
  rows.jobs = {{.job_id = "new", .partition = 3, .pool = "p", .fact = ""}};
  rows.slots.emplace_back().job_id = "new";
  rows.slots.back().value.state = binder::SlotState::kTaken;
  ReadsLittle("binder", [&](Tx& tx) { binder::WriteRows(tx, rows); });
}

TEST_F(PlansTest, OfCleanup) {
  ReadsLittle("queue", [](Tx& tx) {
    cleanup::LoadLiveJobs(tx);
    cleanup::HasTakenSlots(tx, Running());
    cleanup::LoadGraphNodes(tx);
  });
}

TEST_F(PlansTest, OfAdmission) {
  ReadsLittle("admission", [](Tx& tx) {
    admission::LoadRows(tx);
    admission::LoadUsage(tx);
    admission::FindUnplaced(tx, {Waiting(), Ended()});
    admission::CompareNeighbours(tx, {});
  });
}

}  // namespace
}  // namespace fluxqueue
