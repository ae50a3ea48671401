#include "libs/kafka/ends.h"

#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::kafka {
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

absl::StatusOr<std::map<int, Watermarks>> QueryEnds(rd_kafka_t* client,
                                                    const std::string& topic,
                                                    const std::vector<int>& partitions,
                                                    Millis timeout) {
  std::map<int, Watermarks> marks;
  for (const auto& [place, end] : {std::pair(RD_KAFKA_OFFSET_BEGINNING, &Watermarks::low),
                                   std::pair(RD_KAFKA_OFFSET_END, &Watermarks::high)}) {
    const PartitionList list(
        rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
    for (const int partition : partitions) {
      rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = place;
    }
    RETURN_IF_ERROR(AskOffsets(client, list.get(), timeout, "ends"));
    for (int i = 0; i < list->cnt; ++i) {
      marks[list->elems[i].partition].*end = list->elems[i].offset;
    }
  }
  return marks;
}

absl::StatusOr<Watermarks> QueryEnds(rd_kafka_t* client,
                                     const std::string& topic,
                                     int partition,
                                     Millis timeout) {
  ASSIGN_OR_RETURN(const auto marks, QueryEnds(client, topic, std::vector{partition}, timeout));
  return marks.at(partition);
}

}  // namespace fluxqueue::kafka
