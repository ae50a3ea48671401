#include "libs/verify/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::verify {
namespace {

using ::testing::HasSubstr;

std::string Record(const std::string& pool) {
  EventLine line{3, 17, Millis(1'700'000'000'123), {}, {}};
  line.message.set_pool(pool);
  line.message.mutable_tick();
  std::string text = FormatEventLine(line);
  text.pop_back();
  return text;
}

TEST(EventFileTest, SaysWhatItIs) {
  std::string header = FormatEventFileHeader({.build = "1.4 \"x\"",
                                              .rules = 14,
                                              .pool = "default",
                                              .whole = false,
                                              .archived = true,
                                              .from = {.log = 3},
                                              .to = {.log = 9, .facts = {{0, 4}, {11, 7}}}});
  ASSERT_EQ(header.back(), '\n');
  header.pop_back();
  EventFileReader reader("log");
  const auto first = reader.Read(header);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->has_value());
  EXPECT_EQ(reader.header().version, kEventFileVersion);
  EXPECT_EQ(reader.header().build, "1.4 \"x\"");
  EXPECT_EQ(reader.header().rules, 14U);
  EXPECT_EQ(reader.header().pool, "default");
  EXPECT_FALSE(reader.header().whole);
  EXPECT_EQ(reader.header().from, EventReach{.log = 3});
  EXPECT_EQ(reader.header().to, (EventReach{.log = 9, .facts = {{0, 4}, {11, 7}}}));
  const auto second = reader.Read(Record("default"));
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(second->has_value());
  EXPECT_EQ((*second)->offset, 17);
}

TEST(EventFileTest, OfEarlierReleasesItHasNoHeader) {
  EventFileReader reader("log");
  ASSERT_TRUE(reader.Read(Record("p")).ok());
  EXPECT_EQ(reader.header().version, 0);
  EXPECT_EQ(reader.header().pool, "p");
  EXPECT_TRUE(reader.header().whole);
}

TEST(EventFileTest, Errors) {
  EventFileReader newer("log");
  EXPECT_THAT(Message(newer.Read(R"({"fluxqueue_events":9,"build":"7.0"})").status()),
              HasSubstr("log: a file of version 9, which release 7.0 wrote"));
  EventFileReader mixed("log");
  ASSERT_TRUE(mixed.Read(Record("p")).ok());
  EXPECT_THAT(Message(mixed.Read(Record("q")).status()),
              HasSubstr("log:2: a record of pool q after those of pool p"));
  EXPECT_THAT(Message(mixed.Read("x").status()), HasSubstr("log:3: "));
}

}  // namespace
}  // namespace fluxqueue::verify
