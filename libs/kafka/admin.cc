#include "libs/kafka/admin.h"

#include <algorithm>
#include <array>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/kafka/ends.h"

namespace fluxqueue::kafka {
namespace {

constexpr size_t kErrorText = 512;
using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t, Destroyer<rd_kafka_NewTopic_destroy>>;
using DeleteTopicHandle =
    std::unique_ptr<rd_kafka_DeleteTopic_t, Destroyer<rd_kafka_DeleteTopic_destroy>>;
using Resource =
    std::unique_ptr<rd_kafka_ConfigResource_t, Destroyer<rd_kafka_ConfigResource_destroy>>;
using Event = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
using AdminOptions =
    std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
using Metadata = std::unique_ptr<const rd_kafka_metadata_t, void (*)(const rd_kafka_metadata_t*)>;

// Issues one admin request through `send(queue, options)` and waits for its event.
template <typename Send>
absl::StatusOr<Event> Ask(rd_kafka_t* client,
                          Millis timeout,
                          std::string_view doing,
                          const Send& send) {
  const auto ms = static_cast<int>(timeout.count());
  const QueueHandle queue(rd_kafka_queue_new(client));
  const AdminOptions options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_ANY));
  std::array<char, kErrorText> text{};
  rd_kafka_AdminOptions_set_request_timeout(options.get(), ms, text.data(), text.size());
  send(queue.get(), options.get());
  // The request has a time limit of its own; the second is for its answer to reach us.
  Event event(rd_kafka_queue_poll(queue.get(), ms + 1000));
  if (event == nullptr) return Unavailable("{}: Kafka does not answer", doing);
  if (const rd_kafka_resp_err_t error = rd_kafka_event_error(event.get());
      error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return KafkaStatus(error,
                       fmt::format("{}: {}", doing, rd_kafka_event_error_string(event.get())));
  }
  return event;
}

absl::Status TopicResult(const rd_kafka_topic_result_t* result, std::string_view doing) {
  const char* text = rd_kafka_topic_result_error_string(result);
  return KafkaStatus(rd_kafka_topic_result_error(result),
                     text == nullptr ? std::string(doing) : fmt::format("{}: {}", doing, text));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Admin>> Admin::Create(const Brokers& brokers, Millis timeout) {
  std::unique_ptr<Admin> admin(new Admin(brokers, timeout));
  ClientConfig config(brokers, "fluxqueue-admin");
  rd_kafka_conf_set_opaque(config.get(), admin.get());
  rd_kafka_conf_set_error_cb(config.get(), &Admin::OnError);
  // It would say what the statuses say.
  rd_kafka_conf_set_log_cb(config.get(), nullptr);
  ASSIGN_OR_RETURN(admin->client_, config.Create(RD_KAFKA_PRODUCER));
  return admin;
}

void Admin::OnError(rd_kafka_t* /*client*/, int code, const char* reason, void* self) {
  // Follows when each broker has failed for a reason of its own.
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) return;
  auto* admin = static_cast<Admin*>(self);
  const absl::MutexLock lock(&admin->mutex_);
  admin->away_ = reason;
}

absl::Status Admin::Failure(rd_kafka_resp_err_t code, std::string_view doing) {
  absl::Status status = KafkaStatus(code, doing);
  rd_kafka_poll(client_.get(), 0);
  const absl::MutexLock lock(&mutex_);
  if (!absl::IsUnavailable(status) || away_.empty()) return status;
  return Unavailable("{}: {} (see kafka.bootstrap{}{})",
                     fluxqueue::Message(status),
                     away_,
                     brokers_.properties.empty() ? "" : " and the file ",
                     brokers_.properties);
}

absl::StatusOr<int> Admin::PartitionCount(const std::string& topic) {
  ASSIGN_OR_RETURN(const TopicState shape, Shape(topic));
  return shape.partitions;
}

absl::StatusOr<TopicState> Admin::Describe(const std::string& topic) {
  ASSIGN_OR_RETURN(TopicState state, Shape(topic));
  if (state.partitions == 0) return state;
  ASSIGN_OR_RETURN(state.config, Settings(topic));
  return state;
}

absl::StatusOr<TopicState> Admin::Shape(const std::string& topic) {
  const rd_kafka_metadata_t* raw = nullptr;
  // All topics: to ask for one by name can make it, with the broker's defaults instead of our
  // settings.
  if (const rd_kafka_resp_err_t error =
          rd_kafka_metadata(client_.get(), 1, nullptr, &raw, static_cast<int>(timeout_.count()));
      error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Failure(error, "list Kafka's topics");
  }
  const Metadata metadata(raw, &rd_kafka_metadata_destroy);
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const rd_kafka_metadata_topic_t& found = metadata->topics[i];
    if (found.topic != topic) continue;
    TopicState state{.partitions = found.partition_cnt};
    for (int p = 0; p < found.partition_cnt; ++p) {
      const rd_kafka_metadata_partition_t& partition = found.partitions[p];
      if (p == 0) state.replicas = partition.replica_cnt;
      state.in_sync = std::min(state.in_sync.value_or(partition.isr_cnt), partition.isr_cnt);
    }
    return state;
  }
  return TopicState();
}

