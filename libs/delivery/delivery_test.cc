// The pure parts of the delivery loop. The loops themselves: delivery_integration_test.cc.
#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/delivery/incarnation.h"
#include "libs/delivery/outbox_tracker.h"
#include "libs/delivery/pacer.h"
#include "libs/delivery/progress.h"
#include "libs/delivery/stamper.h"
#include "libs/delivery/stream_filter.h"
#include "libs/delivery/wire.h"

namespace fluxqueue::delivery {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using Verdict = StreamFilter::Verdict;

TEST(WireTest, ALetterHasNoHeadersOfOursThatAStrangerWrote) {
  DeadLetter letter{.source = 0, .reason = "why", .topic = "pool", .message = {}};
  letter.message.offset = 7;
  letter.message.key = "k";
  letter.message.value = "v";
  letter.message.headers = {{"ce_id", "a/0/0/1"},
                            {"fluxqueue_unproven", ""},
                            {"fluxqueue_topic", "other"},
                            {"fluxqueue_answer", "dropped"},
                            {"fluxqueue_proof", "p"}};
  letter.unproven = true;
  const kafka::Headers want = {{"ce_id", "a/0/0/1"},
                               {"fluxqueue_proof", "p"},
                               {"fluxqueue_reason", "why"},
                               {"fluxqueue_service", "queue"},
                               {"fluxqueue_topic", "pool"},
                               {"fluxqueue_partition", "0"},
                               {"fluxqueue_offset", "7"},
                               {"fluxqueue_unproven", "true"}};
  EXPECT_EQ(MakeRecord(letter, "queue").headers, want);
}

TEST(WireTest, ALetterIsNoLargerThanARecordMayBe) {
  DeadLetter letter{.source = 0, .reason = "why", .topic = "pool", .message = {}};
  letter.message.key = std::string(1000, 'k');
  letter.message.headers = {{"large", std::string(kafka::kMaxValueBytes, 'h')}, {"ce_id", "i"}};
  letter.message.value = "v";
  const WireRecord cut = MakeRecord(letter, "queue");
  EXPECT_EQ(cut.key.size(), 256);
  EXPECT_EQ(cut.headers[0], (std::pair<std::string, std::string>("ce_id", "i")));
  letter.message.headers.clear();
  letter.message.value = std::string(kafka::kMaxValueBytes, 'v');
  EXPECT_EQ(MakeRecord(letter, "queue").value.size(), 1024);
  letter.message.value.resize(kafka::kMaxValueBytes - 2000);
  EXPECT_EQ(MakeRecord(letter, "queue").value.size(), kafka::kMaxValueBytes - 2000);
  letter.unproven = true;
  EXPECT_EQ(MakeRecord(letter, "queue").value.size(), 1024);
}

TEST(StreamFilterTest, TakesEachSequenceOnce) {
  StreamFilter filter({}, /*truncated=*/false);
  EXPECT_EQ(filter.Judge("a/1", 1), Verdict::kTake);
  EXPECT_EQ(filter.Judge("a/1", 1), Verdict::kDuplicate);
  EXPECT_EQ(filter.Judge("a/1", 3), Verdict::kGap);
  EXPECT_EQ(filter.Judge("a/1", 2), Verdict::kTake);
  EXPECT_EQ(filter.Judge("a/2", 1), Verdict::kTake);
  EXPECT_THAT(filter.unsaved(), ::testing::UnorderedElementsAre(Pair("a/1", 2), Pair("a/2", 1)));
}

TEST(StreamFilterTest, AGapDoesNotRaise) {
  StreamFilter filter({{"a", 5}}, false);
  EXPECT_EQ(filter.Judge("a", 9), Verdict::kGap);
  EXPECT_EQ(filter.Judge("a", 6), Verdict::kTake);
}

TEST(StreamFilterTest, ANewStreamBeginsAtOneUnlessTheLogWasCut) {
  EXPECT_EQ(StreamFilter({}, false).Judge("a", 7), Verdict::kGap);
  StreamFilter cut({}, true);
  EXPECT_EQ(cut.Judge("a", 7), Verdict::kTake);
  EXPECT_EQ(cut.Judge("a", 9), Verdict::kGap);
}

// Its owner would repeat what was not acknowledged, from the first on: what is missing is lost.
TEST(StreamFilterTest, BehindAGapOfAnOwnersStreamItGoesOn) {
  const std::string stream = WithIncarnation("queue/3", 1);
  StreamFilter filter({{stream, 5}}, false);
  EXPECT_EQ(filter.Judge(stream, 9), Verdict::kTakeBehindGap);
  EXPECT_EQ(filter.Judge(stream, 5), Verdict::kDuplicate);
  EXPECT_EQ(filter.Judge(stream, 10), Verdict::kTake);
  EXPECT_EQ(filter.unsaved().at(stream).GapsText(), "6-8");
  // It comes after all.
  EXPECT_EQ(filter.Judge(stream, 7), Verdict::kTake);
  EXPECT_EQ(filter.unsaved().at(stream).GapsText(), "6-6 8-8");
  EXPECT_EQ(filter.Judge(stream, 7), Verdict::kDuplicate);
  EXPECT_EQ(filter.Judge(stream, 8), Verdict::kTake);
  EXPECT_EQ(filter.unsaved().at(stream), StreamPosition::Parse(10, "6-6"));
  filter.Rollback();
  EXPECT_EQ(filter.Judge(stream, 6), Verdict::kTake) << "the batch is handled again";
  EXPECT_EQ(filter.Judge(WithIncarnation("queue/3", 2), 2), Verdict::kTakeBehindGap);
  EXPECT_EQ(filter.Judge(WithIncarnation("queue/3", 3), 1), Verdict::kTake);
}

TEST(StreamFilterTest, OfManyGapsTheLastAreKept) {
  const std::string stream = WithIncarnation("queue/3", 1);
  StreamFilter filter({}, false);
  for (uint64_t i = 1; i <= StreamPosition::kMostGaps + 2; ++i) filter.Judge(stream, 2 * i);
  EXPECT_EQ(filter.Judge(stream, 1), Verdict::kDuplicate);
  EXPECT_EQ(filter.Judge(stream, 5), Verdict::kTake);
  EXPECT_EQ(StreamPosition::Parse(9, "x 3-4 7").GapsText(), "3-4");
}

TEST(IncarnationTest, IsPartOfAStreamsName) {
  EXPECT_EQ(WithIncarnation("queue/3", 0x5c21), "queue/3.0000000000005c21");
  EXPECT_EQ(BaseOf("queue/3.0000000000005c21"), "queue/3");
  EXPECT_EQ(BaseOf("queue/3"), "queue/3");
  EXPECT_FALSE(HasIncarnation("cleanup/watch"));
  const int64_t one = NewIncarnation();
  EXPECT_GT(one, 0);
  EXPECT_NE(one, NewIncarnation());
}

TEST(StreamFilterTest, RollbackForgetsTheBatch) {
  StreamFilter filter({{"a", 1}}, false);
  EXPECT_EQ(filter.Judge("a", 2), Verdict::kTake);
  filter.Rollback();
  EXPECT_EQ(filter.Judge("a", 2), Verdict::kTake);
  filter.Commit();
  EXPECT_EQ(filter.Judge("a", 2), Verdict::kDuplicate);
  EXPECT_TRUE(filter.unsaved().empty());
}

// Whatever a publisher repeats, in prefixes from any point not beyond what was acknowledged: each
// once, in order.
RC_GTEST_PROP(StreamFilterTest, RepetitionsChangeNothing, ()) {
  StreamFilter filter({}, false);
  uint64_t next = 1;
  for (int round = 0; round < 20; ++round) {
    const uint64_t from = *rc::gen::inRange<uint64_t>(1, next + 1);
    const uint64_t to = from + *rc::gen::inRange<uint64_t>(0, 5);
    for (uint64_t sequence = from; sequence < to; ++sequence) {
      const bool take = filter.Judge("s", sequence) == Verdict::kTake;
      RC_ASSERT(take == (sequence == next));
      if (take) ++next;
    }
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        filter.Keep();
        break;
      case 1:
        filter.Commit();
        break;
      default:
        break;
    }
  }
}

