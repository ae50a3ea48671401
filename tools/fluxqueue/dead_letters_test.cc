#include "tools/fluxqueue/dead_letters.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/signing/testing_keys.h"

namespace fluxqueue::cli {
namespace {

using ::testing::HasSubstr;

kafka::Message LetterAt(int64_t offset, const std::string& value) {
  kafka::Message original;
  original.partition = 3;
  original.offset = 40;
  original.key = "j1";
  original.value = value;
  const delivery::WireRecord record = delivery::MakeRecord(
      delivery::DeadLetter{0, "no such job", "fluxqueue.pool", original}, "queue");
  kafka::Message message;
  message.offset = offset;
  message.append_time = Millis(1000);
  message.key = record.key;
  message.value = record.value;
  message.headers = record.headers;
  return message;
}

kafka::Message Record(int64_t offset, const delivery::WireRecord& record) {
  kafka::Message message;
  message.offset = offset;
  message.append_time = Millis(2000);
  message.key = record.key;
  message.headers = record.headers;
  return message;
}

std::string Started() {
  events::v1::Envelope message;
  message.set_stream("cleanup/watch");
  message.set_sequence(99);
  message.set_pool("main");
  message.mutable_job_started()->set_job_id("j1");
  return message.SerializeAsString();
}

TEST(DeadLettersTest, WhatIsNotOfWhomItSaysIsNotRetried) {
  Letter letter{.number = 7,
                .service = "matcher",
                .reason = "it is not signed by queue",
                .partition = 3,
                .unproven = true};
  events::v1::Envelope envelope;
  envelope.mutable_tick();
  envelope.SerializeToString(&letter.value);
  EXPECT_EQ(RetryOf(letter, nullptr).status().message(),
            "letter 7 is not of whom it says (it is not signed by queue): drop it; but when the "
            "key is known by now that it is signed with: fluxqueue log repeat matcher 3");
  letter.unproven = false;
  EXPECT_TRUE(RetryOf(letter, nullptr).ok());
  // Whoever may write letters makes one up.
  const signing::TestingKeys files({"queue", "cleanup"});
  const signing::Keys keys = *signing::Keys::Read(files.keys());
  envelope.set_stream("queue/3");
  envelope.set_sequence(9);
  delivery::OutboxRow row{"queue/3", {"fluxqueue.pool", 3}, 9, {delivery::MakeRecord(envelope, 3)}};
  letter.topic = "fluxqueue.pool";
  letter.partition = 3;
  letter.value = row.records[0].value;
  letter.headers = row.records[0].headers;
  EXPECT_EQ(RetryOf(letter, &keys).status().message(),
            "letter 7: it is not signed by queue: drop it");
  delivery::SignRecords(*signing::Signer::Read(files.key_of("queue")), &row);
  letter.headers = row.records[0].headers;
  EXPECT_TRUE(RetryOf(letter, &keys).ok());
  letter.partition = 4;
  EXPECT_FALSE(RetryOf(letter, &keys).ok());
}

TEST(DeadLettersTest, ALetterSaysWhatHappenedToWhat) {
  DeadLetters letters;
  letters.Fold(LetterAt(7, Started()));
  const Letter& letter = letters.letters().at(7);
  EXPECT_EQ(letter.service, "queue");
  EXPECT_EQ(letter.reason, "no such job");
  EXPECT_EQ(letter.topic, "fluxqueue.pool");
  EXPECT_EQ(letter.partition, 3);
  EXPECT_EQ(letter.offset, 40);
  EXPECT_EQ(TypeOf(letter), "job_started");
  EXPECT_EQ(letter.answer, "");
}

TEST(DeadLettersTest, AnswersAreRememberedInTheTopic) {
  DeadLetters letters;
  letters.Fold(LetterAt(7, Started()));
  letters.Fold(LetterAt(8, Started()));
  letters.Fold(Record(9, AnswerTo(letters.letters().at(7), "dropped")));
  EXPECT_EQ(letters.letters().at(7).answer, "dropped");
  EXPECT_EQ(letters.letters().at(8).answer, "");
  EXPECT_EQ(letters.letters().size(), 2U);
}

// A stream of its own: the inbox knows the original's sequence and would drop it.
TEST(DeadLettersTest, ARetryIsANewMessageThatIsTakenOnce) {
  DeadLetters letters;
  letters.Fold(LetterAt(7, Started()));
  const auto record = RetryOf(letters.letters().at(7), nullptr);
  ASSERT_TRUE(record.ok());
  events::v1::Envelope message;
  ASSERT_TRUE(message.ParseFromString(record->value));
  EXPECT_EQ(message.stream(), "retry/7");
  EXPECT_EQ(message.sequence(), 1U);
  EXPECT_EQ(message.job_started().job_id(), "j1");
  EXPECT_EQ(record->value, RetryOf(letters.letters().at(7), nullptr)->value);
}

TEST(DeadLettersTest, ALetterOfAnObjectNamesItAndSaysWhatToDo) {
  DeadLetters letters;
  for (int64_t number = 7; number < 12; ++number) {
    const delivery::QuarantineRow row{
        .object = {.kind = "Pod", .space = "team", .name = fmt::format("p{}", number), .uid = "u1"},
        .reason = "it threw: stoi"};
    letters.Fold(Record(
        number, delivery::MakeRecord(delivery::MakeLetter(row, "cleanup/watch"), "cleanup")));
  }
  const Letter& letter = letters.letters().at(7);
  EXPECT_EQ(TypeOf(letter), "Pod");
  EXPECT_EQ(PlaceOf(letter), "cleanup/watch");
  EXPECT_EQ(letter.shard, "watch");
  EXPECT_EQ(letter.uid, "u1");
  EXPECT_EQ(letter.reason, "it threw: stoi");
  EXPECT_THAT(ContentText(letter), HasSubstr("Pod team/p7 with uid u1: cleanup leaves it out"));
  EXPECT_THAT(ContentText(letter), HasSubstr("dead-letters retry 7"));
  letters.Fold(Record(12, AnswerTo(letter, "retried")));
  EXPECT_EQ(ObjectsText(letters),
            "Pod team/p8 (cleanup), Pod team/p9 (cleanup), Pod team/p10 (cleanup) and 1 more");
}

TEST(DeadLettersTest, WhatDoesNotDecodeIsShownAndNotRetried) {
  DeadLetters letters;
  letters.Fold(LetterAt(7, "\xff\xff"));
  const Letter& letter = letters.letters().at(7);
  EXPECT_EQ(TypeOf(letter), "?");
  EXPECT_EQ(ContentText(letter), "2 bytes that are no event: ff ff\n");
  EXPECT_TRUE(absl::IsInvalidArgument(RetryOf(letter, nullptr).status()));
}

}  // namespace
}  // namespace fluxqueue::cli
