#include "libs/postgres/table.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace fluxqueue::postgres {
namespace {

struct Key {
  std::string id;
};
struct Sample {
  Key key;
  int part = 0;
  std::string text;
};

Table<Sample> MakeTable(Conflict conflict, const char* when = nullptr) {
  return {"s.samples",
          {Shared("pool")},
          {Field<&Sample::key, &Key::id>("id").Key(),
           Field<&Sample::part>("part").Key(),
           Blob<&Sample::text>("text").As("left(r.text, 3)"),
           Field<&Sample::part>("first_part").Once(),
           Computed<Sample>("at", "now()")},
          conflict,
          when};
}

constexpr char kInsert[] =
    "INSERT INTO s.samples AS t (pool, id, part, text, first_part, at) "
    "SELECT $1, r.id, r.part, left(r.text, 3), r.first_part, now() "
    "FROM unnest($2::text[], $3::bigint[], $4::bytea[], $5::bigint[]) "
    "AS r(id, part, text, first_part)";

TEST(TableTest, ARowThatIsThereIsUpdated) {
  EXPECT_EQ(MakeTable(Conflict::kUpdate).write(),
            std::string(kInsert) +
                " ON CONFLICT (id, part) DO UPDATE SET pool = excluded.pool, text = excluded.text, "
                "at = excluded.at");
}

TEST(TableTest, OrOnlyWhereItMayBe) {
  EXPECT_EQ(MakeTable(Conflict::kUpdate, "t.at < excluded.at").write(),
            std::string(kInsert) +
                " ON CONFLICT (id, part) DO UPDATE SET pool = excluded.pool, text = excluded.text, "
                "at = excluded.at WHERE t.at < excluded.at");
}

TEST(TableTest, OrStays) {
  EXPECT_EQ(MakeTable(Conflict::kKeep).write(), std::string(kInsert) + " ON CONFLICT DO NOTHING");
}

TEST(TableTest, OrFails) {
  EXPECT_EQ(MakeTable(Conflict::kFail).write(), kInsert);
}

TEST(TableTest, RowsAreDeletedByTheirKeys) {
  EXPECT_EQ(MakeTable(Conflict::kUpdate).remove(),
            "DELETE FROM s.samples WHERE ctid = ANY(ARRAY(SELECT f.ctid "
            "FROM unnest($1::text[], $2::bigint[]) AS r(id, part) CROSS JOIN LATERAL "
            "(SELECT x.ctid FROM s.samples x WHERE x.id = r.id AND x.part = r.part OFFSET 0) f))");
}

TEST(TableTest, ASharedColumnMayBeOfTheKey) {
  const Table<Sample> table("s.samples",
                            {SharedKey("pool"), Shared("shard")},
                            {Field<&Sample::part>("part").Key(), Blob<&Sample::text>("text")});
  EXPECT_EQ(table.remove(),
            "DELETE FROM s.samples WHERE ctid = ANY(ARRAY(SELECT f.ctid "
            "FROM unnest($2::bigint[]) AS r(part) CROSS JOIN LATERAL "
            "(SELECT x.ctid FROM s.samples x WHERE x.pool = $1 AND x.part = r.part OFFSET 0) f))");
}

TEST(TableTest, WhatRowsHoldIsRead) {
  EXPECT_EQ(MakeTable(Conflict::kUpdate).Select("WHERE t.pool = $1"),
            "SELECT t.id, t.part, t.text, t.first_part FROM s.samples AS t WHERE t.pool = $1");
}

}  // namespace
}  // namespace fluxqueue::postgres
