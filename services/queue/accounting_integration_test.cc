// Accounting in a real Postgres: rows and their months, who looks after these, and reports.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/job_store/attempt_store.h"
#include "libs/model/accounting_month.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"
#include "libs/testing/mini_postgres.h"
#include "services/queue/adapters/attempt_keeper.h"
#include "services/queue/adapters/attempt_store.h"

#include "queue_migrations.h"

namespace fluxqueue::queue {
namespace {

using job_store::ReportKey;
using job_store::ReportQuery;
using job_store::ReportRow;
using model::Month;
using queue_core::AttemptRecord;
using std::chrono::months;
using std::chrono::year;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Month kMay = year(2026) / 5;
constexpr Month kJune = year(2026) / 6;
constexpr int64_t kHour = 3'600'000;

AttemptRecord Attempt(const std::string& job, int64_t end_ms) {
  AttemptRecord attempt;
  attempt.job_id = job;
  attempt.attempt = 1;
  attempt.user = "ann";
  attempt.name_space = "team";
  attempt.name = "name-of-" + job;
  attempt.kind = "Job";
  attempt.queue = "default";
  attempt.outcome = "Succeeded";
  attempt.slots = 1;
  attempt.submitted_ms = end_ms - 2 * kHour;
  attempt.waited_ms = kHour;
  attempt.start_ms = end_ms - kHour;
  attempt.end_ms = end_ms;
  attempt.cpu_seconds = 2'000 * 3600;       // 2 cpus for an hour
  attempt.gpu_seconds = 500 * 3600;         // half a gpu
  attempt.memory_seconds = 4'096 * 3600LL;  // 4 GiB
  return attempt;
}

class AccountingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { postgres_ = new testing::MiniPostgres; }
  static void TearDownTestSuite() { delete std::exchange(postgres_, nullptr); }

  static postgres::Options Database() {
    return {.dsn = postgres_->dsn(), .application = "test", .schema = "queue"};
  }

  void SetUp() override {
    Sql("DROP SCHEMA IF EXISTS queue CASCADE");
    postgres::Connection own(Database());
    Must(postgres::Migrate(own, "queue", {&delivery::Migrations(), &migrations::queue()}));
    connection_ = std::make_unique<postgres::Connection>(Database());
  }

  static void Must(const absl::Status& status) { CHECK(status.ok(), "{}", Message(status)); }

  static void Sql(const std::string& sql) {
    postgres::Connection own({.dsn = postgres_->dsn(), .application = "test", .schema = "public"});
    Must(own.Query([&](pqxx::transaction_base& tx) {
      tx.exec(sql);
      return absl::OkStatus();
    }));
  }

  static absl::Status TryWrite(postgres::Connection& connection,
                               const std::vector<AttemptRecord>& attempts) {
    return connection.Transact([&](pqxx::transaction_base& tx) {
      WriteAttempts(tx, "main", attempts);
      return absl::OkStatus();
    });
  }
  void Write(const std::vector<AttemptRecord>& attempts) { Must(TryWrite(*connection_, attempts)); }

  int64_t Count(const std::string& from) {
    int64_t count = 0;
    Must(connection_->Query([&](pqxx::transaction_base& tx) {
      count = tx.exec("SELECT count(*) FROM " + from)[0][0].as<int64_t>();
      return absl::OkStatus();
    }));
    return count;
  }

  std::set<Month> MonthsNow() {
    std::set<Month> found;
    Must(connection_->Query([&](pqxx::transaction_base& tx) {
      found = Months(tx);
      return absl::OkStatus();
    }));
    return found;
  }

  static std::vector<ReportRow> Report(const ReportQuery& query) {
    job_store::AttemptStore store(Database());
    auto rows = store.Report(query);
    CHECK(rows.ok(), "{}", Message(rows.status()));
    return *rows;
  }

  static ReportQuery OfMonths(Month first, Month last, std::vector<ReportKey> by) {
    return {.by = std::move(by),
            .since_ms = model::BeginOf(first),
            .until_ms = model::BeginOf(last + months(1))};
  }

