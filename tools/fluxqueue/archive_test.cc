#include "tools/fluxqueue/archive.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// tar reads it.
TEST(ArchiveTest, TarUnpacksIt) {
  Archive archive("bundle", Millis(1'700'000'000'000));
  archive.Add("a.txt", "hello\n");
  archive.Add("logs/b.txt", std::string(1000, 'x'));
  archive.Add("empty", "");
  const std::string folder =
      (std::filesystem::path(::testing::TempDir()) / "fluxqueue-archive-test").string();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/it.tgz", std::ios::binary) << archive.Pack();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread.
  ASSERT_EQ(std::system(("tar -xzf " + folder + "/it.tgz -C " + folder).c_str()), 0);
  const auto read = [&](const std::string& name) {
    std::ifstream file(folder + "/bundle/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(read("a.txt"), "hello\n");
  EXPECT_EQ(read("logs/b.txt"), std::string(1000, 'x'));
  EXPECT_TRUE(std::filesystem::exists(folder + "/bundle/empty"));
  std::filesystem::remove_all(folder);
}

TEST(ArchiveTest, SecretsAreTakenOut) {
  for (const char* text : {"dsn: \"host=db password=s3cret user=me\"",
                           "dsn: host=db sslkey=/k sslpassword=s3cret",
                           "sasl.jaas.config=org.X required username=\"me\" password=\"s3cret\";",
                           "\"jaas: password=\\\"s3cret\\\";\"",
                           R"(a: "b:\n  password: \"s3cret s3cret\"\n")",
                           R"(a: "{\"token\":\"s3cret\"}")",
                           "dsn: postgresql://me:s3cret@db/x",
                           "password: s3cret",
                           "{\"authToken\": \"s3cret\", \"b\": 1}",
                           "client_secret: 's3cret'",
                           "a:\n  password: |\n    x\n\n    s3cret\n",
                           "- token: >-\n   s3cret"}) {
    EXPECT_THAT(Redacted(text), AllOf(Not(HasSubstr("s3cret")), HasSubstr("(redacted)"))) << text;
  }
  EXPECT_EQ(Redacted("- token: |\n    s3cret\n  b: c\nd: |\n  e\n"),
            "- token: \"(redacted)\"\n  b: c\nd: |\n  e\n");
  const std::string plain = "host=db user=me\npostgresql://me@db/x\nname: token-ring\nkey: value\n";
  EXPECT_EQ(Redacted(plain), plain);
  EXPECT_EQ(Redacted("{\"token\": \"a\", \"b\": 1}"), "{\"token\": \"(redacted)\", \"b\": 1}");
}

}  // namespace
}  // namespace fluxqueue::cli
