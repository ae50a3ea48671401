// A connection to a real Postgres whose host vanishes: TCP goes on, and no answer comes.
#include <chrono>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/postgres/connection.h"
#include "libs/testing/mini_postgres.h"
#include "libs/testing/tcp_proxy.h"

namespace fluxqueue::postgres {
namespace {

using ::testing::HasSubstr;

// Far below what TCP and its keepalives need.
constexpr std::chrono::seconds kSoon{13};

uint16_t PortOf(const std::string& dsn) {
  const std::string host = "127.0.0.1:";
  return static_cast<uint16_t>(std::stoi(dsn.substr(dsn.find(host) + host.size())));
}

class SilentServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { postgres_ = new testing::MiniPostgres; }
  static void TearDownTestSuite() { delete postgres_; }

  SilentServerTest()
      : proxy_(PortOf(postgres_->dsn())),
        db_({.dsn = fmt::format("host=127.0.0.1 port={} dbname=fluxqueue user=fluxqueue "
                                "sslmode=disable gssencmode=disable",
                                proxy_.port()),
             .application = "test",
             .schema = "public",
             .connect_timeout = Millis(2'000),
             .statement_timeout = Millis(1'000),
             .idle_in_transaction_timeout = Millis(1'000)}),
        begun_(std::chrono::steady_clock::now()) {}

  absl::Status Ask(const std::string& sql) {
    return db_.Query([&](pqxx::transaction_base& tx) {
      tx.exec(sql);
      return absl::OkStatus();
    });
  }
  bool Soon() const { return std::chrono::steady_clock::now() - begun_ < kSoon; }

  static testing::MiniPostgres* postgres_;
  testing::TcpProxy proxy_;
  Connection db_;
  const std::chrono::steady_clock::time_point begun_;
};

testing::MiniPostgres* SilentServerTest::postgres_ = nullptr;

TEST_F(SilentServerTest, IsGivenUpInTheMiddleOfAQuery) {
  ASSERT_TRUE(Ask("SELECT 1").ok());
  std::jthread vanish([&] {
    std::this_thread::sleep_for(Millis(100));
    proxy_.FallSilent();
  });
  const absl::Status status = Ask("SELECT pg_sleep(0.5)");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("no answer for 7 s"));
  EXPECT_TRUE(Soon());
  proxy_.Speak();
  EXPECT_EQ(Ask("SELECT 1"), absl::OkStatus()) << "by a connection of its own";
}

TEST_F(SilentServerTest, LeavesACommitInDoubt) {
  ASSERT_TRUE(Ask("CREATE TABLE doubts (id int)").ok());
  const absl::Status status = db_.Transact([&](pqxx::transaction_base& tx) {
    tx.exec("INSERT INTO doubts VALUES (1)");
    proxy_.FallSilent();
    // What the proxy has in hand.
    std::this_thread::sleep_for(Millis(100));
    return absl::OkStatus();
  });
  EXPECT_TRUE(IsOutcomeUnknown(status)) << status;
  EXPECT_TRUE(Soon());
}

TEST_F(SilentServerTest, IsGivenUpWhileItIsConnectedTo) {
  proxy_.FallSilent();
  const absl::Status status = Ask("SELECT 1");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(Soon());
}

// A claim reads for minutes; a migration makes an index for as long as it takes.
TEST_F(SilentServerTest, IsNotOneThatMayTakeLonger) {
  const auto sleep = [](pqxx::transaction_base& tx) {
    tx.exec("SELECT pg_sleep(8.5)");
    return absl::OkStatus();
  };
  EXPECT_EQ(db_.Transact(
                {.statement_timeout = Millis(20'000), .idle_in_transaction_timeout = Millis(1'000)},
                sleep),
            absl::OkStatus());
  EXPECT_EQ(db_.Transact({.statement_timeout = Millis(1'000),
                          .idle_in_transaction_timeout = Millis(1'000),
                          .answer_timeout = Millis(60'000)},
                         [&](pqxx::transaction_base& tx) {
                           tx.exec("SET LOCAL statement_timeout = 0");
                           return sleep(tx);
                         }),
            absl::OkStatus());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Ask("SELECT pg_sleep(3)"))) << "of that transaction alone";
}

// Each of its statements is answered in time: together they may take longer than one may.
TEST_F(SilentServerTest, IsNotOneThatAnswersAgainAndAgain) {
  EXPECT_EQ(db_.Transact([](pqxx::transaction_base& tx) {
    for (int i = 0; i < 10; ++i) tx.exec("SELECT pg_sleep(0.8)");
    return absl::OkStatus();
  }),
            absl::OkStatus());
}

}  // namespace
}  // namespace fluxqueue::postgres
