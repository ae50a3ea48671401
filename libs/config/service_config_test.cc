#include "libs/config/service_config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/signing/testing_keys.h"

namespace fluxqueue::config {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ServiceConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("FLUXQUEUE_POSTGRES_DSN");
    std::string pattern = (std::filesystem::temp_directory_path() / "fluxqueue-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    ::unsetenv("FLUXQUEUE_POSTGRES_DSN");
    std::filesystem::remove_all(folder_);
  }

  absl::Status Load(const std::string& text) {
    const std::string path = folder_ / "queue.yaml";
    std::ofstream(path) << text;
    return LoadService(path, "queue", Section().Int("depth", &depth_, 1, 1000), &config_);
  }

  std::filesystem::path folder_;
  ServiceConfig config_;
  int depth_ = 100;
};

TEST_F(ServiceConfigTest, ReadsCommonAndOwnSections) {
  ASSERT_TRUE(Load(R"(
instance: queue-0
log: {level: debug, format: json}
http: {address: 0.0.0.0, port: 9102}
postgres: {dsn: "host=127.0.0.1"}
kafka: {bootstrap: "127.0.0.1:9092", session_timeout: 6s, max_clock_lead: 30s}
kubernetes: {kubeconfig: k.yaml}
tracing: {endpoint: "http://127.0.0.1:4318"}
queue: {depth: 7}
)")
                  .ok());
  EXPECT_EQ(config_.instance, "queue-0");
  EXPECT_EQ(config_.log.level, LogLevel::kDebug);
  EXPECT_EQ(config_.log.format, LogFormat::kJson);
  EXPECT_EQ(config_.http.address, "0.0.0.0");
  EXPECT_EQ(config_.http.port, 9102);
  EXPECT_EQ(config_.postgres.dsn, "host=127.0.0.1");
  EXPECT_EQ(config_.kafka.bootstrap, "127.0.0.1:9092");
  EXPECT_EQ(config_.kafka.session_timeout, 6s);
  EXPECT_EQ(config_.kafka.max_clock_lead, 30s);
  EXPECT_EQ(config_.tracing.endpoint, "http://127.0.0.1:4318");
  EXPECT_EQ(config_.kubernetes.kubeconfig, "k.yaml");
  EXPECT_EQ(depth_, 7);
}

TEST_F(ServiceConfigTest, InstanceDefaultsToTheHostName) {
  ASSERT_TRUE(Load("postgres: {dsn: x}\nkafka: {bootstrap: y}").ok());
  EXPECT_FALSE(config_.instance.empty());
  EXPECT_EQ(config_.http.address, "127.0.0.1");
  EXPECT_EQ(config_.kafka.session_timeout, 3s);
}

TEST_F(ServiceConfigTest, ReadsTheKeysOfWhatIsSaid) {
  const std::string stores = "postgres: {dsn: x}\nkafka: {bootstrap: y}\n";
  ASSERT_TRUE(Load(stores).ok());
  EXPECT_EQ(config_.signing.signer, nullptr);
  EXPECT_EQ(config_.signing.keys, nullptr);
  const signing::TestingKeys files({"queue"});
  const absl::Status read = Load(
      fmt::format("{}signing: {{key: {}, keys: {}}}", stores, files.key_of("queue"), files.keys()));
  ASSERT_TRUE(read.ok()) << Message(read);
  EXPECT_TRUE(config_.signing.keys->Check("queue", "a", config_.signing.signer->Sign("a")));
  EXPECT_THAT(Message(Load(stores + "signing: {key: /nowhere}")),
              AllOf(HasSubstr("queue.yaml: signing"), HasSubstr("/nowhere: the file cannot")));
}

TEST_F(ServiceConfigTest, MissingConnectionsAreNamed) {
  const std::string problems = Message(Load("instance: a"));
  EXPECT_THAT(problems, HasSubstr("postgres.dsn: is missing"));
  EXPECT_THAT(problems, HasSubstr("kafka.bootstrap: is missing"));
}

