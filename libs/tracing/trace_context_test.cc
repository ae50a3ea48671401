#include "libs/tracing/trace_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::tracing {
namespace {

constexpr const char* kJob = "0a1b2c3d-0000-4000-8000-00000000000f";

TEST(TraceContextTest, AJobIsATrace) {
  EXPECT_EQ(TraceId(kJob), "0a1b2c3d00004000800000000000000f");
  EXPECT_EQ(TraceId("job"), "");
  EXPECT_EQ(TraceId("0A1B2C3D-0000-4000-8000-00000000000F"), "");
  EXPECT_EQ(Traceparent("job"), "");
  EXPECT_THAT(Traceparent(kJob),
              ::testing::MatchesRegex("00-0a1b2c3d00004000800000000000000f-[0-9a-f]{16}-01"));
  EXPECT_THAT(Traceparent(kJob), ::testing::HasSubstr(SpanId(kJob, 0, kJobSpan)));
}

TEST(TraceContextTest, ReadsWhatOthersSay) {
  const std::string trace(32, 'a');
  const std::string span(16, 'b');
  const Context both{trace, span};
  EXPECT_EQ(ParseTraceparent("00-" + trace + "-" + span + "-01"), both);
  EXPECT_EQ(ParseTraceparent("01-" + trace + "-" + span + "-01-more"), both);
  EXPECT_EQ(ParseTraceparent(Format(both)), both);
  for (const std::string& bad : {std::string(),
                                 "00-" + trace + "-" + span + "-00",
                                 "00-" + trace + "-" + span,
                                 "00-" + trace + "-" + span + "-01more",
                                 "00-" + std::string(32, '0') + "-" + span + "-01",
                                 "00-" + std::string(32, 'g') + "-" + span + "-01",
                                 "00-" + trace + "-" + std::string(16, '0') + "-01"}) {
    EXPECT_EQ(ParseTraceparent(bad), std::nullopt) << bad;
  }
}

TEST(TraceContextTest, SpansAreToldApart) {
  const std::string bind = SpanId(kJob, 1, "bind");
  EXPECT_EQ(bind, SpanId(kJob, 1, "bind"));
  EXPECT_NE(bind, SpanId(kJob, 2, "bind"));
  EXPECT_NE(bind, SpanId(kJob, 1, "start"));
  EXPECT_NE(bind, SpanId("0a1b2c3d-0000-4000-8000-000000000010", 1, "bind"));
}

}  // namespace
}  // namespace fluxqueue::tracing