  static testing::MiniPostgres* postgres_;
  std::unique_ptr<postgres::Connection> connection_;
};

testing::MiniPostgres* AccountingTest::postgres_ = nullptr;

TEST_F(AccountingTest, ARowMakesTheMonthThatItNeeds) {
  EXPECT_THAT(MonthsNow(), IsEmpty());
  const int64_t june = model::BeginOf(kJune);
  Write({Attempt("a", june - 1), Attempt("b", june)});
  EXPECT_THAT(MonthsNow(), ElementsAre(kMay, kJune));
  EXPECT_EQ(Count("attempts_2026_05"), 1);
  EXPECT_EQ(Count("attempts_2026_06 WHERE job_id = 'b' AND pool = 'main'"), 1);
  EXPECT_EQ(Count("pg_indexes WHERE tablename IN ('attempts_2026_05', 'attempts_2026_06') "
                  "AND indexdef LIKE '%USING brin (submitted_ms)%'"),
            2);
}

TEST_F(AccountingTest, ABatchThatComesTwiceIsWrittenOnce) {
  const std::vector<AttemptRecord> batch = {Attempt("a", model::BeginOf(kJune))};
  Write(batch);
  Write(batch);
  EXPECT_EQ(Count("attempts"), 1);
}

TEST_F(AccountingTest, WhatUsersWriteIsBounded) {
  AttemptRecord attempt = Attempt("a", model::BeginOf(kJune));
  for (int i = 0; i < 300; ++i) attempt.message += "ü";
  Write({attempt});
  EXPECT_EQ(Count("attempts WHERE length(message) = 200"), 1);
}

TEST_F(AccountingTest, WhoNeverStartedHasNoStart) {
  AttemptRecord attempt = Attempt("a", model::BeginOf(kJune));
  attempt.start_ms.reset();
  Write({attempt});
  EXPECT_EQ(Count("attempts WHERE start_ms IS NULL AND wait_class IS NULL"), 1);
}

TEST_F(AccountingTest, ReplicasMakeTheSameMonthsAtOnce) {
  constexpr int kReplicas = 4;
  constexpr int kMonths = 12;
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> replicas;
    for (int replica = 0; replica < kReplicas; ++replica) {
      replicas.emplace_back([&failures, replica] {
        postgres::Connection own(Database());
        for (int i = 0; i < kMonths; ++i) {
          const std::string job = fmt::format("{}-{}", replica, i);
          const int64_t end_ms = model::BeginOf(kMay + months(i));
          const absl::Status written = TryWrite(own, {Attempt(job, end_ms)});
          EXPECT_TRUE(written.ok()) << Message(written);
          failures += written.ok() ? 0 : 1;
        }
      });
    }
  }
  EXPECT_EQ(failures, 0);
  EXPECT_THAT(MonthsNow(), SizeIs(kMonths));
  EXPECT_EQ(Count("attempts"), kReplicas * kMonths);
}

// As pg_dump does, for hours.
TEST_F(AccountingTest, WhoReadsTheTableKeepsNobodyFromWriting) {
  Write({Attempt("a", model::BeginOf(kMay))});
  postgres::Options impatient = Database();
  impatient.lock_timeout = Millis(500);
  postgres::Connection writer(impatient);
  Must(connection_->Transact([&](pqxx::transaction_base& tx) {
    tx.exec("SELECT count(*) FROM attempts");
    return TryWrite(writer, {Attempt("b", model::BeginOf(kJune))});
  }));
  EXPECT_EQ(Count("attempts"), 2);
}

TEST_F(AccountingTest, AMonthInUseIsDroppedLater) {
  Write({Attempt("a", model::BeginOf(kMay))});
  postgres::Connection other(Database());
  const auto drop = [&] {
    return other.Transact([](pqxx::transaction_base& tx) {
      DropMonth(tx, kMay);
      return absl::OkStatus();
    });
  };
  Must(connection_->Transact([&](pqxx::transaction_base& tx) {
    tx.exec("SELECT count(*) FROM attempts");
    EXPECT_TRUE(absl::IsUnavailable(drop())) << "somebody reads";
    return absl::OkStatus();
  }));
  EXPECT_EQ(Count("attempts"), 1);
  Must(drop());
  EXPECT_THAT(MonthsNow(), IsEmpty());
}

