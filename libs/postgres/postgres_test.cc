// The pure parts; what needs a server is in libs/delivery's integration test.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/postgres/array.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/dsn.h"
#include "libs/postgres/status.h"

namespace fluxqueue::postgres {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ArrayTest, Empty) {
  EXPECT_EQ(TextArray().text(), "{}");
  EXPECT_TRUE(BigintArray().empty());
}

TEST(ArrayTest, TextIsQuotedAndEscaped) {
  TextArray array;
  array.Add("a");
  array.Add("");
  array.Add("NULL");
  array.Add("say \"hi\", \\{}");
  array.AddNull();
  EXPECT_EQ(array.text(), R"({"a","","NULL","say \"hi\", \\{}",NULL})");
  EXPECT_EQ(array.size(), 5);
}

TEST(ArrayTest, WhatPostgresRefusesIsReplaced) {
  TextArray array;
  array.Add(std::string_view("a\0b", 3));
  array.Add("ü\xff\xc3");
  EXPECT_EQ(array.text(), "{\"a\uFFFDb\",\"ü\uFFFD\uFFFD\"}");
}

TEST(ArrayTest, NumbersAndBools) {
  BigintArray numbers;
  numbers.Add(-1);
  numbers.Add(INT64_MAX);
  EXPECT_EQ(numbers.text(), "{-1,9223372036854775807}");
  BoolArray bools;
  bools.Add(true);
  bools.Add(false);
  EXPECT_EQ(bools.text(), "{t,f}");
}

TEST(ArrayTest, BytesAreHexadecimal) {
  ByteaArray array;
  array.Add(std::string("\0\xff\"", 3));
  array.Add("");
  EXPECT_EQ(array.text(), R"({"\\x00ff22","\\x"})");
}

TEST(StatusTest, SaysWhatToDoNext) {
  const auto code = [](const char* sqlstate) {
    return FromException(pqxx::sql_error("e", "q", sqlstate), "x").code();
  };
  EXPECT_EQ(code("23505"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code("23514"), absl::StatusCode::kInternal);
  EXPECT_EQ(code("40P01"), absl::StatusCode::kAborted);
  EXPECT_EQ(code("42P01"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code("42703"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code("42601"), absl::StatusCode::kInternal);
  EXPECT_EQ(code("57P01"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code("57014"), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(code("22021"), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::IsUnavailable(FromException(pqxx::broken_connection("gone"), "x")));
  EXPECT_TRUE(IsOutcomeUnknown(FromException(pqxx::in_doubt_error("?"), "x")));
}

TEST(ConnectionTest, AServerThatIsAwayIsNamedWithoutItsPassword) {
  Connection connection(
      {.dsn = "postgresql://me:secret@127.0.0.1:1/db", .application = "t", .schema = "s"});
  const absl::Status status =
      connection.Query([](pqxx::transaction_base&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("port=1"));
  EXPECT_THAT(Message(status), HasSubstr("dbname=db"));
  EXPECT_THAT(Message(status), Not(HasSubstr("secret")));
}

TEST(DsnTest, APingNamesAServerThatDoesNotAnswer) {
  const absl::Status away = Ping("postgresql://me:secret@127.0.0.1:1/db", Millis(2000));
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
  EXPECT_EQ(Message(away), "Postgres user=me dbname=db host=127.0.0.1 port=1 does not answer");
  const absl::Status bad = Ping("no such dsn", Millis(2000));
  EXPECT_TRUE(absl::IsInvalidArgument(bad)) << bad;
  EXPECT_THAT(Message(bad), HasSubstr("does not parse"));
}

}  // namespace
}  // namespace fluxqueue::postgres
