#include "tools/fluxqueue/log_repeat.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/delivery/incarnation.h"
#include "libs/delivery/wire.h"
#include "libs/signing/testing_keys.h"

namespace fluxqueue::cli {
namespace {

using Fate = LogRepeat::Fate;

constexpr const char* kTopic = "fluxqueue.pool";
constexpr const char* kStream = "admission/watch";

// A log in which each message is signed by a key of its author's choice.
class Log {
 public:
  explicit Log(std::string stream = kStream) : stream_(std::move(stream)), files_({"admission"}) {
    files_.Make("new", "admission");
    files_.Make("thief", "nobody");
    keys_.emplace(*signing::Keys::Read(files_.keys()));
  }

  const signing::Keys* keys() const { return &*keys_; }

  // `by`: empty: nobody signs it.
  kafka::Message Say(uint64_t sequence, const std::string& by, const std::string& queue = "q") {
    events::v1::Envelope envelope;
    envelope.set_stream(stream_);
    envelope.set_sequence(sequence);
    envelope.set_pool("main");
    envelope.mutable_queue_configured()->set_queue(queue);
    delivery::OutboxRow row{stream_, {kTopic, 3}, sequence, {delivery::MakeRecord(envelope, 3)}};
    if (!by.empty()) {
      delivery::SignRecords(*signing::Signer::Read(files_.key_of(by)), &row);
    }
    return Append(row.records[0].value, row.records[0].headers);
  }
  kafka::Message Append(const std::string& value, const kafka::Headers& headers) {
    kafka::Message message;
    message.partition = 3;
    message.offset = end_++;
    message.key = "main";
    message.value = value;
    message.headers = headers;
    return message;
  }
  kafka::Message Again(const kafka::Message& message) {
    return Append(message.value, message.headers);
  }

