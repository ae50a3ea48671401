#include "libs/graph/timeline.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::graph {
namespace {

TEST(Timeline, IsAStepFunction) {
  Timeline timeline(10);
  timeline.Hold(5, 10, 4);
  timeline.Hold(10, 10, 3);
  EXPECT_EQ(timeline.FreeAt(0), 10);
  EXPECT_EQ(timeline.FreeAt(5), 6);
  EXPECT_EQ(timeline.FreeAt(12), 3);
  EXPECT_EQ(timeline.FreeAt(15), 7);
  EXPECT_EQ(timeline.FreeAt(20), 10);
  EXPECT_EQ(timeline.FreeDuring(0, 5), 10);
  EXPECT_EQ(timeline.FreeDuring(0, 6), 6);
  EXPECT_EQ(timeline.FreeDuring(0, 100), 3);
  EXPECT_EQ(timeline.FreeDuring(15, 5), 7);
}

TEST(Timeline, PointsAreWhereSpansBeginAndEnd) {
  Timeline timeline(1);
  EXPECT_FALSE(timeline.HasSpans());
  timeline.Hold(0, 7, 1);
  timeline.Hold(7, 3, 1);
  EXPECT_TRUE(timeline.HasSpans());
  EXPECT_EQ(timeline.PointAfter(0), 7);
  EXPECT_EQ(timeline.PointAfter(7), 10);
  EXPECT_EQ(timeline.PointAfter(10), std::nullopt);
  timeline.Release(0, 7, 1);
  EXPECT_EQ(timeline.PointAfter(0), 7);  // the other span begins there
  timeline.Release(7, 3, 1);
  EXPECT_EQ(timeline, Timeline(1));
}

TEST(Timeline, GrowsAtAllTimes) {
  Timeline timeline(2);
  timeline.Hold(5, 5, 2);
  timeline.Grow(3);
  EXPECT_EQ(timeline.total(), 5);
  EXPECT_EQ(timeline.FreeAt(0), 5);
  EXPECT_EQ(timeline.FreeAt(5), 3);
  timeline.Grow(-4);
  EXPECT_EQ(timeline.FreeAt(5), -1);
  timeline.Release(5, 5, 2);
  EXPECT_EQ(timeline, Timeline(1));
}

TEST(Timeline, ReachesTheEndOfTime) {
  Timeline timeline(2);
  timeline.Hold(1, Timeline::kEnd - 1, 2);
  EXPECT_EQ(timeline.FreeAt(Timeline::kEnd - 1), 0);
  EXPECT_EQ(timeline.FreeDuring(Timeline::kEnd - 11, 10), 0);
}

// Time by time; nothing beyond the array is asked for.
std::optional<int64_t> FirstIn(const std::vector<int64_t>& array,
                               int64_t at,
                               int64_t duration,
                               int64_t amount) {
  for (; at + duration <= std::ssize(array); ++at) {
    const auto first = array.begin() + at;
    if (*std::min_element(first, first + duration) >= amount) return at;
  }
  return std::nullopt;
}

struct Span {
  int64_t at;
  int64_t duration;
  int64_t amount;
};

rc::Gen<Span> AnySpan() {
  return rc::gen::map(rc::gen::tuple(rc::gen::inRange<int64_t>(0, 40),
                                     rc::gen::inRange<int64_t>(1, 20),
                                     rc::gen::inRange<int64_t>(0, 5)),
                      [](const auto& span) {
                        return Span{std::get<0>(span), std::get<1>(span), std::get<2>(span)};
                      });
}

RC_GTEST_PROP(TimelineProperty, EqualsAnArray, ()) {
  const auto spans = *rc::gen::container<std::vector<Span>>(AnySpan());
  Timeline timeline(100);
  std::vector<int64_t> array(120, 100);
  for (const Span& span : spans) {
    timeline.Hold(span.at, span.duration, span.amount);
    for (int64_t t = span.at; t < span.at + span.duration; ++t) array[t] -= span.amount;
  }
  const auto at = *rc::gen::inRange<int64_t>(0, 40);
  const auto duration = *rc::gen::inRange<int64_t>(1, 40);
  RC_ASSERT(timeline.FreeAt(at) == array[at]);
  RC_ASSERT(timeline.FreeDuring(at, duration) ==
            *std::min_element(array.begin() + at, array.begin() + at + duration));
  const auto amount = *rc::gen::inRange<int64_t>(60, 101);
  // Behind the last span all is free.
  RC_ASSERT(timeline.FirstFrom(at, duration, amount) == FirstIn(array, at, duration, amount));
  RC_ASSERT(timeline.FirstFrom(at, duration, 101) == std::nullopt);
  for (const Span& span : spans) timeline.Release(span.at, span.duration, span.amount);
  RC_ASSERT(timeline == Timeline(100));
}

// So many points that they stand in several runs.
RC_GTEST_PROP(TimelineProperty, EqualsAnArrayWithManyPoints, ()) {
  constexpr int64_t kTimes = 3000;
  Timeline timeline(1000);
  std::vector<int64_t> array(kTimes + 500, 1000);
  std::vector<Span> spans;
  for (int i = 0; i < 600; ++i) {
    const Span span{*rc::gen::inRange<int64_t>(0, kTimes),
                    *rc::gen::inRange<int64_t>(1, 200),
                    *rc::gen::inRange<int64_t>(0, 5)};
    timeline.Hold(span.at, span.duration, span.amount);
    for (int64_t t = span.at; t < span.at + span.duration; ++t) array[t] -= span.amount;
    spans.push_back(span);
    if (*rc::gen::inRange(0, 3) != 0) continue;
    const size_t gone = *rc::gen::inRange<size_t>(0, spans.size());
    const Span old = spans[gone];
    timeline.Release(old.at, old.duration, old.amount);
    for (int64_t t = old.at; t < old.at + old.duration; ++t) array[t] += old.amount;
    spans.erase(spans.begin() + static_cast<ptrdiff_t>(gone));
  }
  for (int i = 0; i < 50; ++i) {
    const auto at = *rc::gen::inRange<int64_t>(0, kTimes);
    const auto duration = *rc::gen::inRange<int64_t>(1, 200);
    RC_ASSERT(timeline.FreeAt(at) == array[at]);
    RC_ASSERT(timeline.FreeDuring(at, duration) ==
              *std::min_element(array.begin() + at, array.begin() + at + duration));
    const auto amount = *rc::gen::inRange<int64_t>(850, 1001);
    RC_ASSERT(timeline.FirstFrom(at, duration, amount) == FirstIn(array, at, duration, amount));
    const auto next = timeline.PointAfter(at);
    for (int64_t t = at + 1; t < next.value_or(kTimes + 200); ++t) RC_ASSERT(array[t] == array[at]);
  }
  for (const Span& span : spans) timeline.Release(span.at, span.duration, span.amount);
  RC_ASSERT(timeline == Timeline(1000));
}

}  // namespace
}  // namespace fluxqueue::graph
