#include "libs/kafka/reader.h"

#include <algorithm>

#include "libs/base/status_macros.h"
#include "libs/kafka/client.h"
#include "libs/kafka/ends.h"

namespace fluxqueue::kafka {

absl::StatusOr<Watermarks> ReadPartition(const Brokers& brokers,
                                         const std::string& topic,
                                         int partition,
                                         int64_t from,
                                         const std::function<absl::Status(const Message&)>& each,
                                         Millis patience) {
  ClientConfig config(brokers, "fluxqueue-reader");
  // librdkafka wants a group's name although nothing is joined.
  config.Set("group.id", "fluxqueue.reader")
      .Set("enable.auto.commit", "false")
      .Set("auto.offset.reset", "error");
  ASSIGN_OR_RETURN(const ClientHandle client, config.Create(RD_KAFKA_CONSUMER));
  rd_kafka_poll_set_consumer(client.get());
  ASSIGN_OR_RETURN(const Watermarks marks, QueryEnds(client.get(), topic, partition, patience));
  int64_t next = std::max(from, marks.low);
  if (next >= marks.high) return marks;

  const PartitionList list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = next;
  RETURN_IF_ERROR(KafkaStatus(rd_kafka_assign(client.get(), list.get()), "read topic " + topic));
  const auto doing = [&] {
    return fmt::format("read topic {} partition {} at offset {}", topic, partition, next);
  };
  while (next < marks.high) {
    const MessageHandle record(
        rd_kafka_consumer_poll(client.get(), static_cast<int>(patience.count())));
    if (record == nullptr) {
      return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                        "{}: nothing came for {} ms",
                        doing(),
                        patience.count());
    }
    RETURN_IF_ERROR(KafkaStatus(record->err, doing()));
    if (record->offset >= marks.high) break;
    next = record->offset + 1;
    RETURN_IF_ERROR(each(CopyMessage(*record)));
  }
  return marks;
}

}  // namespace fluxqueue::kafka
