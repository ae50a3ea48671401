// The thief of a service's account in Kafka: in a real one that knows each by a password and lets
// it do what libs/kafka/rights.h lists. That the services do their work so, is shown by
// deploy.kubelet.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/consumer.h"
#include "libs/kafka/producer.h"
#include "libs/kafka/reader.h"
#include "libs/kafka/rights.h"
#include "libs/kafka/tail.h"
#include "libs/testing/mini_kafka.h"

namespace fluxqueue::kafka {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::vector<std::string> kServices = {"admission", "queue", "matcher", "binder", "cleanup"};
constexpr Millis kPatience{20'000};

const std::map<std::string_view, rd_kafka_AclOperation_t> kOperations = {
    {"Create", RD_KAFKA_ACL_OPERATION_CREATE},
    {"Describe", RD_KAFKA_ACL_OPERATION_DESCRIBE},
    {"DescribeConfigs", RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS},
    {"Read", RD_KAFKA_ACL_OPERATION_READ},
    {"Write", RD_KAFKA_ACL_OPERATION_WRITE},
};

// A broker with passwords: each account's is its name.
class Site {
 public:
  Site() : folder_(Folder()), kafka_(fmt::format("--properties {}/broker", folder_)) {}
  ~Site() { std::filesystem::remove_all(folder_); }

  Brokers BrokersOf(const std::string& account) const {
    const std::string file = fmt::format("{}/{}", folder_, account);
    std::ofstream(file) << fmt::format(
        "security.protocol=sasl_plaintext\nsasl.mechanism=PLAIN\n"
        "sasl.username={0}\nsasl.password={0}\n",
        account);
    return {kafka_.bootstrap(), file};
  }

  // As an administrator gives them.
  void Give(const std::vector<Right>& rights) const {
    ClientConfig config(BrokersOf("root"), "test");
    const auto client = config.Create(RD_KAFKA_PRODUCER);
    CHECK(client.ok(), "{}", fluxqueue::Message(client.status()));
    std::vector<rd_kafka_AclBinding_t*> bindings;
    char said[512];
    for (const Right& right : rights) {
      for (const std::string_view operation : right.operations) {
        bindings.push_back(rd_kafka_AclBinding_new(
            right.resource == "topic" ? RD_KAFKA_RESOURCE_TOPIC : RD_KAFKA_RESOURCE_GROUP,
            right.name.c_str(),
            RD_KAFKA_RESOURCE_PATTERN_LITERAL,
            fmt::format("User:{}", right.account).c_str(),
            "*",
            kOperations.at(operation),
            RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW,
            said,
            sizeof said));
      }
    }
    const QueueHandle answers(rd_kafka_queue_new(client->get()));
    rd_kafka_CreateAcls(client->get(), bindings.data(), bindings.size(), nullptr, answers.get());
    rd_kafka_event_t* answer = rd_kafka_queue_poll(answers.get(), 10'000);
    CHECK(answer != nullptr && rd_kafka_event_error(answer) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_event_destroy(answer);
    rd_kafka_AclBinding_destroy_array(bindings.data(), bindings.size());
  }

 private:
  static std::string Folder() {
    std::string folder =
        (std::filesystem::temp_directory_path() / "fluxqueue-accounts-XXXXXX").string();
    CHECK(mkdtemp(folder.data()) != nullptr, "{}", folder);
    std::string users;
    for (const char* name : {"root", "admission", "queue", "matcher", "binder", "cleanup", "cli"}) {
      users += fmt::format(" user_{0}=\"{0}\"", name);
    }
    std::ofstream(folder + "/broker") << fmt::format(
        "listener.security.protocol.map=BROKER:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "sasl.enabled.mechanisms=PLAIN\nsasl.mechanism.inter.broker.protocol=PLAIN\n"
        "listener.name.broker.plain.sasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"root\" "
        "password=\"root\"{};\n"
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "super.users=User:root;User:ANONYMOUS\n",
        users);
    return folder;
  }

  const std::string folder_;
  testing::MiniKafka kafka_;
};

class KafkaAccountsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    site_ = new Site;
    site_->Give(Rights({}));
  }
  static void TearDownTestSuite() { delete std::exchange(site_, nullptr); }

  static absl::Status MakeTopics(const std::string& service) {
    delivery::LoopOptions options;
    options.service = service;
    options.brokers = site_->BrokersOf(service);
    return delivery::MakeTopics(options);
  }
  void SetUp() override { MakeAll(); }

  // A broker learns of rights and topics a while later than it says, or is away for a moment.
  static absl::Status MakeTopicsInTime(const std::string& service) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    absl::Status made;
    do {
      made = MakeTopics(service);
    } while (!made.ok() && std::chrono::steady_clock::now() < end);
    return made;
  }

  static void MakeAll() {
    const absl::Status made = MakeTopicsInTime("queue");
    ASSERT_TRUE(made.ok()) << fluxqueue::Message(made);
    for (const TopicSpec& spec : TopicSpecs({})) AwaitPartitions(spec.name, spec.partitions);
  }

  // The broker answers a while by what was before.
  static void AwaitPartitions(const std::string& topic, int wanted) {
    const auto root = Admin::Create(site_->BrokersOf("root"));
    ASSERT_TRUE(root.ok()) << fluxqueue::Message(root.status());
    const auto end = std::chrono::steady_clock::now() + kPatience;
    absl::StatusOr<int> seen = 0;
    do {
      seen = (*root)->PartitionCount(topic);
      ASSERT_TRUE(seen.ok()) << fluxqueue::Message(seen.status());
    } while (*seen != wanted && std::chrono::steady_clock::now() < end);
    ASSERT_EQ(*seen, wanted) << topic;
  }

  static std::vector<std::string> Accounts() {
    std::vector<std::string> accounts = kServices;
    accounts.emplace_back("cli");
    return accounts;
  }

  static bool May(const std::string& account, const std::string& name, std::string_view operation) {
    const std::vector<Right> rights = Rights({});
    return std::any_of(rights.begin(), rights.end(), [&](const Right& right) {
      return right.account == account && right.name == name &&
             std::find(right.operations.begin(), right.operations.end(), operation) !=
                 right.operations.end();
    });
  }

  static void Expect(bool allowed, const absl::Status& status, const std::string& what) {
    if (allowed) {
      EXPECT_TRUE(status.ok()) << what << ": " << fluxqueue::Message(status);
    } else {
      EXPECT_THAT(fluxqueue::Message(status), HasSubstr("uthorization failed")) << what;
    }
  }

  static absl::Status Write(const std::string& account, const std::string& topic) {
    ASSIGN_OR_RETURN(const auto producer,
                     Producer::Create(site_->BrokersOf(account), account, [](uint64_t) {}));
    RETURN_IF_ERROR(producer->Produce(topic, 0, "key", "value", {}, 0));
    const absl::Status flushed = producer->Flush(kPatience);
    return producer->failed().ok() ? flushed : producer->failed();
  }

  // Without a group.
  static absl::Status Read(const std::string& account, const std::string& topic) {
    ClientConfig config(site_->BrokersOf(account), "test");
    ASSIGN_OR_RETURN(const ClientHandle client, config.Create(RD_KAFKA_CONSUMER));
    rd_kafka_topic_t* handle = rd_kafka_topic_new(client.get(), topic.c_str(), nullptr);
    // A topic that may not even be seen is waited for, without a word.
    const rd_kafka_metadata_t* seen = nullptr;
    RETURN_IF_ERROR(KafkaStatus(
        rd_kafka_metadata(client.get(), 0, handle, &seen, static_cast<int>(kPatience.count())),
        topic));
    const absl::Status visible = KafkaStatus(seen->topics[0].err, topic);
    rd_kafka_metadata_destroy(seen);
    if (!visible.ok()) {
      rd_kafka_topic_destroy(handle);
      return visible;
    }
    rd_kafka_consume_start(handle, 0, RD_KAFKA_OFFSET_BEGINNING);
    rd_kafka_message_t* message = rd_kafka_consume(handle, 0, static_cast<int>(kPatience.count()));
    const rd_kafka_resp_err_t error =
        message == nullptr ? RD_KAFKA_RESP_ERR__TIMED_OUT : message->err;
    if (message != nullptr) rd_kafka_message_destroy(message);
    rd_kafka_consume_stop(handle, 0);
    rd_kafka_topic_destroy(handle);
    return KafkaStatus(error, topic);
  }

  static absl::Status Join(const std::string& account, const std::string& group) {
    ASSIGN_OR_RETURN(const auto consumer,
                     Consumer::Create({.brokers = site_->BrokersOf(account),
                                       .topic = TopicNames().pool,
                                       .group = group,
                                       .instance = account}));
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      std::vector<kafka::Message> messages;
      const absl::Status status = consumer->Poll(Millis{100}, 1, &messages);
      if (absl::IsFailedPrecondition(status)) return status;
      if (consumer->TakeAssignment().has_value()) return absl::OkStatus();
    }
    return Unavailable("{} gets nothing from group {}", account, group);
  }