TEST_F(AccountingTest, WhoReportsWaitsForAMonthThatIsBeingDropped) {
  Write({Attempt("a", model::BeginOf(kMay)), Attempt("b", model::BeginOf(kJune))});
  job_store::AttemptStore store(Database());
  const ReportQuery all = {.by = {ReportKey::kMonth},
                           .until_ms = model::BeginOf(kJune) + 48 * kHour};
  std::vector<ReportRow> report;
  std::vector<job_store::Job> jobs;
  std::thread reporter, lister;
  Must(connection_->Transact([&](pqxx::transaction_base& tx) {
    DropMonth(tx, kMay);
    reporter = std::thread([&] { report = store.Report(all).value(); });
    lister = std::thread([&] {
      bool more = false;
      job_store::AttemptStore other(Database());
      jobs = other.Ended({.until_ms = all.until_ms, .limit = 10}, &more).value();
    });
    const auto waiting = [] {
      postgres::Connection own(Database());
      int64_t count = 0;
      Must(own.Query([&](pqxx::transaction_base& asks) {
        count = asks.exec("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0].as<int64_t>();
        return absl::OkStatus();
      }));
      return count;
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (waiting() < 2 && std::chrono::steady_clock::now() < deadline) continue;
    EXPECT_EQ(waiting(), 2);
    return absl::OkStatus();
  }));
  reporter.join();
  lister.join();
  ASSERT_THAT(report, SizeIs(1));
  EXPECT_THAT(report[0].keys, ElementsAre("2026-06"));
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].id, "b");
}

TEST_F(AccountingTest, TheKeeperMakesTheNextMonthAndDropsOldOnes) {
  for (const int ago : {0, 2, 3, 4, 40}) {
    Write({Attempt(fmt::format("{}", ago), model::BeginOf(kJune - months(ago)))});
  }
  FakeClock clock(std::chrono::system_clock::time_point(Millis(model::BeginOf(kJune) + kHour)));
  AttemptKeeper keeper(Database(), clock, /*months=*/3);
  Must(keeper.RunOnce());
  EXPECT_THAT(MonthsNow(),
              ElementsAre(kJune - months(3), kJune - months(2), kJune, kJune + months(1)));
  EXPECT_EQ(Count("attempts"), 3);
  Must(keeper.RunOnce());
  // A new month has begun.
  clock.Advance(Millis(31 * 24 * kHour));
  int looks = 0;
  Must(keeper.Run([&](Millis) { return ++looks < 2; }));
  EXPECT_EQ(looks, 2);
  EXPECT_THAT(MonthsNow(),
              ElementsAre(kJune - months(2), kJune, kJune + months(1), kJune + months(2)));
}