TEST_F(ServiceConfigTest, UnknownSectionListsTheKnownOnes) {
  EXPECT_THAT(Message(Load("matcher: {}\npostgres: {dsn: x}\nkafka: {bootstrap: y}")),
              HasSubstr("queue.yaml:1: matcher: unknown key; known here: instance, log, http, "
                        "postgres, kafka, signing, kubernetes, tracing, queue"));
}

TEST_F(ServiceConfigTest, TheEnvironmentTakesThePlaceOfTheDsn) {
  ::setenv("FLUXQUEUE_POSTGRES_DSN", "host=db password=secret", 1);
  ASSERT_TRUE(Load("kafka: {bootstrap: y}").ok());
  EXPECT_EQ(config_.postgres.dsn, "host=db password=secret");
  ASSERT_TRUE(Load("postgres: {dsn: x}\nkafka: {bootstrap: y}").ok());
  EXPECT_EQ(config_.postgres.dsn, "host=db password=secret");
  ::setenv("FLUXQUEUE_POSTGRES_DSN", "", 1);
  ASSERT_TRUE(Load("postgres: {dsn: x}\nkafka: {bootstrap: y}").ok());
  EXPECT_EQ(config_.postgres.dsn, "x");
}

constexpr const char* kWithPassword =
    "postgres: {dsn: \"postgresql://u:correct-horse@db/d\"}\nkafka: {bootstrap: y}";

TEST_F(ServiceConfigTest, APasswordIsRefusedInAFileThatEverybodyReads) {
  const absl::Status status = Load(kWithPassword);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("queue.yaml: postgres.dsn: it holds a password"),
                    HasSubstr("FLUXQUEUE_POSTGRES_DSN"),
                    Not(HasSubstr("correct-horse"))));
}

TEST_F(ServiceConfigTest, APasswordMayStandInOnesOwnFileAndInTheEnvironment) {
  std::ofstream(folder_ / "queue.yaml") << "";
  std::filesystem::permissions(folder_ / "queue.yaml", std::filesystem::perms::owner_all);
  EXPECT_TRUE(Load(kWithPassword).ok());
  std::filesystem::remove(folder_ / "queue.yaml");
  ::setenv("FLUXQUEUE_TEST_PASSWORD", "correct-horse", 1);
  EXPECT_TRUE(Load("postgres: {dsn: \"host=db password=${FLUXQUEUE_TEST_PASSWORD}\"}\n"
                   "kafka: {bootstrap: y}")
                  .ok());
  EXPECT_EQ(config_.postgres.dsn, "host=db password=correct-horse");
  ::unsetenv("FLUXQUEUE_TEST_PASSWORD");
}

TEST_F(ServiceConfigTest, TlsThatMayBeLeftOutIsRefused) {
  EXPECT_THAT(Message(Load("postgres: {dsn: \"host=db sslmode=prefer\"}\nkafka: {bootstrap: y}")),
              HasSubstr("sslmode=prefer goes on in plain text"));
}

TEST_F(ServiceConfigTest, AddressesThatAreLoggedHoldNoPassword) {
  const std::string postgres = "postgres: {dsn: \"host=db\"}\n";
  EXPECT_THAT(Message(Load(postgres + "kafka: {bootstrap: \"u:correct-horse@k:9092\"}")),
              AllOf(HasSubstr("kafka.bootstrap"), Not(HasSubstr("horse"))));
  for (const char* endpoint :
       {"http://u:correct-horse@c:4318", "http://c:4318?token=correct-horse"}) {
    EXPECT_THAT(Message(Load(postgres + "kafka: {bootstrap: y}\ntracing: {endpoint: \"" + endpoint +
                             "\"}")),
                AllOf(HasSubstr("tracing.endpoint"), Not(HasSubstr("horse"))));
  }
}

}  // namespace
}  // namespace fluxqueue::config
