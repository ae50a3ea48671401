#include "libs/graph/find_criteria.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

using ::testing::HasSubstr;

struct FakeSubject final : FindSubject {
  bool down = false;
  bool allocated = false;
  bool reserved = false;

  bool IsDown() const override { return down; }
  bool IsAllocated() const override { return allocated; }
  bool IsReserved() const override { return reserved; }
  bool HeldBy(uint64_t job) const override { return job == 1; }
  bool ReservedBy(uint64_t job) const override { return job == 2; }
  bool PassedBy(uint64_t job) const override { return job <= 2; }
  bool SummedUpFor(uint64_t job) const override { return job == 3; }
  std::string_view Name() const override { return "node7"; }
  bool HasProperty(std::string_view key) const override { return key == "ssd"; }
};

bool Matches(const std::string& text, const FakeSubject& subject) {
  const auto criteria = FindCriteria::Parse(text);
  EXPECT_TRUE(criteria.ok()) << text << ": " << criteria.status();
  return criteria.ok() && criteria->Matches(subject);
}

TEST(FindCriteria, Terms) {
  FakeSubject subject;
  subject.down = true;
  subject.allocated = true;
  EXPECT_TRUE(Matches("status=down", subject));
  EXPECT_TRUE(Matches("status=DOWN", subject));
  EXPECT_FALSE(Matches("status=up", subject));
  EXPECT_TRUE(Matches("sched-now=allocated", subject));
  EXPECT_FALSE(Matches("sched-now=free", subject));
  EXPECT_TRUE(Matches("sched-future=free", subject));
  EXPECT_TRUE(Matches("jobid-alloc=1", subject));
  EXPECT_FALSE(Matches("jobid-alloc=2", subject));
  EXPECT_TRUE(Matches("jobid-reserved=2", subject));
  EXPECT_TRUE(Matches("jobid-tag=2", subject));
  EXPECT_TRUE(Matches("jobid-span=3", subject));
  EXPECT_TRUE(Matches("names=node[0-9]", subject));
  EXPECT_FALSE(Matches("names=node[0-6]", subject));
  EXPECT_TRUE(Matches("property=ssd", subject));
}

TEST(FindCriteria, JoinsFromLeftToRight) {
  FakeSubject subject;
  subject.allocated = true;
  EXPECT_TRUE(Matches("status=up and sched-now=allocated", subject));
  EXPECT_TRUE(Matches("status=up sched-now=allocated", subject));
  EXPECT_FALSE(Matches("status=up and status=down", subject));
  EXPECT_TRUE(Matches("status=down or sched-now=allocated", subject));
  // (up or down) and down, not up or (down and down).
  EXPECT_FALSE(Matches("status=up or status=down and status=down", subject));
  EXPECT_TRUE(Matches("status=up or (status=down and status=down)", subject));
  EXPECT_TRUE(
      Matches("  ( status=up )  and(sched-now=allocated or sched-future=reserved) ", subject));
}

TEST(FindCriteria, RefusesAndSaysWhatIsKnown) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "a term is missing"},
      {"()", "a term is missing"},
      {"status=up and ", "a term is missing"},
      {"status", "must be key=value"},
      {"status=sideways", "status must be down or up, is \"sideways\""},
      {"colour=red", "\"colour\" is unknown or empty; known are status"},
      {"property=", "unknown or empty"},
      {"jobid-alloc=x", "must be a job's number, is \"x\""},
      {"names=node[1", "names=\"node[1\""},
      {"(status=up", "\"(\" without a \")\""},
      {"status=up)", "\")\" without a \"(\""},
      {std::string(1000, '('), "nested deeper than 64"},
  };
  for (const auto& [text, error] : cases) {
    EXPECT_THAT(Message(FindCriteria::Parse(text).status()), HasSubstr(error)) << text;
  }
}

}  // namespace
}  // namespace fluxqueue::graph
