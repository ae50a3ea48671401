// The pure parts; what needs a broker is in admin_integration_test.cc and libs/delivery's test.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/client.h"
#include "libs/kafka/envelope.h"
#include "libs/kafka/topic_check.h"
#include "libs/kafka/topics.h"

namespace fluxqueue::kafka {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

TEST(TopicsTest, JobPartitionIsCrc32) {
  // zlib.crc32(b"0d9f5c1e-7a55-4c1b-9c3e-2b8f6a1d4e70") % 12 and so on: other languages must agree.
  EXPECT_EQ(JobPartition("", 12), 0);
  EXPECT_EQ(JobPartition("a", 12), 0xe8b7be43U % 12);
  EXPECT_EQ(JobPartition("123456789", 12), 0xcbf43926U % 12);
}

TEST(TopicsTest, JobsSpreadOverAllPartitions) {
  std::set<int> seen;
  for (int i = 0; i < 500; ++i) seen.insert(JobPartition(fmt::format("job-{}", i)));
  EXPECT_EQ(seen.size(), kJobsPartitions);
  EXPECT_EQ(*seen.rbegin(), kJobsPartitions - 1);
}

TEST(TopicsTest, EveryTopicStampsOnAppend) {
  for (const TopicSpec& spec : TopicSpecs({})) {
    EXPECT_EQ(spec.config.at("message.timestamp.type"), "LogAppendTime") << spec.name;
  }
}

// A pool topic as the services make it, on three brokers.
TopicState GoodTopic() {
  const TopicSpec spec = TopicSpecs({})[0];
  TopicState state{.partitions = spec.partitions, .replicas = 3, .config = spec.config};
  state.config["cleanup.policy"] = "delete";
  state.config["min.insync.replicas"] = "2";
  state.config["retention.bytes"] = "-1";
  state.config["unclean.leader.election.enable"] = "false";
  return state;
}

std::vector<TopicFault> Judged(const std::string& key, const std::string& value) {
  TopicState state = GoodTopic();
  state.config[key] = value;
  return JudgeTopic(TopicSpecs({})[0], state);
}

MATCHER_P2(Faulty, fatal, part, "") {
  return arg.fatal == fatal && arg.text.find("topic fluxqueue.pool has ") == 0 &&
         arg.text.find(part) != std::string::npos;
}

TEST(TopicCheckTest, WhatTheServicesMakeIsWell) {
  EXPECT_THAT(JudgeTopic(TopicSpecs({})[0], GoodTopic()), IsEmpty());
  TopicState laptop = GoodTopic();
  laptop.replicas = 1;
  laptop.config["min.insync.replicas"] = "1";
  EXPECT_THAT(JudgeTopic(TopicSpecs({})[0], laptop), IsEmpty());
  EXPECT_THAT(Judged("retention.ms", "-1"), IsEmpty());
}

TEST(TopicCheckTest, NamesWhatTheServicesCannotWorkWith) {
  EXPECT_THAT(Judged("message.timestamp.type", "CreateTime"),
              ElementsAre(Faulty(true, "message.timestamp.type=CreateTime, it must be")));
  EXPECT_THAT(Judged("max.message.bytes", "1048588"),
              ElementsAre(Faulty(true, "max.message.bytes=1048588, it must be at least 4259840")));
  EXPECT_THAT(Judged("cleanup.policy", "compact,delete"),
              ElementsAre(Faulty(true, "cleanup.policy=compact,delete, it must be delete")));
  EXPECT_THAT(Judged("min.insync.replicas", "4"),
              ElementsAre(Faulty(true, "it must not exceed its 3 replicas")));
  TopicState narrow = GoodTopic();
  narrow.partitions = 3;
  EXPECT_THAT(JudgeTopic(TopicSpecs({})[0], narrow),
              ElementsAre(Faulty(true, "3 partitions, 12 are needed")));
}

TEST(TopicCheckTest, WarnsOfWhatTheLogMayLose) {
  EXPECT_THAT(Judged("min.insync.replicas", "1"), ElementsAre(Faulty(false, "be 2 or more")));
  EXPECT_THAT(Judged("retention.ms", "86400000"),
              ElementsAre(Faulty(false, "retention.ms=86400000, it must be at least 604800000")));
  EXPECT_THAT(Judged("retention.bytes", "1000000"), ElementsAre(Faulty(false, "be -1")));
  EXPECT_THAT(Judged("unclean.leader.election.enable", "true"),
              ElementsAre(Faulty(false, "be false")));
}

TEST(EnvelopeTest, HeadersFollowCloudEvents) {
  events::v1::Envelope envelope;
  envelope.set_stream("queue/3");
  envelope.set_sequence(42);
  envelope.set_time_ms(1500);
  envelope.mutable_job_fact()->set_job_id("j1");
  envelope.set_pool("default");
  EXPECT_THAT(EnvelopeHeaders(envelope, 7),
              ElementsAre(Pair("ce_id", "queue/3/7/42"),
                          Pair("ce_type", "job_fact"),
                          Pair("ce_source", "queue"),
                          Pair("ce_time", "1970-01-01T00:00:01.500Z")));
  EXPECT_EQ(RecordKey(envelope), "j1");
  envelope.mutable_tick();
  EXPECT_EQ(RecordKey(envelope), "default");
  EXPECT_EQ(EventType(envelope), "tick");
}

TEST(EnvelopeTest, AnEventIdNamesItsPlace) {
  const auto position = PositionOf({{"x", "y"}, {"ce_id", EventId("queue/3", 7, 42)}});
  ASSERT_TRUE(position.has_value());
  EXPECT_EQ(position->stream, "queue/3");
  EXPECT_EQ(position->sequence, 42);
  EXPECT_FALSE(PositionOf({}).has_value());
  for (const char* text : {"", "queue/3/7", "queue/3/7/0", "queue/3/7/x", "a/b/c/d/1", "///"}) {
    EXPECT_FALSE(PositionOf({{"ce_id", text}}).has_value()) << text;
  }
}

TEST(EnvelopeTest, AnEmptyEnvelopeHasNoType) {
  EXPECT_EQ(EventType({}), "");
}

TEST(ClientTest, ABadSettingIsNamed) {
  ClientConfig config(std::string("127.0.0.1:1"), "test");
  config.Set("no.such.setting", "7");
  const absl::Status status = config.Create(RD_KAFKA_PRODUCER).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(fluxqueue::Message(status), HasSubstr("no.such.setting"));
}

// What Create says with these lines in the file of properties.
absl::Status WithProperties(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/client.properties";
  std::ofstream(path) << text;
  return ClientConfig({"127.0.0.1:1", path}, "test").Create(RD_KAFKA_PRODUCER).status();
}

TEST(ClientTest, TakesHowToTalkFromAFile) {
  EXPECT_TRUE(WithProperties("# of the brokers\n\nsecurity.protocol=SASL_PLAINTEXT\r\n"
                             "sasl.mechanism=SCRAM-SHA-512\nsasl.username=u\nsasl.password=a=b\n")
                  .ok());
  EXPECT_THAT(
      fluxqueue::Message(WithProperties("security.protocol=SSL\nssl.ca.location=/missing.crt\n")),
      HasSubstr("ssl.ca.location"));
}

TEST(ClientTest, OnlyHowToTalkAndNoPasswordInTheMessage) {
  EXPECT_THAT(fluxqueue::Message(WithProperties("security.protocol=SSL\nacks=0\n")),
              AllOf(HasSubstr("client.properties:2"), HasSubstr("sasl.*")));
  EXPECT_THAT(fluxqueue::Message(WithProperties("secret")), Not(HasSubstr("secret")));
  EXPECT_THAT(
      fluxqueue::Message(
          ClientConfig({"127.0.0.1:1", "/missing"}, "test").Create(RD_KAFKA_PRODUCER).status()),
      HasSubstr("/missing"));
}

// How a client talks to these brokers, with these lines in the file of properties.
std::string ProtocolTo(const std::string& bootstrap, const std::string& properties = "") {
  const std::string path = ::testing::TempDir() + "/protocol.properties";
  std::ofstream(path) << properties;
  ClientConfig config({bootstrap, properties.empty() ? "" : path}, "test");
  std::string protocol = config.SecurityProtocol();
  const absl::Status status = config.Create(RD_KAFKA_PRODUCER).status();
  return status.ok() ? protocol : fluxqueue::Message(status);
}

TEST(ClientTest, OtherMachinesAreReachedByTlsUnlessPlainTextIsSaid) {
  EXPECT_EQ(ProtocolTo("kafka:9092"), "ssl");
  EXPECT_EQ(ProtocolTo("127.0.0.1:9092,kafka:9092"), "ssl");
  EXPECT_EQ(ProtocolTo("kafka:9092", "sasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=p\n"),
            "sasl_ssl");
  EXPECT_EQ(ProtocolTo("127.0.0.1:9092,localhost:9093,[::1]:9094"), "plaintext");
  EXPECT_EQ(ProtocolTo("plaintext://kafka:9092"), "plaintext");
  EXPECT_EQ(ProtocolTo("plaintext://a:9092,b:9092"), "plaintext");
  EXPECT_EQ(ProtocolTo("kafka:9092", "security.protocol=plaintext\n"), "plaintext");
  EXPECT_THAT(ProtocolTo("plaintext://kafka:9092", "security.protocol=ssl\n"),
              AllOf(HasSubstr("plaintext://"), HasSubstr("take one of the two away")));
}

TEST(AdminTest, SaysWhyNoBrokerIsReached) {
  const auto admin = Admin::Create(std::string("127.0.0.1:1"), Millis{500});
  ASSERT_TRUE(admin.ok());
  const absl::Status status = (*admin)->PartitionCount("t").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(fluxqueue::Message(status),
              AllOf(HasSubstr("Connection refused"), HasSubstr("kafka.bootstrap")));
}

TEST(ClientTest, ErrorsSayWhatToDo) {
  EXPECT_TRUE(KafkaStatus(RD_KAFKA_RESP_ERR_NO_ERROR, "x").ok());
  EXPECT_TRUE(absl::IsUnavailable(KafkaStatus(RD_KAFKA_RESP_ERR__TRANSPORT, "x")));
  const absl::Status fenced = KafkaStatus(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "join");
  EXPECT_TRUE(absl::IsFailedPrecondition(fenced));
  EXPECT_THAT(fluxqueue::Message(fenced), HasSubstr("instance"));
}

}  // namespace
}  // namespace fluxqueue::kafka
