#include "libs/kafka/tail.h"

#include "libs/base/status_macros.h"
#include "libs/kafka/ends.h"

namespace fluxqueue::kafka {
namespace {

constexpr Millis kTimeout{10'000};

}  // namespace

// Sets where each partition begins, and what stands in it.
absl::StatusOr<PartitionList> Tail::Places(const std::vector<TopicPartition>& partitions,
                                           Millis since) {
  PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const auto& [topic, partition] : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = since.count();
  }
  RETURN_IF_ERROR(AskOffsets(client_.get(), list.get(), kTimeout, "records by their time"));
  for (int i = 0; i < list->cnt; ++i) {
    rd_kafka_topic_partition_t& place = list->elems[i];
    ASSIGN_OR_RETURN(const Watermarks marks,
                     QueryEnds(client_.get(), place.topic, place.partition, kTimeout));
    if (place.offset < 0) place.offset = marks.high;  // nothing is as new
    if (place.offset < marks.high) behind_[{place.topic, place.partition}] = marks.high;
  }
  return list;
}

absl::StatusOr<std::unique_ptr<Tail>> Tail::Open(const Brokers& brokers,
                                                 const std::vector<TopicPartition>& partitions,
                                                 Millis since) {
  ClientConfig config(brokers, "fluxqueue-tail");
  // librdkafka wants a group's name although nothing is joined.
  config.Set("group.id", "fluxqueue.tail")
      .Set("enable.auto.commit", "false")
      .Set("auto.offset.reset", "earliest");
  ASSIGN_OR_RETURN(ClientHandle client, config.Create(RD_KAFKA_CONSUMER));
  rd_kafka_poll_set_consumer(client.get());
  std::unique_ptr<Tail> tail(new Tail(std::move(client)));
  ASSIGN_OR_RETURN(const PartitionList list, tail->Places(partitions, since));
  RETURN_IF_ERROR(KafkaStatus(rd_kafka_assign(tail->client_.get(), list.get()), "read the log"));
  return tail;
}

absl::StatusOr<std::optional<TailRecord>> Tail::Next(Millis timeout) {
  const MessageHandle record(
      rd_kafka_consumer_poll(client_.get(), static_cast<int>(timeout.count())));
  if (record == nullptr) return std::nullopt;
  RETURN_IF_ERROR(KafkaStatus(record->err, "read the log"));
  TailRecord result{rd_kafka_topic_name(record->rkt), CopyMessage(*record)};
  const auto behind = behind_.find({result.topic, result.message.partition});
  if (behind != behind_.end() && record->offset + 1 >= behind->second) behind_.erase(behind);
  return result;
}

}  // namespace fluxqueue::kafka
