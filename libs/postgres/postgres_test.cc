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
  EXPECT_EQ(code("42P06"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code("42P07"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code("23514"), absl::StatusCode::kInternal);
  EXPECT_EQ(code("40P01"), absl::StatusCode::kAborted);
  EXPECT_EQ(code("42P01"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code("42703"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code("42501"), absl::StatusCode::kUnavailable);
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

TEST(DsnTest, APasswordIsFoundInEveryForm) {
  for (const char* dsn : {"host=db password=y",
                          "host=db password = 'a b'",
                          "host=db sslkey=k sslpassword=y",
                          "postgresql://u:y@db/d",
                          "postgres://:y@db",
                          "postgres://u:p?w@db/d",
                          "postgresql://u@db/d?password=y",
                          "postgresql://u@db/d?%70assword=y",
                          "postgresql://u@db/d?sslpassword=y"}) {
    EXPECT_TRUE(HoldsPassword(dsn)) << dsn;
  }
  for (const char* dsn : {"host=db user=u passfile=/run/pgpass",
                          "host=db password=''",
                          "host=db password=${PASSWORD}",
                          "postgres://u:${PASSWORD}@db/d",
                          "${DSN}",
                          "postgresql://u@db:5432/d?passfile=/run/pgpass"}) {
    EXPECT_FALSE(HoldsPassword(dsn)) << dsn;
  }
  EXPECT_TRUE(HoldsPassword("host=db password=${A}and-more"));
}

TEST(DsnTest, AnotherMachineIsAskedForItsCertificate) {
  for (const char* dsn : {"host=db",
                          "postgresql://u@db:5432/d",
                          "host=127.0.0.1,db",
                          "host=localhost hostaddr=10.0.0.1"}) {
    EXPECT_EQ(TlsMode(dsn), "verify-full") << dsn;
    EXPECT_THAT(DsnToConnect(dsn, Millis(2000)), HasSubstr("sslmode=verify-full")) << dsn;
  }
  for (const char* dsn : {"dbname=d",
                          "host=127.0.0.1",
                          "postgresql://u@localhost/d",
                          "host=/run/postgresql",
                          "host=db hostaddr=::1"}) {
    EXPECT_EQ(TlsMode(dsn), "") << dsn;
    EXPECT_THAT(DsnToConnect(dsn, Millis(2000)), Not(HasSubstr("sslmode"))) << dsn;
  }
  EXPECT_EQ(TlsMode("host=db sslmode=require"), "require");
  EXPECT_EQ(TlsMode("postgresql://u@db/d?sslmode=disable"), "disable");
}

// Also one that has acknowledged all that it was sent.
TEST(DsnTest, AHostThatVanishesIsNoticed) {
  for (const char* dsn :
       {"host=db", "postgresql://u@db/d", "postgresql://u@db/d?sslmode=require"}) {
    const std::string connects = DsnToConnect(dsn, Millis(2000));
    EXPECT_THAT(connects, HasSubstr("tcp_user_timeout=15000")) << dsn;
    EXPECT_THAT(connects, HasSubstr("keepalives_idle=10")) << dsn;
    EXPECT_TRUE(CheckDsn(connects).ok()) << connects;
  }
}

TEST(DsnTest, TlsThatMayBeLeftOutIsRefused) {
  for (const char* dsn :
       {"host=db sslmode=prefer", "postgresql://u@db/d?sslmode=allow", "sslmode=prefer"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckDsn(dsn))) << dsn;
    Connection connection({.dsn = dsn, .application = "t", .schema = "s"});
    EXPECT_THAT(Message(connection.Query([](pqxx::transaction_base&) { return absl::OkStatus(); })),
                HasSubstr("goes on in plain text"));
  }
  EXPECT_TRUE(CheckDsn("host=db").ok());
  EXPECT_TRUE(CheckDsn("host=db sslmode=disable").ok());
}

TEST(DsnTest, WhatDoesNotParseIsNotRepeated) {
  Connection connection(
      {.dsn = "host=db password=correct horse", .application = "t", .schema = "s"});
  const absl::Status status =
      connection.Query([](pqxx::transaction_base&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), Not(HasSubstr("horse")));
}

// As psql takes it: what is written there may be a password, and is a database's name to libpq.
TEST(DsnTest, ADsnInPlaceOfADatabaseIsNotRepeated) {
  for (const char* dsn : {"host=127.0.0.1 port=1 dbname='host=db password=horse'",
                          "host=127.0.0.1 port=1 dbname=postgresql://u:horse@db/d",
                          "postgresql://u@127.0.0.1:1/host%3Ddb%20password%3Dhorse"}) {
    EXPECT_THAT(DescribeDsn(dsn), HasSubstr("dbname=(a DSN)")) << dsn;
    EXPECT_THAT(DescribeDsn(dsn), Not(HasSubstr("horse"))) << dsn;
    EXPECT_TRUE(HoldsPassword(dsn)) << dsn;
    EXPECT_TRUE(absl::IsInvalidArgument(CheckDsn(dsn))) << dsn;
    Connection connection({.dsn = dsn, .application = "t", .schema = "s"});
    const absl::Status status =
        connection.Query([](pqxx::transaction_base&) { return absl::OkStatus(); });
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), Not(HasSubstr("horse"))) << dsn;
  }
  EXPECT_FALSE(HoldsPassword("dbname='host=db user=u'"));
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
