#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/base/backoff.h"
#include "libs/base/check.h"
#include "libs/base/clock.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/base/strong_type.h"
#include "libs/base/text.h"
#include "libs/base/threads.h"
#include "libs/base/utf8.h"

namespace fluxqueue {
namespace {

TEST(BackoffTest, DoublesUpToTheMaximum) {
  EXPECT_EQ(BackoffDelay(Millis(100), Millis(1000), 1), Millis(100));
  EXPECT_EQ(BackoffDelay(Millis(100), Millis(1000), 3), Millis(400));
  EXPECT_EQ(BackoffDelay(Millis(100), Millis(1000), 60), Millis(1000));
}

TEST(BackoffTest, SpreadStaysWithinAFifth) {
  Backoff backoff(Millis(100), Millis(100), 7);
  for (int i = 0; i < 100; ++i) {
    const Millis delay = backoff.Next();
    EXPECT_GE(delay, Millis(80));
    EXPECT_LE(delay, Millis(120));
  }
}

std::string Logged(LogFormat format, std::string_view event, std::string_view value) {
  InitLog("test", LogLevel::kInfo, format);
  ::testing::internal::CaptureStderr();
  LogInfo(event, {{"name", value}});
  std::string line = ::testing::internal::GetCapturedStderr();
  InitLog("test", LogLevel::kInfo, LogFormat::kText);
  return line;
}

TEST(LogTest, IsOneLineWhateverIsTold) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line =
        Logged(format, "one\ntwo", "x\n2026-01-31T12:00:00.000Z INFO  queue | forged \"\x1b[2J");
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
    EXPECT_NE(line.find(R"(forged \")"), std::string::npos) << line;
    EXPECT_LT(Logged(format, "event", std::string(1'000'000, 'x')).size(), 4'200U);
    EXPECT_LT(Logged(format, std::string(1'000'000, 'x'), "v").size(), 4'200U);
  }
  EXPECT_NE(Logged(LogFormat::kText, "event", "plain").find("| event name=plain\n"),
            std::string::npos);
}

TEST(ClockTest, FormatsMilliseconds) {
  EXPECT_EQ(FormatTime(Millis(1769860800123)), "2026-01-31T12:00:00.123Z");
  EXPECT_EQ(FormatTime(Millis(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatTime(Millis(-1)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatSeconds(Millis(1769860800999)), "2026-01-31T12:00:00Z");
}

TEST(ClockTest, FormatsNoTimeThatNobodyReads) {
  constexpr int64_t kYear = 365 * int64_t{86'400'000};
  EXPECT_EQ(FormatTime(Millis(8'000 * kYear)).size(),
            std::string("2026-01-31T12:00:00.000Z").size());
  for (const int64_t late : {9'000 * kYear, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(FormatTime(Millis(late)), "9999-12-31T23:59:59.999Z");
    EXPECT_EQ(FormatSeconds(Millis(late)), "9999-12-31T23:59:59Z");
  }
  for (const int64_t early : {-3'000 * kYear, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(FormatTime(Millis(early)), "0001-01-01T00:00:00.000Z");
  }
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgument("{} is odd", n);
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  return Half(half);
}

TEST(ThreadsTest, StopsAndIsStopped) {
  RealThreads threads;
  std::atomic<int> ended = 0;
  const Threads::Body body = [&](const std::stop_token& stop) {
    Pause(RealClock(), std::chrono::minutes(1), stop);
    ++ended;
  };
  const std::unique_ptr<Thread> stopped = threads.Start(body);
  stopped->RequestStop();
  stopped->Stop();
  stopped->Stop();
  EXPECT_EQ(ended, 1);
  threads.Start(body).reset();
  EXPECT_EQ(ended, 2);
}

TEST(StatusTest, MacrosPropagate) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Message(Annotate(Quarter(6).status(), "quarter")), "quarter: 3 is odd");
  EXPECT_TRUE(IsPoison(Quarter(6).status()));
  EXPECT_FALSE(IsTransient(Quarter(6).status()));
}

TEST(TextTest, PlainIsUtf8WithoutControlCharacters) {
  EXPECT_TRUE(IsPlain("", 0));
  EXPECT_TRUE(IsPlain("a b-ü…", 100));
  EXPECT_FALSE(IsPlain("abc", 2));
  EXPECT_FALSE(IsPlain(std::string_view("a\0b", 3), 100));
  for (const char* text : {"a\n", "\x7f", "\xff", "\xc3", "\xed\xa0\x80"}) {
    EXPECT_FALSE(IsPlain(text, 100)) << text;
  }
  for (const char* text : {"\u00a0", "\u2029", "\u202f", "\u2065", "\u206a", "\U0001F600"}) {
    EXPECT_TRUE(IsPlain(text, 100)) << text;
  }
  // What commands a terminal, or turns what it shows.
  for (const char* text :
       {"\x1b[2J", "\u0080", "\u009b2J", "\u009f", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    EXPECT_FALSE(IsPlain(text, 100)) << text;
    EXPECT_EQ(Clean(text, 100).substr(0, 3), "\uFFFD") << text;
  }
}

TEST(TextTest, UidsAreWhatTheApiServerMakes) {
  EXPECT_TRUE(IsUid("0190f3e2-6c0e-7e0a-8b2d-0123456789ab"));
  EXPECT_TRUE(IsUid(std::string(63, 'a')));
  for (const std::string& text : {std::string(),
                                  std::string(64, 'a'),
                                  std::string("a\0", 2),
                                  std::string("../pods"),
                                  std::string("ü")}) {
    EXPECT_FALSE(IsUid(text)) << text;
  }
}

TEST(TextTest, IsCutBetweenCharacters) {
  EXPECT_EQ(Cut("abc", 3), "abc");
  EXPECT_EQ(Cut("abcd", 3), "…");
  EXPECT_EQ(Cut("äöüäöü", 9), "äöü…");
  EXPECT_EQ(Cut("äöüäöü", 8), "äö…");
}

TEST(TextTest, CleanIsUtf8OfThatLength) {
  EXPECT_EQ(Clean("a\nb\tü", 10), "a\nb\tü");
  EXPECT_EQ(Clean(std::string_view("a\0b\x01\xff", 5), 20), "a\uFFFDb\uFFFD\uFFFD");
  EXPECT_EQ(Clean(std::string(10'000, '\xff'), 10), "\uFFFD\uFFFD…");
}

RC_GTEST_PROP(TextTest, WhateverComesIsMadeText, (const std::string& text)) {
  for (const size_t most : {3, 4, 10, 1000}) {
    const std::string clean = Clean(text, most);
    RC_ASSERT(clean.size() <= most);
    for (size_t at = 0; at < clean.size();) {
      const size_t length = Utf8Length(clean, at);
      RC_ASSERT(length > 0u);
      RC_ASSERT(clean[at] != '\0');
      at += length;
    }
  }
}

TEST(StrongTypeTest, PrintsAndOrders) {
  using Name = StrongString<struct NameTag>;
  EXPECT_EQ(fmt::format("{}", Name("a")), "a");
  EXPECT_LT(Name("a"), Name("b"));
}

TEST(CheckDeathTest, NamesTheCondition) {
  EXPECT_DEATH(CHECK(1 > 2, "got {}", 3), "CHECK\\(1 > 2\\) failed: got 3");
}

}  // namespace
}  // namespace fluxqueue