TEST(StreamFilterTest, WhatIsKeptIsSavedLater) {
  StreamFilter filter({{"a", 1}}, false);
  EXPECT_EQ(filter.Judge("a", 2), Verdict::kTake);
  filter.Keep();
  EXPECT_EQ(filter.Judge("a", 3), Verdict::kTake);
  filter.Rollback();
  EXPECT_EQ(filter.Judge("a", 2), Verdict::kDuplicate);
  EXPECT_THAT(filter.unsaved(), ::testing::UnorderedElementsAre(Pair("a", 2)));
  filter.Commit();
  EXPECT_TRUE(filter.unsaved().empty());
}

constexpr double kIdle = 0.2;
constexpr double kFull = 1;

// Of 5 ms each, by a loop that always has something to commit.
int CommitsWithin(std::chrono::seconds time, double busy) {
  Pacer pacer;
  Pacer::TimePoint now = Pacer::TimePoint(1h);
  const Pacer::TimePoint begun = now;
  int commits = 0;
  for (; now < begun + time; ++commits) {
    now = std::max(now, pacer.NextAt()) + 5ms;
    pacer.Committed(now, 5ms, busy);
  }
  return commits;
}

TEST(PacerTest, AnIdleLoopDoesNotWait) {
  Pacer pacer;
  Pacer::TimePoint now = Pacer::TimePoint(1h);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(pacer.NextAt(), now);
    pacer.Committed(now, 5ms, kFull);
    now += 220ms;
  }
}