  static inline Site* site_ = nullptr;
};

TEST_F(KafkaAccountsTest, OfTheQueueMakesTopicsAndTheOthersWaitForIt) {
  const auto root = Admin::Create(site_->BrokersOf("root"));
  ASSERT_TRUE(root.ok()) << fluxqueue::Message(root.status());
  ASSERT_TRUE((*root)->DeleteTopic(TopicNames().dead_letter).ok());
  AwaitPartitions(TopicNames().dead_letter, 0);
  for (const std::string& service : kServices) {
    if (service == "queue") continue;
    const absl::Status waits = MakeTopics(service);
    EXPECT_TRUE(absl::IsUnavailable(waits)) << service << ": " << waits;
    EXPECT_THAT(fluxqueue::Message(waits), HasSubstr("no topic fluxqueue.dead-letter")) << service;
  }
  MakeAll();
  for (const std::string& service : kServices) {
    const absl::Status made = MakeTopicsInTime(service);
    EXPECT_TRUE(made.ok()) << service << ": " << fluxqueue::Message(made);
  }
}

TEST_F(KafkaAccountsTest, WriteAndReadTheirOwnTopicsAndNoOthers) {
  const TopicNames names;
  for (const std::string& topic : {names.pool, names.jobs, names.dead_letter}) {
    ASSERT_TRUE(Write("cli", topic).ok());
    for (const std::string& account : Accounts()) {
      const std::string what = account + " and " + topic;
      Expect(May(account, topic, "Write"), Write(account, topic), what);
      Expect(May(account, topic, "Read"), Read(account, topic), what);
    }
  }
}

