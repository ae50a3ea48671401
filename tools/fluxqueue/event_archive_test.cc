#include "tools/fluxqueue/event_archive.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/testing_archive.h"

namespace fluxqueue::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using verify::EventLine;

// A log of which retention takes the beginning.
class FakeLog final : public EventSource {
 public:
  absl::Status Read(const Each& each) override {
    for (const EventLine& fact : facts) RETURN_IF_ERROR(each(fact));
    for (const EventLine& line : log) {
      if (line.offset >= header_.from.log) RETURN_IF_ERROR(each(line));
      header_.to.log = std::max(header_.to.log, line.offset + 1);
    }
    return absl::OkStatus();
  }
  const verify::EventFileHeader& header() const override { return header_; }

  // A record, and a fact that comes of it.
  void Grow(int records) {
    for (int i = 0; i < records; ++i) {
      EventLine line{.partition = 3, .offset = next_, .time = Millis(next_)};
      line.message.set_pool("p");
      line.message.mutable_tick();
      log.push_back(line);
      EventLine fact{.partition = static_cast<int>(next_ % 2), .offset = next_ / 2};
      fact.message.set_pool("p");
      fact.message.mutable_job_fact()->set_version(static_cast<uint64_t>(next_ + 1));
      facts.push_back(fact);
      ++next_;
    }
  }
  // As many records of another pool.
  void Skip(int64_t records) {
    next_ += records;
    header_.to.log = next_;
  }
  void Cut(int64_t first) {
    header_.from.log = first;
    header_.whole = false;
  }

  std::vector<EventLine> log;
  std::vector<EventLine> facts;

 private:
  verify::EventFileHeader header_{.pool = "p", .archived = true};
  int64_t next_ = 0;
};

class EventArchiveTest : public ::testing::Test {
 protected:
  EventArchiveTest() { std::filesystem::remove_all(folder_); }
  ~EventArchiveTest() override { std::filesystem::remove_all(folder_); }

  Archived Add() {
    const auto archived = AddToArchive(log_, *store_);
    EXPECT_TRUE(archived.ok()) << Message(archived.status());
    return *archived;
  }
  absl::Status ReadBack(int64_t from = 0, bool facts = true) {
    offsets_.clear();
    facts_.clear();
    const auto source = EventsOfArchive(store_, from, facts);
    return source->Read([&](const EventLine& line) {
      if (line.message.has_job_fact()) {
        EXPECT_TRUE(offsets_.empty());
        facts_.push_back(line.message.job_fact().version());
      } else {
        EXPECT_EQ(source->header().whole, from == 0);
        offsets_.push_back(line.offset);
      }
      return absl::OkStatus();
    });
  }

  const std::string folder_ = testing::TempDir() + "event_archive." + std::to_string(getpid());
  const std::shared_ptr<ArchiveStore> store_ = ArchiveOfTest(folder_);
  FakeLog log_;
  std::vector<int64_t> offsets_;
  std::vector<uint64_t> facts_;
};

TEST_F(EventArchiveTest, EachRecordOnceHoweverOftenItIsAddedTo) {
  log_.Grow(2);
  EXPECT_EQ(Add().records, 4);
  EXPECT_EQ(Add().records, 0);
  log_.Grow(3);
  log_.Cut(1);  // of what is in the archive
  const Archived archived = Add();
  EXPECT_EQ(archived.records, 6);
  EXPECT_FALSE(archived.hole);
  EXPECT_THAT(ArchiveFiles(*store_).value(), ElementsAre("00000001-0.gz", "00000002-2.gz"));
  const absl::Status status = ReadBack();
  ASSERT_TRUE(status.ok()) << Message(status);
  EXPECT_THAT(offsets_, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(facts_, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EventArchiveTest, WhatWasLostInBetweenIsSaid) {
  log_.Grow(2);
  Add();
  log_.Grow(4);
  log_.Cut(4);
  EXPECT_TRUE(Add().hole);
  EXPECT_THAT(Message(ReadBack()),
              HasSubstr("it begins at offset 4, and the file before it ends at 2"));
}

TEST_F(EventArchiveTest, APoolOfWhichNothingComesLosesNothing) {
  log_.Grow(2);
  Add();
  log_.Skip(4);
  EXPECT_EQ(Add().records, 0);
  log_.Cut(6);
  log_.Grow(1);
  EXPECT_FALSE(Add().hole);
  ASSERT_TRUE(ReadBack().ok());
  EXPECT_THAT(offsets_, ElementsAre(0, 1, 6));
}

TEST_F(EventArchiveTest, ALogThatBeganAgainIsNotAdded) {
  log_.Grow(5);
  Add();
  FakeLog again;
  again.Grow(2);
  EXPECT_THAT(Message(AddToArchive(again, *store_).status()),
              HasSubstr("it reaches to offset 5, and the log does not"));
}

TEST_F(EventArchiveTest, AFileByItselfBeginsInTheMiddle) {
  log_.Grow(1);
  Add();
  log_.Grow(1);
  Add();
  const auto last = ReadArchiveHeader(*store_, "00000002-1.gz");
  ASSERT_TRUE(last.ok()) << Message(last.status());
  EXPECT_FALSE(last->whole);
  EXPECT_EQ(last->from.log, 1);
  EXPECT_EQ(last->to.log, 2);
  EXPECT_THAT(Message(EventsOfArchive(ArchiveOfTest(folder_, "empty"))->Read(nullptr)),
              HasSubstr("there is no file of"));
}

TEST_F(EventArchiveTest, IsReadFromTheFileOnThatHasTheOffset) {
  for (const int records : {2, 2, 2}) {
    log_.Grow(records);
    Add();
  }
  ASSERT_TRUE(ReadBack(3).ok());
  EXPECT_THAT(offsets_, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(facts_, ElementsAre(3, 4, 5, 6));
  ASSERT_TRUE(ReadBack(4, /*facts=*/false).ok());
  EXPECT_THAT(offsets_, ElementsAre(4, 5));
  EXPECT_THAT(facts_, ElementsAre());
  ASSERT_TRUE(ReadBack(99).ok());
  EXPECT_THAT(offsets_, ElementsAre(4, 5));
}

// What is before a hole is not wanted.
TEST_F(EventArchiveTest, IsReadFromBehindAHole) {
  log_.Grow(2);
  Add();
  log_.Grow(4);
  log_.Cut(4);
  EXPECT_TRUE(Add().hole);
  const absl::Status status = ReadBack(4);
  ASSERT_TRUE(status.ok()) << Message(status);
  EXPECT_THAT(offsets_, ElementsAre(4, 5));
}

}  // namespace
}  // namespace fluxqueue::cli
