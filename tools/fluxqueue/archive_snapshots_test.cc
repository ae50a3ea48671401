// On the log of a real system (tests/logs), moved so that midnight falls into it.
#include "tools/fluxqueue/archive_snapshots.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/model/rules.h"

#include "tools/fluxqueue/event_archive.h"
#include "tools/fluxqueue/gzip_file.h"
#include "tools/fluxqueue/pool_replay.h"
#include "tools/fluxqueue/snapshot_file.h"
#include "tools/fluxqueue/testing_archive.h"

namespace fluxqueue::cli {
namespace {

using google::protobuf::util::MessageDifferencer;
using replay::v1::Snapshot;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using verify::EventLine;

constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kMidnight = 1'796'083'200'000;  // 2026-12-01
constexpr size_t kSecondDay = 199;                // its first record: the one before is of earlier
constexpr size_t kThirdDay = 350;

// As long as it was kept.
class Log final : public EventSource {
 public:
  Log() {
    const auto file = EventsOfFile(fmt::format("{}/rules-{}.jsonl.gz", LOGS, model::kLatestRules));
    const absl::Status status = file->Read([this](const EventLine& line) {
      if (!line.message.has_job_fact()) lines_.push_back(line);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << Message(status);
    const int64_t shift = kMidnight - lines_[kSecondDay].time.count();
    for (size_t i = 0; i < lines_.size(); ++i) {
      lines_[i].time += Millis(shift + (i < kThirdDay ? 0 : kDayMs));
    }
    header_ = {.pool = "default", .archived = true};
    GrowTo(lines_.size());
  }

  void GrowTo(size_t records) {
    records_ = records;
    header_.to.log = lines_[records - 1].offset + 1;
  }
  void CutTo(size_t first) {
    first_ = first;
    header_.from.log = lines_[first].offset;
    header_.whole = false;
  }

  absl::Status Read(const Each& each) override {
    for (size_t i = first_; i < records_; ++i) RETURN_IF_ERROR(each(lines_[i]));
    return absl::OkStatus();
  }
  const verify::EventFileHeader& header() const override { return header_; }
  const std::vector<EventLine>& lines() const { return lines_; }

  // The id of a job that is submitted there for the first time.
  std::string JobIn(size_t first, size_t end) const {
    for (size_t i = first; i < end; ++i) {
      if (lines_[i].message.has_job_submitted()) return lines_[i].message.job_submitted().job_id();
    }
    return "";
  }

 private:
  std::vector<EventLine> lines_;
  size_t first_ = 0;
  size_t records_ = 0;
  verify::EventFileHeader header_;
};

class ArchiveSnapshotsTest : public ::testing::Test {
 protected:
  ArchiveSnapshotsTest() { std::filesystem::remove_all(folder_); }
  ~ArchiveSnapshotsTest() override { std::filesystem::remove_all(folder_); }

  size_t AddTo(size_t records) {
    log_.GrowTo(records);
    const auto archived = AddToArchive(log_, *store_);
    EXPECT_TRUE(archived.ok()) << Message(archived.status());
    const auto kept = KeepSnapshots(store_, "");
    EXPECT_TRUE(kept.ok()) << Message(kept.status());
    EXPECT_TRUE(kept->stopped.ok()) << Message(kept->stopped);
    return kept->added;
  }
  size_t AddAll() { return AddTo(log_.lines().size()); }

  std::optional<Snapshot> Nearest(const LogPlace& place) {
    const auto snapshot = NearestSnapshot(store_, place);
    EXPECT_TRUE(snapshot.ok()) << Message(snapshot.status());
    return *snapshot;
  }
  // -1: there is none.
  int64_t OffsetBefore(const LogPlace& place) {
    const auto snapshot = Nearest(place);
    return snapshot.has_value() ? snapshot->next_offset() : -1;
  }
  int64_t OffsetBeforeJob(const std::string& job, const LogPlace& place) {
    const auto snapshot = SnapshotBeforeJob(store_, job, place);
    EXPECT_TRUE(snapshot.ok()) << Message(snapshot.status());
    return snapshot->has_value() ? (*snapshot)->next_offset() : -1;
  }
  // The first offset that is not before this record.
  int64_t OffsetAt(size_t record) const { return log_.lines()[record - 1].offset + 1; }

  Snapshot EndFrom(std::optional<Snapshot> from) {
    const int64_t first = from.has_value() ? from->next_offset() : 0;
    const auto source = EventsOfArchive(store_, first, /*facts=*/false);
    PoolReplay replay(*source, {.from = std::move(from), .keeps_rows = true});
    const absl::Status status = replay.Run();
    EXPECT_TRUE(status.ok()) << Message(status);
    return replay.replayer().Save("default");
  }
  std::string Newest() { return store_->List("snapshots/").value().back(); }
  std::string NewestFile() { return store_->PathOf(Newest()); }
  // Puts what `write` writes in place of the newest one.
  void ReplaceNewest(const std::function<absl::Status(const std::string& path)>& write) {
    const auto file = store_->Scratch("replacement");
    ASSERT_TRUE(file.ok()) << Message(file.status());
    const absl::Status written = write(file->path());
    ASSERT_TRUE(written.ok()) << Message(written);
    const absl::Status put = store_->Put(*file, Newest());
    ASSERT_TRUE(put.ok()) << Message(put);
  }
  void ReplaceNewest(const Snapshot& snapshot) {
    ReplaceNewest([&snapshot](const std::string& path) { return WriteSnapshot(snapshot, path); });
  }

  const std::string folder_ = testing::TempDir() + "archive_snapshots." + std::to_string(getpid());
  std::shared_ptr<ArchiveStore> store_ = ArchiveOfTest(folder_);
  Log log_;
};

TEST_F(ArchiveSnapshotsTest, EachDayHasOneHoweverOftenTheArchiveIsAddedTo) {
  EXPECT_EQ(AddTo(100), 0U);
  EXPECT_EQ(AddTo(kSecondDay), 0U);
  EXPECT_EQ(AddTo(kSecondDay + 1), 1U);
  EXPECT_EQ(AddTo(kSecondDay + 2), 0U);
  EXPECT_EQ(AddAll(), 1U);
  EXPECT_EQ(AddAll(), 0U);
  const std::vector<std::string> names = store_->List("snapshots/").value();
  EXPECT_THAT(names, SizeIs(2));
  store_ = ArchiveOfTest(folder_, "again");
  EXPECT_EQ(AddAll(), 2U);
  EXPECT_EQ(store_->List("snapshots/").value(), names);
  EXPECT_EQ(names.front(), FormatSnapshotName(OffsetAt(kSecondDay), kMidnight - 1));
}

TEST_F(ArchiveSnapshotsTest, AReplayGoesOnFromTheNearestOne) {
  AddAll();
  const int64_t first = OffsetAt(kSecondDay);
  const int64_t second = OffsetAt(kThirdDay);
  EXPECT_EQ(OffsetBefore({}), second);
  EXPECT_EQ(OffsetBefore({.offset = second}), second);
  EXPECT_EQ(OffsetBefore({.offset = second - 1}), first);
  EXPECT_EQ(OffsetBefore({.offset = first - 1}), -1);
  EXPECT_EQ(OffsetBefore({.time_ms = kMidnight + kDayMs}), second);
  EXPECT_EQ(OffsetBefore({.time_ms = kMidnight + kDayMs - 1}), first);
  EXPECT_EQ(OffsetBefore({.time_ms = kMidnight - 1}), -1);
  const Snapshot end = EndFrom(std::nullopt);
  EXPECT_TRUE(MessageDifferencer::Equals(EndFrom(Nearest({})), end));
  EXPECT_TRUE(MessageDifferencer::Equals(EndFrom(Nearest({.offset = first})), end));
}

TEST_F(ArchiveSnapshotsTest, OneThatCannotBeUsedIsPassedOver) {
  AddAll();
  const int64_t first = OffsetAt(kSecondDay);
  const auto why = [this] {
    testing::internal::CaptureStderr();
    (void)NearestSnapshot(store_, {});
    return testing::internal::GetCapturedStderr();
  };
  Snapshot snapshot = *Nearest({});
  // Of a release to come.
  ReplaceNewest([](const std::string& path) -> absl::Status {
    ASSIGN_OR_RETURN(GzipWriter file, GzipWriter::Open(path));
    file.Write("{\"fluxqueue_snapshot\":1,\"build\":\"99.0.0\",\"rules\":9999}\n");
    return file.Close();
  });
  EXPECT_EQ(OffsetBefore({}), first);
  EXPECT_THAT(why(), HasSubstr(NewestFile() + ": a snapshot of version 1 and rules 9999"));
  // Of a log that is older than the archive's.
  snapshot.set_time_ms(snapshot.time_ms() - 2 * kDayMs);
  ReplaceNewest(snapshot);
  EXPECT_EQ(OffsetBefore({}), first);
  EXPECT_THAT(why(), HasSubstr("of a log that has begun again since"));
  // Of one that reached further.
  snapshot.set_next_offset(1'000'000);
  ReplaceNewest(snapshot);
  EXPECT_EQ(OffsetBefore({}), first);
  EXPECT_THAT(why(), HasSubstr("it goes on at offset 1000000, and the archive has those from 0"));
  snapshot.set_pool("other");
  ReplaceNewest(snapshot);
  EXPECT_EQ(OffsetBefore({}), first);
  EXPECT_THAT(why(), HasSubstr("it is of pool other, and the archive of pool default"));
}

TEST_F(ArchiveSnapshotsTest, AJobIsLookedForFromTheEnd) {
  AddAll();
  const std::string early = log_.JobIn(0, kSecondDay);
  const std::string later = log_.JobIn(kSecondDay, kThirdDay);
  ASSERT_FALSE(early.empty() || later.empty());
  EXPECT_EQ(OffsetBeforeJob(later, {}), OffsetAt(kSecondDay));
  EXPECT_EQ(OffsetBeforeJob(early, {}), -1);
  EXPECT_EQ(OffsetBeforeJob("nothing", {}), -1);
}

TEST_F(ArchiveSnapshotsTest, ALogWithoutItsBeginningHasNone) {
  log_.CutTo(10);
  ASSERT_TRUE(AddToArchive(log_, *store_).ok());
  const auto kept = KeepSnapshots(store_, "");
  ASSERT_TRUE(kept.ok()) << Message(kept.status());
  EXPECT_THAT(Message(kept->stopped), HasSubstr("and not where the pool began"));
}

TEST(SnapshotNameTest, IsReadAsItIsWritten) {
  const std::string name = FormatSnapshotName(5120, kMidnight - 1);
  EXPECT_EQ(name, "snapshots/0000000000000005120-2026-11-30.gz");
  EXPECT_EQ(ParseSnapshotName(name)->next_offset, 5120);
  EXPECT_EQ(ParseSnapshotName(name)->end_ms, kMidnight);
  for (const char* other : {"snapshots/",
                            "snapshots/.gz",
                            "snapshots/17.gz",
                            "snapshots/17-2026-11-30",
                            "snapshots/17-2026-11-30.gz.part",
                            "snapshots/17-2026-13-30.gz",
                            "snapshots/x-2026-11-30.gz",
                            "17-2026-11-30.gz"}) {
    EXPECT_FALSE(ParseSnapshotName(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace fluxqueue::cli