absl::Status Admin::CreateTopic(const TopicSpec& spec) {
  const std::string doing = fmt::format("make topic {}", spec.name);
  std::array<char, kErrorText> text{};
  constexpr int kBrokersDefault = -1;
  const NewTopic topic(rd_kafka_NewTopic_new(
      spec.name.c_str(), spec.partitions, kBrokersDefault, text.data(), text.size()));
  if (topic == nullptr) return InvalidArgument("{}: {}", doing, text.data());
  for (const auto& [key, value] : spec.config) {
    RETURN_IF_ERROR(
        KafkaStatus(rd_kafka_NewTopic_set_config(topic.get(), key.c_str(), value.c_str()), doing));
  }
  std::array<rd_kafka_NewTopic_t*, 1> topics = {topic.get()};
  ASSIGN_OR_RETURN(
      const Event event, Ask(client_.get(), timeout_, doing, [&](auto* queue, auto* options) {
        rd_kafka_CreateTopics(client_.get(), topics.data(), topics.size(), options, queue);
      }));
  size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  // Another service that starts beside us may have been quicker.
  if (rd_kafka_topic_result_error(results[0]) == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
    return absl::OkStatus();
  }
  // One that starts beside us may have the right to.
  if (rd_kafka_topic_result_error(results[0]) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
    return Unavailable(
        "there is no topic {} that this account may see, and it may not make one: the queue does "
        "when it starts (deploy/docs/security.md says which rights are wanted in Kafka)",
        spec.name);
  }
  return TopicResult(results[0], doing);
}

absl::StatusOr<std::map<std::string, std::string>> Admin::Settings(const std::string& topic) {
  const std::string doing = fmt::format("look up the settings of topic {}", topic);
  const Resource resource(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  std::array<rd_kafka_ConfigResource_t*, 1> resources = {resource.get()};
  ASSIGN_OR_RETURN(
      const Event event, Ask(client_.get(), timeout_, doing, [&](auto* queue, auto* options) {
        rd_kafka_DescribeConfigs(client_.get(), resources.data(), resources.size(), options, queue);
      }));
  size_t count = 0;
  const rd_kafka_ConfigResource_t** results = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event.get()), &count);
  const rd_kafka_resp_err_t error = rd_kafka_ConfigResource_error(results[0]);
  // One that was listed by a broker: it is being made, and has not reached the broker asked now.
  if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
    return Unavailable("{}: not every broker knows it", doing);
  }
  RETURN_IF_ERROR(KafkaStatus(error, doing));
  const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(results[0], &count);
  std::map<std::string, std::string> settings;
  for (size_t i = 0; i < count; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(entries[i]);
    if (value != nullptr) settings[rd_kafka_ConfigEntry_name(entries[i])] = value;
  }
  return settings;
}

absl::StatusOr<Admin::Ensured> Admin::EnsureTopics(const std::vector<TopicSpec>& specs) {
  Ensured ensured;
  for (const TopicSpec& spec : specs) {
    ASSIGN_OR_RETURN(const TopicState state, Describe(spec.name));
    if (state.partitions == 0) {
      RETURN_IF_ERROR(CreateTopic(spec));
      ensured.made.push_back(spec.name);
      continue;
    }
    for (TopicFault& fault : JudgeTopic(spec, state)) {
      if (fault.fatal) {
        return MakeStatus(absl::StatusCode::kFailedPrecondition, "{}", fault.text);
      }
      ensured.warnings.push_back(std::move(fault.text));
    }
  }
  return ensured;
}

absl::StatusOr<Watermarks> Admin::QueryWatermarks(const std::string& topic, int partition) {
  return QueryEnds(client_.get(), topic, partition, timeout_);
}

absl::Status Admin::DeleteTopic(const std::string& name) {
  const std::string doing = fmt::format("delete topic {}", name);
  const DeleteTopicHandle topic(rd_kafka_DeleteTopic_new(name.c_str()));
  std::array<rd_kafka_DeleteTopic_t*, 1> topics = {topic.get()};
  ASSIGN_OR_RETURN(
      const Event event, Ask(client_.get(), timeout_, doing, [&](auto* queue, auto* options) {
        rd_kafka_DeleteTopics(client_.get(), topics.data(), topics.size(), options, queue);
      }));
  size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event.get()), &count);
  return TopicResult(results[0], doing);
}

}  // namespace fluxqueue::kafka
