// What each place of an archive has to do.
#include "tools/fluxqueue/archive_store.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/s3_store.h"
#include "tools/fluxqueue/testing_archive.h"

namespace fluxqueue::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ArchiveStoreTest : public ::testing::Test {
 protected:
  ArchiveStoreTest() { std::filesystem::remove_all(folder_); }
  ~ArchiveStoreTest() override { std::filesystem::remove_all(folder_); }

  void Put(const std::string& name, const std::string& text) {
    const auto file = store_->Scratch("new");
    ASSERT_TRUE(file.ok()) << Message(file.status());
    std::ofstream(file->path(), std::ios::binary) << text;
    const absl::Status status = store_->Put(*file, name);
    ASSERT_TRUE(status.ok()) << Message(status);
  }
  std::string Get(const std::string& name) {
    const auto file = store_->Get(name);
    if (!file.ok()) return Message(file.status());
    std::ifstream text(file->path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(text), {});
  }

  const std::string folder_ = testing::TempDir() + "archive_store." + std::to_string(getpid());
  const std::shared_ptr<ArchiveStore> store_ = ArchiveOfTest(folder_);
};

TEST_F(ArchiveStoreTest, KeepsFilesByName) {
  EXPECT_THAT(store_->List("").value(), ElementsAre());
  Put("2.gz", "two");
  Put("1.gz", std::string(1'000'000, '\0'));
  Put("snapshots/1.gz", "a snapshot");
  EXPECT_THAT(store_->List("").value(), ElementsAre("1.gz", "2.gz"));
  EXPECT_THAT(store_->List("snapshots/").value(), ElementsAre("snapshots/1.gz"));
  EXPECT_EQ(Get("1.gz"), std::string(1'000'000, '\0'));
  EXPECT_EQ(Get("snapshots/1.gz"), "a snapshot");
  Put("2.gz", "another");
  EXPECT_EQ(Get("2.gz"), "another");
}

TEST_F(ArchiveStoreTest, SaysWhatIsNotThere) {
  EXPECT_TRUE(absl::IsNotFound(store_->Get("1.gz").status()));
  EXPECT_THAT(Get("1.gz"), HasSubstr(store_->PathOf("1.gz") + ": there is no such file"));
  const LocalFile missing = LocalFile::Temporary(folder_ + "/nothing");
  EXPECT_THAT(Message(store_->Put(missing, "1.gz")), HasSubstr(missing.path()));
  EXPECT_THAT(store_->List("").value(), ElementsAre());
}

TEST_F(ArchiveStoreTest, NamesAreAnyText) {
  const std::string name = "a b+c&d=e%2F<ü>.gz";
  Put(name, "text");
  EXPECT_THAT(store_->List("").value(), ElementsAre(name));
  EXPECT_EQ(Get(name), "text");
}

TEST(S3PlaceTest, IsOfTheEnvironment) {
  std::map<std::string, std::string> set = {{"AWS_ENDPOINT_URL", "https://s3.example.com/"},
                                            {"AWS_REGION", "eu-1"},
                                            {"AWS_ACCESS_KEY_ID", "who"},
                                            {"AWS_SECRET_ACCESS_KEY", "secret"}};
  const auto parse = [&set](const std::string& place) {
    return ParseS3(place, [&set](const std::string& name) { return set[name]; });
  };
  const auto place = parse("s3://logs/a/b");
  ASSERT_TRUE(place.ok()) << Message(place.status());
  EXPECT_EQ(place->endpoint, "https://s3.example.com");
  EXPECT_EQ(place->bucket, "logs");
  EXPECT_EQ(place->prefix, "a/b/");
  EXPECT_EQ(place->region, "eu-1");
  EXPECT_EQ(parse("s3://logs")->prefix, "");
  EXPECT_THAT(Message(parse("s3:///a").status()), HasSubstr("wanted s3://BUCKET"));
  set["AWS_SECRET_ACCESS_KEY"] = "";
  EXPECT_THAT(Message(parse("s3://logs").status()), HasSubstr("set AWS_ACCESS_KEY_ID and"));
  set["AWS_ENDPOINT_URL"] = "";
  EXPECT_THAT(Message(parse("s3://logs").status()), HasSubstr("set AWS_ENDPOINT_URL"));
}

TEST_F(ArchiveStoreTest, WhatIsNotPutIsGone) {
  std::string path;
  {
    const auto file = store_->Scratch("new");
    path = file->path();
    std::ofstream(path) << "half";
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace fluxqueue::cli
