#include "libs/kafka/ends.h"

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::kafka {
namespace {

absl::StatusOr<int64_t> Ask(
    rd_kafka_t* client, const std::string& topic, int partition, int64_t place, Millis timeout) {
  const PartitionList list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = place;
  RETURN_IF_ERROR(AskOffsets(client, list.get(), timeout, "ends"));
  return list->elems[0].offset;
}

}  // namespace

absl::Status AskOffsets(rd_kafka_t* client,
                        rd_kafka_topic_partition_list_t* list,
                        Millis timeout,
                        std::string_view doing) {
  if (list->cnt == 0) return absl::OkStatus();
  const rd_kafka_resp_err_t error =
      rd_kafka_offsets_for_times(client, list, static_cast<int>(timeout.count()));
  RETURN_IF_ERROR(KafkaStatus(error, fmt::format("{} of topic {}", doing, list->elems[0].topic)));
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& item = list->elems[i];
    RETURN_IF_ERROR(KafkaStatus(
        item.err, fmt::format("{} of topic {} partition {}", doing, item.topic, item.partition)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Watermarks> QueryEnds(rd_kafka_t* client,
                                     const std::string& topic,
                                     int partition,
                                     Millis timeout) {
  Watermarks marks;
  ASSIGN_OR_RETURN(marks.low, Ask(client, topic, partition, RD_KAFKA_OFFSET_BEGINNING, timeout));
  ASSIGN_OR_RETURN(marks.high, Ask(client, topic, partition, RD_KAFKA_OFFSET_END, timeout));
  return marks;
}

}  // namespace fluxqueue::kafka
