// Tables of a real Postgres, written and read by their descriptions.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/table.h"
#include "libs/testing/mini_postgres.h"

namespace fluxqueue::postgres {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Sample {
  std::string id;
  uint32_t version = 0;
  uint64_t hash = 0;
  std::optional<int64_t> due = {};
  bool live = false;
  std::string bytes = {};
  std::string origin = {};

  friend bool operator==(const Sample&, const Sample&) = default;
};

const Table<Sample>& Samples() {
  static const Table<Sample> table("public.samples",
                                   {SharedKey("pool"), Shared("partition")},
                                   {Field<&Sample::id>("id").Key(),
                                    Field<&Sample::version>("version"),
                                    Field<&Sample::hash>("hash"),
                                    Field<&Sample::due>("due"),
                                    Field<&Sample::live>("live"),
                                    Blob<&Sample::bytes>("bytes"),
                                    Field<&Sample::origin>("origin").Once(),
                                    Computed<Sample>("written", "now()")},
                                   Conflict::kUpdate,
                                   "t.version <= excluded.version");
  return table;
}

class TableIntegrationTest : public ::testing::Test {
 protected:
  TableIntegrationTest()
      : db_({.dsn = postgres_.dsn(), .application = "test", .schema = "public"}) {
    EXPECT_EQ(Do([](pqxx::transaction_base& tx) {
                tx.exec(
                    "CREATE TABLE samples (pool text, partition integer, id text, version integer, "
                    "hash bigint, due bigint, live boolean, bytes bytea, origin text, "
                    "written timestamptz NOT NULL, PRIMARY KEY (pool, id))");
              }),
              absl::OkStatus());
  }

  template <typename Body>
  absl::Status Do(const Body& body) {
    return db_.Transact([&](pqxx::transaction_base& tx) {
      body(tx);
      return absl::OkStatus();
    });
  }
  absl::Status Write(const std::string& pool, const std::vector<Sample>& rows) {
    return Do([&](pqxx::transaction_base& tx) {
      EXPECT_EQ(Samples().Write(tx, rows, pool, 7), rows.size());
    });
  }
  absl::Status Delete(const std::string& pool, const std::vector<Sample>& rows) {
    return Do([&](pqxx::transaction_base& tx) { Samples().Delete(tx, rows, pool, 7); });
  }
  std::vector<Sample> Of(const std::string& pool) {
    static const std::string sql =
        Samples().Select("WHERE t.pool = $1 AND t.partition = 7 ORDER BY t.id");
    std::vector<Sample> rows;
    EXPECT_EQ(Do([&](pqxx::transaction_base& tx) {
                rows = Samples().Read(Exec(tx, {"samples_of_pool", sql.c_str()}, pool));
              }),
              absl::OkStatus());
    return rows;
  }

  testing::MiniPostgres postgres_;
  Connection db_;
};

TEST_F(TableIntegrationTest, RowsComeBackAsTheyWere) {
  const Sample full{.id = "a \"quoted\" {id}",
                    .version = UINT32_C(2'000'000'000),
                    .hash = UINT64_MAX,
                    .due = -1,
                    .live = true,
                    .bytes = std::string("\0\xff", 2),
                    .origin = "here"};
  const Sample empty{.id = ""};
  ASSERT_EQ(Write("p", {full, empty}), absl::OkStatus());
  ASSERT_EQ(Write("other", {{.id = "b"}}), absl::OkStatus());
  EXPECT_THAT(Of("p"), ElementsAre(empty, full));
}

TEST_F(TableIntegrationTest, NoRowsAreNoStatement) {
  EXPECT_EQ(Write("p", {}), absl::OkStatus());
  EXPECT_EQ(Delete("p", {}), absl::OkStatus());
  EXPECT_THAT(Of("p"), IsEmpty());
}

TEST_F(TableIntegrationTest, AnUpdateLeavesWhatIsWrittenOnce) {
  ASSERT_EQ(Write("p", {{.id = "a", .version = 1, .due = 5, .origin = "first"}}), absl::OkStatus());
  ASSERT_EQ(Write("p", {{.id = "a", .version = 2, .origin = "second"}}), absl::OkStatus());
  EXPECT_THAT(Of("p"), ElementsAre(Sample{.id = "a", .version = 2, .origin = "first"}));
}

TEST_F(TableIntegrationTest, AnOlderRowDoesNotReplaceANewerOne) {
  ASSERT_EQ(Write("p", {{.id = "a", .version = 2}}), absl::OkStatus());
  ASSERT_EQ(Write("p", {{.id = "a", .version = 1}, {.id = "b", .version = 1}}), absl::OkStatus());
  EXPECT_THAT(Of("p"),
              ElementsAre(Sample{.id = "a", .version = 2}, Sample{.id = "b", .version = 1}));
}

TEST_F(TableIntegrationTest, OnlyTheRowsOfTheKeysAreDeleted) {
  ASSERT_EQ(Write("p", {{.id = "a"}, {.id = "b"}, {.id = "c"}}), absl::OkStatus());
  ASSERT_EQ(Write("other", {{.id = "a"}}), absl::OkStatus());
  ASSERT_EQ(Delete("p", {{.id = "a"}, {.id = "c"}, {.id = "not there"}}), absl::OkStatus());
  EXPECT_THAT(Of("p"), ElementsAre(Sample{.id = "b"}));
  EXPECT_THAT(Of("other"), ElementsAre(Sample{.id = "a"}));
}

constexpr Statement kUpTo{"test_up_to", "SELECT * FROM generate_series(1, $1::bigint)"};

TEST_F(TableIntegrationTest, ALargeResultIsGivenRowByRow) {
  for (const int64_t last : {0, 1, 999, 1000, 1001, 2500}) {
    int64_t seen = 0;
    EXPECT_EQ(db_.Transact([&](pqxx::transaction_base& tx) {
      const auto see = [&](const pqxx::row& row) {
        EXPECT_EQ(row[0].as<int64_t>(), ++seen);
        return absl::OkStatus();
      };
      // Twice: the first cursor of that name is closed.
      absl::Status status = ExecEach(tx, kUpTo, see, last);
      EXPECT_EQ(seen, last);
      seen = 0;
      status.Update(ExecEach(tx, kUpTo, see, last));
      return status;
    }),
              absl::OkStatus());
    EXPECT_EQ(seen, last);
  }
}

TEST_F(TableIntegrationTest, AnErrorEndsALargeResult) {
  int64_t seen = 0;
  const absl::Status wrong = absl::DataLossError("row 1500");
  EXPECT_EQ(db_.Transact([&](pqxx::transaction_base& tx) {
    return ExecEach(
        tx,
        kUpTo,
        [&](const pqxx::row&) { return ++seen == 1500 ? wrong : absl::OkStatus(); },
        int64_t{2500});
  }),
            wrong);
  EXPECT_EQ(seen, 1500);
  EXPECT_THAT(Of("p"), IsEmpty()) << "the connection is as good as before";
}

}  // namespace
}  // namespace fluxqueue::postgres
