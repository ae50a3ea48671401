#include "libs/verify/event_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::verify {
namespace {

using ::testing::HasSubstr;

TEST(EventLineTest, ThereAndBack) {
  EventLine line{3, 17, Millis(1'700'000'000'123), {"queue"}, {}};
  line.message.set_pool("p");
  line.message.set_sequence(uint64_t{1} << 63);
  line.message.mutable_job_submitted()->set_job_id("a \"b\" \n ü");
  line.message.mutable_job_submitted()->set_duration_ms(0);
  const std::string text = FormatEventLine(line);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  const auto back = ParseEventLine(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->partition, 3);
  EXPECT_EQ(back->offset, 17);
  EXPECT_EQ(back->time, line.time);
  EXPECT_EQ(back->buried, line.buried);
  EXPECT_EQ(back->message.SerializeAsString(), line.message.SerializeAsString());
  EXPECT_TRUE(back->message.job_submitted().has_duration_ms());
}

TEST(EventLineTest, Errors) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {Case{"{", "no JSON object"},
                        Case{"{}", "no JSON object with \"append_ms\""},
                        Case{R"({"append_ms":"x","envelope":{}})", "allowed are whole numbers"},
                        Case{R"({"append_ms":1,"envelope":{}})", "it has no event"},
                        Case{R"({"append_ms":1,"envelope":{"what":1}})", "envelope: "}}) {
    const auto line = ParseEventLine(c.text);
    ASSERT_FALSE(line.ok()) << c.text;
    EXPECT_THAT(Message(line.status()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace fluxqueue::verify
