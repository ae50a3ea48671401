#include "tools/fluxqueue/gzip_file.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GzipFileTest : public ::testing::Test {
 protected:
  ~GzipFileTest() override { std::filesystem::remove(path_); }

  absl::Status Read() {
    lines_.clear();
    return ReadGzipLines(path_, [this](std::string_view line) {
      lines_.emplace_back(line);
      return absl::OkStatus();
    });
  }
  void WriteLines(size_t lines) {
    auto writer = GzipWriter::Open(path_);
    ASSERT_TRUE(writer.ok()) << Message(writer.status());
    for (size_t i = 0; i < lines; ++i) writer->Write(std::to_string(i * 7919) + "\n");
    ASSERT_TRUE(writer->Close().ok());
  }

  const std::string path_ = testing::TempDir() + "gzip_file_test." + std::to_string(getpid());
  std::vector<std::string> lines_;
};

TEST_F(GzipFileTest, ThereAndBack) {
  WriteLines(100'000);
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(lines_.size(), 100'000);
  EXPECT_EQ(lines_[99'999], std::to_string(99'999 * 7919));
}

TEST_F(GzipFileTest, PlainTextAndALastLineWithoutItsEnd) {
  std::ofstream(path_) << "a\n\nb";
  ASSERT_TRUE(Read().ok());
  EXPECT_THAT(lines_, ElementsAre("a", "", "b"));
}

TEST_F(GzipFileTest, StopsWhereItIsTold) {
  WriteLines(3);
  size_t read = 0;
  const absl::Status status = ReadGzipLines(path_, [&](std::string_view) {
    return ++read == 2 ? absl::CancelledError() : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_EQ(read, 2);
}

TEST_F(GzipFileTest, Errors) {
  EXPECT_THAT(Message(Read()), HasSubstr("No such file"));
  EXPECT_THAT(Message(GzipWriter::Open("/nowhere/file").status()), HasSubstr("cannot be written"));
  WriteLines(100'000);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  EXPECT_THAT(Message(Read()), HasSubstr("cut short"));
}

}  // namespace
}  // namespace fluxqueue::cli
