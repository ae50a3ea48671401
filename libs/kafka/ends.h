// Where logs begin and end, and what stands where, asked of the brokers that lead them.
//
// Not by rd_kafka_query_watermark_offsets: that asks a broker that does not lead any more again and
// again, for the minute that a request may take, whatever timeout it is given.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kafka/bus.h"
#include "libs/kafka/client.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kafka {

// Puts into `list`, which is of one topic, what the leaders answer, each asked once for all of its
// partitions. An offset in it is a time, RD_KAFKA_OFFSET_BEGINNING or RD_KAFKA_OFFSET_END; it
// becomes that of the first record at or after it, RD_KAFKA_OFFSET_END where there is none. `doing`
// stands in errors.
absl::Status AskOffsets(rd_kafka_t* client,
                        rd_kafka_topic_partition_list_t* list,
                        Millis timeout,
                        std::string_view doing);

absl::StatusOr<std::map<int, Watermarks>> QueryEnds(rd_kafka_t* client,
                                                    const std::string& topic,
                                                    const std::vector<int>& partitions,
                                                    Millis timeout);
absl::StatusOr<Watermarks> QueryEnds(rd_kafka_t* client,
                                     const std::string& topic,
                                     int partition,
                                     Millis timeout);

}  // namespace fluxqueue::kafka
