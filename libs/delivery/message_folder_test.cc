#include "libs/delivery/message_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/delivery/partition_table.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes the time of what it is given.
class Times final : public PartitionHandler {
 public:
  absl::Status Load(pqxx::transaction_base& /*tx*/, int /*partition*/) override {
    return absl::OkStatus();
  }
  void Drop(int /*partition*/) override {}
  absl::Status Handle(const Record& record, Outbox& /*outbox*/) override {
    seen.push_back(record.time.count());
    return absl::OkStatus();
  }
  bool HasWork() const override { return false; }
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override {
    return std::nullopt;
  }
  absl::Status Poll(Outbox& /*outbox*/) override { return absl::OkStatus(); }
  bool HasRows() const override { return false; }
  absl::Status Write(pqxx::transaction_base& /*tx*/) override { return absl::OkStatus(); }
  void Commit() override {}
  void Rollback() override {}

  std::vector<int64_t> seen;
};

class MessageFolderTest : public ::testing::Test {
 protected:
  MessageFolderTest() {
    table_.Add({.partition = 3}, {});
    folder_.LeaveOut(3, {});
  }

  // `latest` 0: its sender says none.
  void Fold(int64_t appended, int64_t latest) {
    events::v1::Envelope envelope;
    envelope.set_stream("queue/3.1");
    envelope.set_sequence(static_cast<uint64_t>(++offset_));
    envelope.set_pool("p");
    envelope.set_latest_ms(latest);
    envelope.mutable_tick();
    kafka::Message message;
    message.partition = 3;
    message.offset = offset_;
    message.append_time = Millis{appended};
    message.value = envelope.SerializeAsString();
    EXPECT_TRUE(folder_.Fold(message, *table_.Find(3), &batch_).ok());
  }

  const std::string topic_ = "fluxqueue.pool";
  Times times_;
  PartitionTable table_{topic_};
  MessageFolder folder_{topic_, nullptr, times_, nullptr};
  Batch batch_;
  int64_t offset_ = 0;
};

// A broker is a year ahead for a moment, and the next one is right again.
TEST_F(MessageFolderTest, TimeDoesNotLeap) {
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1000;
  Fold(1000, 61'000);
  Fold(kYear + 2000, 62'000);
  Fold(kYear + 3000, 63'000);
  Fold(4000, 64'000);
  Fold(70'000, 130'000);
  EXPECT_THAT(times_.seen, ElementsAre(1000, 62'000, 63'000, 63'000, 70'000));
  EXPECT_EQ(batch_.leads, 2);
  EXPECT_EQ(table_.Find(3)->now.log_time, Millis{70'000});
  EXPECT_EQ(table_.Find(3)->now.append_time, Millis{kYear + 3000}) << "by which a new log is known";
}

TEST_F(MessageFolderTest, OfEarlierReleasesTheBrokersTimeIsBelieved) {
  Fold(1000, 0);
  Fold(500'000, 0);
  Fold(2000, 0);
  EXPECT_THAT(times_.seen, ElementsAre(1000, 500'000, 500'000));
  EXPECT_EQ(batch_.leads, 0);
}

// As an older service sees them in the middle of an upgrade.
TEST_F(MessageFolderTest, AnEventOfALaterVersionIsPassedOver) {
  const auto unknown = [](uint64_t sequence, int field) {
    events::v1::Envelope envelope;
    envelope.set_stream("queue/3.1");
    envelope.set_sequence(sequence);
    envelope.GetReflection()->MutableUnknownFields(&envelope)->AddLengthDelimited(field, "");
    return envelope.SerializeAsString();
  };
  kafka::Message message;
  message.partition = 3;
  message.value = unknown(1, 29);
  EXPECT_TRUE(folder_.Fold(message, *table_.Find(3), &batch_).ok());
  EXPECT_THAT(times_.seen, IsEmpty());
  EXPECT_EQ(batch_.newer, 1);
  EXPECT_EQ(batch_.letters.size(), 0);

  message.offset = 1;
  message.value = unknown(2, 99);
  EXPECT_TRUE(folder_.Fold(message, *table_.Find(3), &batch_).ok());
  EXPECT_EQ(batch_.newer, 1);
  ASSERT_EQ(batch_.letters.size(), 1) << "a new field alone is no event";
  EXPECT_EQ(batch_.letters[0].reason, "it has no event");

  offset_ = 2;
  Fold(1000, 61'000);
  EXPECT_THAT(times_.seen, ElementsAre(1000)) << "its place in the stream is taken";
  EXPECT_EQ(batch_.gaps, 0);
}

}  // namespace
}  // namespace fluxqueue::delivery