 private:
  const std::string stream_;
  signing::TestingKeys files_;
  std::optional<signing::Keys> keys_;
  int64_t end_ = 0;
};

std::vector<Fate> FoldAll(LogRepeat& repeat, const std::vector<kafka::Message>& messages) {
  std::vector<Fate> fates;
  for (const kafka::Message& message : messages) fates.push_back(repeat.Fold(message));
  return fates;
}

TEST(LogRepeatTest, WhatWasNotReadIsSaidAgainWithAllThatFollows) {
  Log log;
  const std::vector<kafka::Message> said = {log.Say(1, "admission"),
                                            log.Say(2, "new"),   // unread
                                            log.Say(3, "new"),   // unread
                                            log.Say(4, "new"),   // behind the gap
                                            log.Say(5, "new")};  // not there yet, and behind it
  LogRepeat repeat(kTopic, log.keys(), {.next_offset = 4, .seen = {{kStream, 1}}});
  EXPECT_THAT(
      FoldAll(repeat, said),
      ::testing::ElementsAre(Fate::kTaken, Fate::kAgain, Fate::kAgain, Fate::kAgain, Fate::kAgain));
  // What it finds of its own is not said once more, and the service reads on.
  for (size_t i = 1; i < said.size(); ++i) {
    EXPECT_EQ(repeat.Fold(log.Again(said[i])), Fate::kTaken) << i;
  }
  EXPECT_EQ(repeat.Fold(log.Say(6, "new")), Fate::kTaken);
  EXPECT_EQ(repeat.reached().at(kStream), 6U);
}

// What stands behind a gap of a stream with an incarnation was taken: only the gap is said again.
TEST(LogRepeatTest, OfAnOwnersStreamOnlyWhatWasNotReadIsSaidAgain) {
  const std::string stream = delivery::WithIncarnation(kStream, 1);
  Log log(stream);
  const std::vector<kafka::Message> said = {log.Say(1, "admission"),
                                            log.Say(2, "new"),  // unread
                                            log.Say(3, "new"),  // unread
                                            log.Say(4, "new"),
                                            log.Say(5, "new")};
  LogRepeat repeat(
      kTopic,
      log.keys(),
      {.next_offset = 5, .seen = {{stream, delivery::StreamPosition::Parse(5, "2-3")}}});
  EXPECT_THAT(
      FoldAll(repeat, said),
      ::testing::ElementsAre(Fate::kTaken, Fate::kAgain, Fate::kAgain, Fate::kTaken, Fate::kTaken));
  EXPECT_EQ(repeat.Fold(log.Again(said[1])), Fate::kTaken);
  EXPECT_EQ(repeat.Fold(log.Again(said[2])), Fate::kTaken);
  EXPECT_EQ(repeat.reached().at(stream), delivery::StreamPosition(5));
}

// One that its service says meanwhile stands behind the gap, too.
TEST(LogRepeatTest, WhatComesBetweenIsSaidAgain) {
  Log log;
  const kafka::Message unread = log.Say(2, "new");
  LogRepeat repeat(kTopic, log.keys(), {.next_offset = 1, .seen = {{kStream, 1}}});
  EXPECT_EQ(repeat.Fold(unread), Fate::kAgain);
  const kafka::Message between = log.Say(3, "new");
  EXPECT_EQ(repeat.Fold(between), Fate::kAgain);
  EXPECT_EQ(repeat.Fold(log.Again(unread)), Fate::kTaken);
  EXPECT_EQ(repeat.Fold(log.Again(between)), Fate::kTaken);
}

// Neither what he says is said again, nor does it stand in the way of what is true.
TEST(LogRepeatTest, WhoMayWriteIntoTheLogMovesNoStream) {
  Log log;
  LogRepeat repeat(kTopic, log.keys(), {.next_offset = 8, .seen = {{kStream, 1}}});
  EXPECT_EQ(repeat.Fold(log.Say(2, "", "forged")), Fate::kRefused);
  EXPECT_EQ(repeat.Fold(log.Say(2, "thief", "forged")), Fate::kRefused);
  EXPECT_EQ(repeat.Fold(log.Say(3, "", "forged")), Fate::kRefused);
  kafka::Message changed = log.Say(2, "new");
  changed.value.replace(changed.value.find("q"), 1, "x");
  EXPECT_EQ(repeat.Fold(changed), Fate::kRefused);
  EXPECT_EQ(repeat.Fold(log.Append("no event", {})), Fate::kRefused);
  EXPECT_EQ(repeat.Fold(log.Say(2, "new")), Fate::kAgain);
  EXPECT_EQ(repeat.Fold(log.Say(3, "new")), Fate::kAgain);
  EXPECT_EQ(repeat.reached().at(kStream), 3U);
}

TEST(LogRepeatTest, WhatIsNowhereIsMissed) {
  Log log;
  LogRepeat repeat(kTopic, log.keys(), {.next_offset = 2, .seen = {{kStream, 1}}});
  EXPECT_EQ(repeat.Fold(log.Say(2, "")), Fate::kRefused);
  EXPECT_EQ(repeat.Fold(log.Say(3, "new")), Fate::kMissing);
  EXPECT_TRUE(repeat.reached().empty());
}

// Where signatures are checked no more.
TEST(LogRepeatTest, WithoutKeysAllIsBelieved) {
  Log log;
  LogRepeat repeat(kTopic, nullptr, {.next_offset = 2, .seen = {{kStream, 1}}});
  EXPECT_EQ(repeat.Fold(log.Say(2, "")), Fate::kAgain);
  EXPECT_EQ(repeat.Fold(log.Say(3, "new")), Fate::kAgain);
}

// A service that begins in the middle of a log is deaf to no stream.
TEST(LogRepeatTest, AStreamThatIsNewToTheServiceNeedsNothing) {
  Log log;
  LogRepeat repeat(kTopic, log.keys(), {.next_offset = 0, .truncated = true});
  EXPECT_EQ(repeat.Fold(log.Say(7, "new")), Fate::kTaken);
  EXPECT_EQ(repeat.reached().at(kStream), 7U);
}

}  // namespace
}  // namespace fluxqueue::cli
