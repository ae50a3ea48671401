#include "libs/graph/find_criteria.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

using ::testing::HasSubstr;

const Labels kProperties = {{"ssd", ""}};
const std::set<uint64_t> kAllocations = {1};
const std::set<uint64_t> kReservations = {2};
const std::set<uint64_t> kPassing = {1, 2};

FindSubject Subject() {
  return {.name = "node7",
          .sums_up = true,
          .properties = kProperties,
          .allocations = kAllocations,
          .reservations = kReservations,
          .passing = kPassing};
}

bool Matches(const std::string& text, const FindSubject& subject) {
  const auto criteria = FindCriteria::Parse(text);
  EXPECT_TRUE(criteria.ok()) << text << ": " << criteria.status();
  return criteria.ok() && criteria->Matches(subject);
}

TEST(FindCriteria, Terms) {
  FindSubject subject = Subject();
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
  EXPECT_TRUE(Matches("jobid-span=2", subject));
  subject.sums_up = false;
  EXPECT_FALSE(Matches("jobid-span=2", subject));
  EXPECT_TRUE(Matches("names=node[0-9]", subject));
  EXPECT_FALSE(Matches("names=node[0-6]", subject));
  EXPECT_TRUE(Matches("property=ssd", subject));
}

TEST(FindCriteria, JoinsFromLeftToRight) {
  FindSubject subject = Subject();
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
      {"names=a[1-60000] or names=b[1-60000]", "names=\"b[1-60000]\": more than 5536 hosts"},
      {std::string(size_t{1} << 21, ' '), "have 2097152 bytes, at most 1048576 are allowed"},
  };
  for (const auto& [text, error] : cases) {
    EXPECT_THAT(Message(FindCriteria::Parse(text).status()), HasSubstr(error)) << text;
  }
}

TEST(FindCriteria, LongValuesDoNotMakeLongMessages) {
  const auto criteria = FindCriteria::Parse("colour=red or " + std::string(10'000, 'x') + "=1");
  EXPECT_LT(Message(criteria.status()).size(), 600u);
}

}  // namespace
}  // namespace fluxqueue::graph