TEST_F(AccountingTest, TheKeeperTriesAgainSoonAfterAFailure) {
  Sql("DROP TABLE queue.attempts");
  FakeClock clock;
  AttemptKeeper keeper(Database(), clock, 60);
  std::vector<Millis> waits;
  Must(keeper.Run([&](Millis wait) {
    waits.push_back(wait);
    return false;
  }));
  EXPECT_THAT(waits, ElementsAre(Millis(60'000)));
}

TEST_F(AccountingTest, AReportSumsByWhatItIsAskedFor) {
  const int64_t june = model::BeginOf(kJune);
  std::vector<AttemptRecord> attempts = {
      Attempt("a", june - 1), Attempt("b", june), Attempt("c", june + kHour)};
  attempts[1].outcome = "Requeued";
  attempts[2].outcome = "Failed";
  attempts[2].job_id = "b";
  attempts[2].attempt = 2;
  attempts.push_back(Attempt("d", june + kHour));
  attempts[3].user = "bob";
  attempts[3].name_space = "other";
  attempts[3].outcome = "Cancelled";
  attempts[3].start_ms.reset();
  attempts[3].cpu_seconds = 0;
  Write(attempts);

  const auto by_user = Report(OfMonths(kMay, kJune, {ReportKey::kUser}));
  ASSERT_THAT(by_user, SizeIs(2));
  EXPECT_THAT(by_user[0].keys, ElementsAre("ann"));
  EXPECT_EQ(by_user[0].jobs, 2) << "a requeue is no end";
  EXPECT_EQ(by_user[0].succeeded, 1);
  EXPECT_EQ(by_user[0].failed, 1);
  EXPECT_EQ(by_user[0].attempts, 3);
  EXPECT_DOUBLE_EQ(by_user[0].cpu_hours, 6);
  EXPECT_DOUBLE_EQ(by_user[0].gpu_hours, 1.5);
  EXPECT_DOUBLE_EQ(by_user[0].memory_gib_hours, 12);
  EXPECT_DOUBLE_EQ(by_user[0].wait_mean_s, 3600);
  EXPECT_THAT(by_user[0].wait_p95_s, DoubleNear(3600, 3600 * 0.033));
  EXPECT_THAT(by_user[1].keys, ElementsAre("bob"));
  EXPECT_EQ(by_user[1].jobs, 1);
  EXPECT_EQ(by_user[1].started, 0);
  EXPECT_EQ(by_user[1].wait_mean_s, 0) << "who never started is in no wait";

  const auto by_month = Report(OfMonths(kMay, kJune, {ReportKey::kMonth, ReportKey::kNamespace}));
  ASSERT_THAT(by_month, SizeIs(3));
  EXPECT_THAT(by_month[0].keys, ElementsAre("2026-05", "team"));
  EXPECT_THAT(by_month[1].keys, ElementsAre("2026-06", "other"));
  EXPECT_EQ(by_month[2].attempts, 2);

  ReportQuery part = OfMonths(kMay, kJune, {ReportKey::kQueue});
  part.since_ms = june;
  part.until_ms = june + kHour;
  ASSERT_THAT(Report(part), SizeIs(1));
  EXPECT_EQ(Report(part)[0].attempts, 1) << "from the one moment on, before the other";
  part.user = "bob";
  EXPECT_THAT(Report(part), IsEmpty());
  EXPECT_THAT(Report(OfMonths(year(2020) / 1, year(2020) / 2, {ReportKey::kUser})), IsEmpty());
}

// Against the sorted waits themselves.
TEST_F(AccountingTest, PercentilesOfWaits) {
  std::vector<AttemptRecord> attempts;
  std::vector<double> waits;
  for (int i = 0; i < 1000; ++i) {
    AttemptRecord attempt = Attempt(fmt::format("{}", i), model::BeginOf(kMay + months(i % 3)) + i);
    attempt.waited_ms = static_cast<int64_t>(std::exp((i * 7919 % 1000) / 50.0));
    waits.push_back(static_cast<double>(attempt.waited_ms) / 1000);
    attempts.push_back(std::move(attempt));
  }
  Write(attempts);
  std::sort(waits.begin(), waits.end());
  const auto rows = Report(OfMonths(kMay, kMay + months(2), {ReportKey::kUser}));
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_THAT(rows[0].wait_p95_s, DoubleNear(waits[949], waits[949] * 0.033));
}

TEST_F(AccountingTest, JobsThatHaveLeftTheirTable) {
  const int64_t june = model::BeginOf(kJune);
  std::vector<AttemptRecord> attempts = {
      Attempt("a", june - 10 * kHour), Attempt("b", june), Attempt("c", june + 10 * kHour)};
  attempts.push_back(Attempt("b", june - kHour));
  attempts[3].outcome = "Requeued";
  attempts[2].user = "bob";
  attempts[1].attempt = 2;
  Write(attempts);
  job_store::AttemptStore store(Database());
  const auto names = [&](const job_store::JobFilter& filter, bool more_expected = false) {
    bool more = false;
    const auto jobs = store.Ended(filter, &more);
    CHECK(jobs.ok(), "{}", Message(jobs.status()));
    EXPECT_EQ(more, more_expected);
    std::string list;
    for (const job_store::Job& job : *jobs) list += job.id;
    return list;
  };
  EXPECT_EQ(names({.limit = 10}), "cba");
  EXPECT_EQ(names({.limit = 2}, true), "cb");
  EXPECT_EQ(names({.user = "ann", .limit = 10}), "ba");
  EXPECT_EQ(names({.state = "Failed", .limit = 10}), "");
  // Submitted two hours before their ends.
  EXPECT_EQ(names({.since_ms = june - kHour, .until_ms = june + 8 * kHour, .limit = 10}), "b");
  EXPECT_EQ(names({.until_ms = june - 2 * kHour, .limit = 10}), "a");
  // In June b ends, which was there in May.
  EXPECT_EQ(names({.until_ms = june - kHour, .limit = 10}), "ba");
  EXPECT_EQ(names({.until_ms = june - kHour, .limit = 1}, true), "b");
  bool more = false;
  const auto jobs = store.Ended({.user = "bob", .limit = 1}, &more);
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ((*jobs)[0].FullName(), "team/name-of-c");
  EXPECT_EQ((*jobs)[0].state, "Succeeded");
  EXPECT_EQ((*jobs)[0].start_ms, june + 9 * kHour);
  EXPECT_TRUE((*jobs)[0].ended);
}

}  // namespace
}  // namespace fluxqueue::queue
