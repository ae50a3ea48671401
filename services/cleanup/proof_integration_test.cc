// What proves a pod, in a real Postgres with the tables of those who own them.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"
#include "libs/testing/mini_postgres.h"
#include "services/cleanup/adapters/lookups.h"

#include "binder_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue::cleanup {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class ProofTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { postgres_ = new testing::MiniPostgres; }
  static void TearDownTestSuite() { delete std::exchange(postgres_, nullptr); }

  static postgres::Options Database(const std::string& schema) {
    return {.dsn = postgres_->dsn(), .application = "test", .schema = schema};
  }

  void SetUp() override {
    Sql("DROP SCHEMA IF EXISTS queue CASCADE; DROP SCHEMA IF EXISTS binder CASCADE");
  }

  static void Must(const absl::Status& status) { CHECK(status.ok(), "{}", Message(status)); }

  static void MakeTables() {
    postgres::Connection queue(Database("queue"));
    Must(postgres::Migrate(queue, "queue", {&delivery::Migrations(), &migrations::queue()}));
    postgres::Connection binder(Database("binder"));
    Must(postgres::Migrate(binder, "binder", {&delivery::Migrations(), &migrations::binder()}));
  }

  static void Sql(const std::string& sql) {
    postgres::Connection own(Database("public"));
    Must(own.Query([&](pqxx::transaction_base& tx) {
      tx.exec(sql);
      return absl::OkStatus();
    }));
  }

  static void AddJob(const std::string& job_id, int slots) {
    Sql(
        fmt::format("INSERT INTO queue.jobs (job_id, pool, queue, namespace, name, kind, state, "
                    "  version, attempt, reason, message, slots, priority, created_ms, start_ms, "
                    "  updated_ms, placement_hash, row) "
                    "VALUES ('{}', 'default', 'default', 'team', 'job', 'Job', 'Bound', 1, 2, '', "
                    "  '', {}, 0, 0, 0, 0, 0, '')",
                    job_id,
                    slots));
  }

  // Pods "<job id>-0" and on have the slots of attempt 2.
  static void AddSlots(const std::string& job_id, int slots) {
    Sql(
        fmt::format("INSERT INTO binder.slots SELECT '{0}', 2, 0, i, 'n1', '{0}-' || i, 'pod', "
                    "  'team', 'taken', false, false FROM generate_series(0, {1}) i",
                    job_id,
                    slots - 1));
  }

  absl::StatusOr<Proofs> Find(const std::vector<Hint>& hints) {
    return FindProofs(connection_, hints);
  }

  static std::string Line(const Proof& proof) {
    return fmt::format("{} {} {} {}",
                       proof.job_id,
                       kubernetes::FormatSlotName(proof.slot),
                       proof.space,
                       proof.node);
  }

  static inline testing::MiniPostgres* postgres_ = nullptr;
  postgres::Connection connection_{Database("cleanup")};
};

TEST_F(ProofTest, IsTheRowOfThisPodAndThisJob) {
  MakeTables();
  AddJob("mine", 3);
  AddSlots("mine", 3);
  AddJob("other", 1);
  AddSlots("other", 1);
  const absl::StatusOr<Proofs> proofs = Find({{"mine", "mine-0"},
                                              {"mine", "mine-2"},
                                              {"other", "mine-1"},
                                              {"mine", "other-0"},
                                              {"mine", "nobody"},
                                              {"mine-1", "mine-1"},
                                              {"unknown", "other-0"},
                                              {"other", "other-0"}});
  ASSERT_TRUE(proofs.ok()) << Message(proofs.status());
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& [pod_uid, proof] : *proofs) lines.emplace_back(pod_uid, Line(proof));
  EXPECT_THAT(lines,
              UnorderedElementsAre(Pair("mine-0", "mine 2.0.0/3 team n1"),
                                   Pair("mine-2", "mine 2.0.2/3 team n1"),
                                   Pair("other-0", "other 2.0.0/1 team n1")));
}

TEST_F(ProofTest, AFencedPodMayHaveAnotherSlot) {
  MakeTables();
  AddJob("mine", 3);
  AddSlots("mine", 3);
  Sql("UPDATE binder.slots SET state = 'fenced', pod_uid = 'p' WHERE slot IN (0, 2)");
  Sql("UPDATE binder.slots SET pod_uid = 'p' WHERE slot = 1");
  const absl::StatusOr<Proofs> proofs = Find({{"mine", "p"}});
  ASSERT_TRUE(proofs.ok()) << Message(proofs.status());
  ASSERT_TRUE(proofs->contains("p"));
  EXPECT_EQ(Line(proofs->at("p")), "mine 2.0.1/3 team n1");
}

TEST_F(ProofTest, NothingIsAskedForNothing) {
  const absl::StatusOr<Proofs> proofs = Find({});
  ASSERT_TRUE(proofs.ok()) << Message(proofs.status());
  EXPECT_TRUE(proofs->empty());
}

TEST_F(ProofTest, ItIsWaitedForTheBindersTables) {
  EXPECT_EQ(Find({{"mine", "mine-0"}}).status().code(), absl::StatusCode::kUnavailable);
  MakeTables();
  EXPECT_TRUE(Find({{"mine", "mine-0"}}).ok());
}

// In more than one query, each of which reads the job's slots once.
TEST_F(ProofTest, AllPodsOfALargeJobAreFound) {
  constexpr int kSlots = 15'000;
  static_assert(kSlots > kMostHints);
  MakeTables();
  AddJob("large", kSlots);
  AddSlots("large", kSlots);
  std::vector<Hint> hints;
  for (int i = 0; i < kSlots; ++i) hints.push_back({"large", fmt::format("large-{}", i)});
  const absl::StatusOr<Proofs> proofs = Find(hints);
  ASSERT_TRUE(proofs.ok()) << Message(proofs.status());
  EXPECT_EQ(proofs->size(), kSlots);
}

using PoolDirectoryTest = ProofTest;

TEST_F(PoolDirectoryTest, KnowsAllThatWasAskedForLastAndNotManyMore) {
  MakeTables();
  AddJob("one", 1);
  std::vector<std::string> many;
  for (size_t i = 0; i <= PoolDirectory::kMostJobs; ++i) many.push_back(fmt::format("job-{}", i));
  const std::string columns =
      "pool, queue, namespace, name, kind, state, version, attempt, reason, message, slots, "
      "priority, created_ms, start_ms, updated_ms, placement_hash, row";
  Sql(
      fmt::format("INSERT INTO queue.jobs (job_id, {0}) SELECT 'job-' || i, {0} "
                  "FROM queue.jobs, generate_series(0, {1}) i WHERE job_id = 'one'",
                  columns,
                  PoolDirectory::kMostJobs));
  PoolDirectory directory(connection_);
  Must(directory.Find({"one"}));
  Must(directory.Find(many));
  EXPECT_EQ(directory.PoolOf("one"), "default");
  EXPECT_EQ(directory.PoolOf(many.front()), "default");
  EXPECT_EQ(directory.PoolOf(many.back()), "default");
  Must(directory.Find({"one", many.front()}));
  EXPECT_EQ(directory.PoolOf("one"), "default");
  EXPECT_EQ(directory.PoolOf(many.front()), "default");
  EXPECT_EQ(directory.PoolOf(many.back()), std::nullopt);
}

}  // namespace
}  // namespace fluxqueue::cleanup