TEST(PacerTest, ABusyLoopCommitsLessWhereOthersNeedTheProcessors) {
  // A fourth of the time, a fortieth, and what the credit pays for.
  EXPECT_NEAR(CommitsWithin(20s, kIdle), 1000 + 50, 5);
  EXPECT_NEAR(CommitsWithin(20s, kFull), 100 + 5, 2);
  const int between = CommitsWithin(20s, (Pacer::kIdleBelow + Pacer::kFullFrom) / 2);
  EXPECT_NEAR(between, 20s / 110ms + 9, 3) << "a 22nd of it";
}

TEST(PacerTest, NoCommitIsPutOffForLong) {
  Pacer pacer;
  Pacer::TimePoint now = Pacer::TimePoint(1h);
  for (int i = 0; i < 20; ++i) {
    now = std::max(now, pacer.NextAt()) + 2s;
    pacer.Committed(now, 2s, kFull);
    EXPECT_EQ(pacer.NextAt(), now + Pacer::kLongest);
  }
  EXPECT_LE(pacer.NextAt(), now + 1s);
}

TEST(ProgressTest, WhoDoesNotGetOnHangs) {
  FakeClock clock;
  Progress progress(clock, Millis(60'000));
  clock.Advance(Millis(600'000));
  EXPECT_TRUE(progress.Check().ok()) << "it has not begun";
  progress.Step();
  clock.Advance(Millis(60'000));
  EXPECT_TRUE(progress.Check().ok());
  clock.Advance(Millis(12'000));
  EXPECT_EQ(Message(progress.Check()), "has not got on for 72 s: it hangs");
  progress.Step();
  EXPECT_TRUE(progress.Check().ok());
}

OutboxRow Row(const std::string& stream, int partition, uint64_t last_seq, size_t count) {
  OutboxRow row{stream, {"t", partition}, last_seq, {}};
  for (size_t i = 0; i < count; ++i) {
    row.records.push_back({"k", fmt::format("{}/{}", stream, last_seq - count + 1 + i), {}});
  }
  return row;
}

// Hands over all there is: (row, value).
std::vector<std::pair<uint64_t, std::string>> HandOver(OutboxTracker& tracker) {
  std::vector<std::pair<uint64_t, std::string>> items;
  while (const auto item = tracker.Next()) {
    items.emplace_back(item->row, item->record.value);
    tracker.Advance();
  }
  return items;
}

TEST(OutboxTrackerTest, HandsOverInOrderAndOnce) {
  OutboxTracker tracker;
  tracker.Add(Row("a", 0, 2, 2));
  tracker.Add(Row("b", 0, 1, 1));
  EXPECT_THAT(HandOver(tracker), ElementsAre(Pair(1, "a/1"), Pair(1, "a/2"), Pair(2, "b/1")));
  EXPECT_THAT(HandOver(tracker), SizeIs(0));
  tracker.Add(Row("a", 0, 3, 1));
  EXPECT_THAT(HandOver(tracker), ElementsAre(Pair(3, "a/3")));
  EXPECT_EQ(tracker.records(), 4);
}

TEST(OutboxTrackerTest, OnlyAnUnbrokenPrefixMayGo) {
  OutboxTracker tracker;
  tracker.Add(Row("a", 0, 2, 2));
  tracker.Add(Row("a", 0, 3, 1));
  tracker.Add(Row("a", 1, 1, 1));
  HandOver(tracker);
  tracker.Acknowledge(2);
  EXPECT_THAT(tracker.Prefixes(), SizeIs(0));
  tracker.Acknowledge(1);
  EXPECT_THAT(tracker.Prefixes(), SizeIs(0));
  tracker.Acknowledge(1);
  const std::vector<Prefix> prefixes = tracker.Prefixes();
  EXPECT_THAT(prefixes, ElementsAre(Prefix{"a", {"t", 0}, 3}));
  tracker.Deleted(prefixes);
  EXPECT_THAT(tracker.Prefixes(), SizeIs(0));
  EXPECT_EQ(tracker.records(), 1);
}

TEST(OutboxTrackerTest, ARestartRepeatsFromTheFirstNotAcknowledged) {
  OutboxTracker tracker;
  tracker.Add(Row("a", 0, 1, 1));
  tracker.Add(Row("a", 0, 3, 2));
  HandOver(tracker);
  tracker.Acknowledge(1);
  tracker.Acknowledge(2);
  tracker.Restart();
  EXPECT_THAT(HandOver(tracker), ElementsAre(Pair(2, "a/2"), Pair(2, "a/3")));
  EXPECT_EQ(tracker.records(), 2);
}

TEST(OutboxTrackerTest, ADroppedStreamIsForgotten) {
  OutboxTracker tracker;
  tracker.Add(Row("a.1", 0, 1, 1));
  tracker.Add(Row("b", 0, 1, 1));
  tracker.Add(Row("a.2", 0, 1, 1));
  HandOver(tracker);
  tracker.DropStream("a");
  tracker.Acknowledge(1);  // comes late
  tracker.Acknowledge(2);
  EXPECT_THAT(tracker.Prefixes(), ElementsAre(Prefix{"b", {"t", 0}, 1}));
  EXPECT_EQ(tracker.records(), 0);
  EXPECT_EQ(tracker.bytes(), 0);
}

events::v1::Envelope Tick() {
  events::v1::Envelope envelope;
  envelope.set_pool("p");
  envelope.mutable_tick();
  return envelope;
}

TEST(StamperTest, SequencesAreContiguousForEachStreamAndTarget) {
  Stamper stamper("queue", {}, Millis{60});
  stamper.AddSource(3, "queue/3");
  Outbox outbox;
  outbox.AppendToPool(3, 3, Tick());
  outbox.AppendToPool(3, 5, Tick());
  outbox.AppendToPool(3, 3, Tick());
  int oversized = 0;
  auto rows = stamper.Stamp(outbox.mutable_messages(), {}, Millis{99}, &oversized);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].stream, "queue/3");
  EXPECT_EQ(rows[0].target, (Target{"fluxqueue.pool", 3}));
  EXPECT_EQ(rows[0].last_seq, 2);
  ASSERT_THAT(rows[0].records, SizeIs(2));
  EXPECT_EQ(rows[0].records[0].headers[0].second, "queue/3/3/1");
  EXPECT_EQ(outbox.messages()[0].envelope.time_ms(), 99);
  EXPECT_EQ(outbox.messages()[0].envelope.latest_ms(), 159);
  EXPECT_EQ(rows[1].last_seq, 1);

  stamper.Rollback();
  rows = stamper.Stamp(outbox.mutable_messages(), {}, Millis{99}, &oversized);
  EXPECT_EQ(rows[0].last_seq, 2);
  stamper.Commit();
  rows = stamper.Stamp(outbox.mutable_messages(), {}, Millis{99}, &oversized);
  EXPECT_EQ(rows[0].last_seq, 4);
  EXPECT_EQ(oversized, 0);
}

TEST(StamperTest, AMessageAboutAJobIsOfItsTrace) {
  Stamper stamper("queue", {}, Millis{60});
  stamper.AddSource(0, "queue/0");
  Outbox outbox;
  events::v1::Envelope fact;
  fact.set_pool("p");
  fact.mutable_job_fact()->set_job_id("0a1b2c3d-0000-4000-8000-00000000000f");
  outbox.AppendToPool(0, 0, fact);
  outbox.AppendToPool(0, 0, Tick());
  int oversized = 0;
  const auto rows = stamper.Stamp(outbox.mutable_messages(), {}, Millis{0}, &oversized);
  ASSERT_THAT(rows, SizeIs(1));
  const auto trace = Pair("traceparent", HasSubstr("00-0a1b2c3d00004000800000000000000f-"));
  EXPECT_THAT(rows[0].records[0].headers, ::testing::Contains(trace));
  events::v1::Envelope sent;
  ASSERT_TRUE(sent.ParseFromString(rows[0].records[0].value));
  EXPECT_EQ(sent.traceparent(), rows[0].records[0].headers.back().second);
  EXPECT_THAT(rows[0].records[1].headers, SizeIs(4));  // a Tick is about no job
}

TEST(StamperTest, AMessageThatIsTooLargeBecomesADeadLetterAndTakesNoSequence) {
  Stamper stamper("queue", {}, Millis{60});
  stamper.AddSource(0, "queue/0");
  Outbox outbox;
  events::v1::Envelope large = Tick();
  large.set_pool(std::string(kafka::kMaxValueBytes, 'x'));
  outbox.AppendToPool(0, 0, large);
  outbox.AppendToPool(0, 0, Tick());
  int oversized = 0;
  const auto rows = stamper.Stamp(outbox.mutable_messages(), {}, Millis{0}, &oversized);
  EXPECT_EQ(oversized, 1);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].target.topic, "fluxqueue.dead-letter");
  EXPECT_LT(rows[0].records[0].value.size(), 100'000);
  EXPECT_EQ(rows[1].last_seq, 1);
}

TEST(StamperTest, ATextThatIsNoTextDoesNotMakeAMessageUnreadable) {
  Stamper stamper("queue", {}, Millis{60});
  stamper.AddSource(0, "queue/0");
  events::v1::Envelope window;
  window.set_pool("p\xff");
  window.mutable_window_configured()->add_nodes("cut \xE2\x82");
  window.mutable_window_configured()->add_labels()->set_value("ü\xC3");
  Outbox outbox;
  outbox.AppendToPool(0, 0, window);
  int oversized = 0;
  const auto rows = stamper.Stamp(outbox.mutable_messages(), {}, Millis{0}, &oversized);
  events::v1::Envelope sent;
  ASSERT_TRUE(sent.ParseFromString(rows.at(0).records.at(0).value));
  EXPECT_EQ(sent.pool(), "p?");
  EXPECT_EQ(sent.window_configured().nodes(0), "cut ??");
  EXPECT_EQ(sent.window_configured().labels(0).value(), "ü?");
  EXPECT_EQ(sent.sequence(), 1);
  EXPECT_EQ(oversized, 0);
}

TEST(WireTest, ABlobKeepsEnvelopesAndDeadLetters) {
  DeadLetter letter{2, "because", "fluxqueue.pool", {}};
  letter.message.offset = 17;
  letter.message.value = std::string("\0\xff", 2);
  letter.message.headers = {{"ce_id", "x/0/1"}};
  events::v1::Envelope tick = Tick();
  tick.set_stream("queue/3");
  tick.set_sequence(4);
  const std::vector<WireRecord> records = {MakeRecord(tick, 6), MakeRecord(letter, "queue")};
  OutboxRow row{"queue/3", {"t", 6}, 5, {}};
  const absl::Status status = DecodeBlob(EncodeBlob(records), &row);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_THAT(row.records, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(row.records[i].key, records[i].key);
    EXPECT_EQ(row.records[i].value, records[i].value);
    EXPECT_EQ(row.records[i].headers, records[i].headers);
  }
  EXPECT_THAT(row.records[1].headers, ::testing::Contains(Pair("fluxqueue_reason", "because")));
  EXPECT_THAT(row.records[1].headers, ::testing::Contains(Pair("ce_id", "x/0/1")));
}

TEST(WireTest, AnUnreadableMessageKeepsItsEventId) {
  events::v1::Envelope tick = Tick();
  tick.set_stream("queue/3");
  tick.set_sequence(4);
  WireRecord unreadable = MakeRecord(tick, 6);
  unreadable.value = "\xff\xff";
  OutboxRow row{"queue/3", {"t", 6}, 5, {}};
  tick.set_sequence(5);
  const absl::Status status = DecodeBlob(EncodeBlob({unreadable, MakeRecord(tick, 6)}), &row);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_THAT(row.records, SizeIs(2));
  EXPECT_THAT(row.records[0].headers, ::testing::ElementsAre(Pair("ce_id", "queue/3/6/4")));
  EXPECT_EQ(row.records[0].value, "\xff\xff");
  EXPECT_THAT(row.records[1].headers, ::testing::Contains(Pair("ce_id", "queue/3/6/5")));
}

TEST(WireTest, ABrokenBlobSaysWhichRow) {
  OutboxRow row{"queue/3", {"t", 6}, 5, {}};
  const absl::Status status = DecodeBlob("\xff\xff", &row);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(Message(status), HasSubstr("topic t partition 6"));
}

}  // namespace
}  // namespace fluxqueue::delivery
