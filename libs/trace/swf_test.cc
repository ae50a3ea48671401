#include "libs/trace/swf.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::trace {
namespace {

using ::testing::HasSubstr;

// job submit wait run used … asked …
std::string Line(const std::string& first_five, const std::string& asked = "-1") {
  return first_five + " -1 -1 " + asked + " -1 -1 1 1 1 -1 -1 -1 -1 -1\n";
}

TEST(SwfTest, ReadsJobsBySubmitTimeFromTheFirst) {
  const auto trace =
      ParseSwf("; Version: 2.2\n\n" + Line("  7  120 -1 30 4") + Line("8 100 5 2.5 1"), {"a.swf"});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::vector<TraceJob> expected = {
      {"swf-8", 0, 2.5, 1, {{"cpu", 1000}}, {}, -1, "1", "", 4},
      {"swf-7", 20, 30, 4, {{"cpu", 1000}}, {}, -1, "1", "", 3}};
  EXPECT_EQ(trace->jobs, expected);
}

TEST(SwfTest, ProcessorsAskedWhereThoseUsedAreUnknown) {
  const auto trace = ParseSwf(Line("1 0 -1 5 -1", "16"), {"a.swf"});
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->jobs.size(), 1);
  EXPECT_EQ(trace->jobs[0].slots, 16);
}

TEST(SwfTest, WhatWasAskedAndByWhom) {
  const auto trace = ParseSwf("1 0 -1 5 2 -1 -1 2 3600 -1 1 17 3 -1 4 -1 -1 -1\n", {"a.swf"});
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->jobs.size(), 1);
  EXPECT_EQ(trace->jobs[0].requested_s, 3600);
  EXPECT_EQ(trace->jobs[0].user, "17");
  EXPECT_EQ(trace->jobs[0].queue, "4");
}

TEST(SwfTest, JobsWithoutRunTimeOrProcessorsAreCounted) {
  const auto trace = ParseSwf(Line("1 0 -1 -1 4") + Line("2 0 -1 0 4") + Line("3 0 -1 9 0") +
                                  Line("4 0 -1 9 -1", "0") + Line("5 50 -1 9 1"),
                              {"a.swf"});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->without_run_time, 1);
  EXPECT_EQ(trace->without_processors, 2);
  ASSERT_EQ(trace->jobs.size(), 2);
  EXPECT_EQ(trace->jobs[0].run_s, 0) << "it ran for less than a second";
  EXPECT_EQ(trace->jobs[0].submit_s, 0);
}

TEST(SwfTest, TheLimitCountsThoseLeftOut) {
  const std::string text = Line("1 0 -1 -1 4") + Line("2 1 -1 3 4") + Line("3 2 -1 9 1");
  const auto trace = ParseSwf(text, {"a.swf", 2});
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->jobs.size(), 1);
  EXPECT_EQ(trace->jobs[0].name, "swf-2");
}

TEST(SwfTest, WindowsLineEndsAndNoLastLineEnd) {
  std::string text = Line("1 0 -1 3 1") + Line("2 0 -1 3 1");
  text.pop_back();
  text.insert(text.find('\n'), "\r");
  const auto trace = ParseSwf(text, {"a.swf"});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->jobs.size(), 2);
}

TEST(SwfTest, Errors) {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"1 2 3\n", "a.swf:1: it has 3 fields; a job in the Standard Workload Format has 18"},
      {"; c\n" + Line("x 0 -1 3 1"), "a.swf:2: field 1 (job) is \"x\": allowed is a whole number"},
      {Line("1 -1 -1 3 1"), "a.swf:1: field 2 (submit time) is \"-1\": allowed is seconds"},
      {Line("1 0 -1 nan 1"), "field 4 (run time) is \"nan\""},
      {Line("1 0 -1 -2 1"), "field 4 (run time) is \"-2\": allowed is seconds, a number from -1"},
      {Line("1 0 -1 3 1.5"), "field 5 (processors used) is \"1.5\""},
      {Line("1 0 -1 3 -1", "99999999"), "field 8 (processors asked) is \"99999999\""},
      {"1 0 -1 5 2 -1 -1 2 x -1 1 1 1 -1 -1 -1 -1 -1\n", "field 9 (time asked) is \"x\""},
      {"1 0 -1 5 2 -1 -1 2 -1 -1 1 -2 1 -1 -1 -1 -1 -1\n", "field 12 (user) is \"-2\""},
      {Line("1 0 -1 3 1") + Line("1 0 -1 3 1"), "a.swf:2: swf-1 is here for the second time"},
  };
  for (const Case& c : cases) {
    const auto trace = ParseSwf(c.text, {"a.swf"});
    ASSERT_FALSE(trace.ok()) << c.text;
    EXPECT_THAT(Message(trace.status()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace fluxqueue::trace