TEST_F(KafkaAccountsTest, JoinTheirOwnGroupAndNoOther) {
  for (const char* group : {"fluxqueue.queue", "fluxqueue.matcher", "fluxqueue.binder"}) {
    for (const std::string& account : Accounts()) {
      // The binder's is of another topic.
      if (account == "binder" && May(account, group, "Read")) continue;
      Expect(May(account, group, "Read"), Join(account, group), account + " and " + group);
    }
  }
}

TEST_F(KafkaAccountsTest, MakeAndDeleteNothingElse) {
  for (const std::string& account : Accounts()) {
    const auto admin = Admin::Create(site_->BrokersOf(account));
    ASSERT_TRUE(admin.ok()) << fluxqueue::Message(admin.status());
    const auto made = (*admin)->EnsureTopics({{"others", 1, {}}});
    EXPECT_THAT(fluxqueue::Message(made.status()), HasSubstr("may not make one")) << account;
    for (const std::string& topic : {TopicNames().pool, TopicNames().jobs}) {
      Expect(false, (*admin)->DeleteTopic(topic), account + " and " + topic);
    }
  }
}

TEST_F(KafkaAccountsTest, OfTheCommandLineReadsAll) {
  const TopicNames names;
  const Brokers brokers = site_->BrokersOf("cli");
  for (const std::string& topic : {names.pool, names.jobs, names.dead_letter}) {
    ASSERT_TRUE(Write("cli", topic).ok());
    int records = 0;
    const auto read = ReadPartition(brokers, topic, 0, 0, [&](const kafka::Message&) {
      ++records;
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << fluxqueue::Message(read.status());
    EXPECT_GT(records, 0) << topic;
  }
  const auto tail = Tail::Open(brokers, {{names.jobs, 0}}, Millis{0});
  ASSERT_TRUE(tail.ok()) << fluxqueue::Message(tail.status());
  const auto record = (*tail)->Next(kPatience);
  ASSERT_TRUE(record.ok()) << fluxqueue::Message(record.status());
  EXPECT_TRUE(record->has_value());
}

// What administrators go by, and the site of deploy.kubelet.
TEST(KafkaRightsTest, AreThoseOfTheManual) {
  std::string table;
  for (const Right& right : Rights({})) {
    table += fmt::format("| {} | {} | `{}` | {} |\n",
                         std::string(right.account),
                         std::string(right.resource),
                         right.name,
                         fmt::join(right.operations, ", "));
  }
  std::ifstream file(FLUXQUEUE_SOURCE_DIR "/deploy/docs/security.md");
  const std::string manual(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(manual, HasSubstr(table));
}

}  // namespace
}  // namespace fluxqueue::kafka
