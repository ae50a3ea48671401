// Reads partitions from a time on, and further as they grow, outside of any group: for people who
// look at the log. Confined to one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kafka/client.h"
#include "libs/kafka/message.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kafka {

using TopicPartition = std::pair<std::string, int>;

struct TailRecord {
  std::string topic;
  Message message;
};

class Tail {
 public:
  // From the first record appended at `since` or later; 0: from the first that is still kept.
  static absl::StatusOr<std::unique_ptr<Tail>> Open(const Brokers& brokers,
                                                    const std::vector<TopicPartition>& partitions,
                                                    Millis since);

  // Of one partition in order; between partitions in none. Nothing: none came within `timeout`.
  absl::StatusOr<std::optional<TailRecord>> Next(Millis timeout);
  // All that stood in the partitions when they were opened has been read.
  bool at_end() const { return behind_.empty(); }

 private:
  explicit Tail(ClientHandle client) : client_(std::move(client)) {}

  absl::StatusOr<PartitionList> Places(const std::vector<TopicPartition>& partitions, Millis since);

  ClientHandle client_;
  std::map<TopicPartition, int64_t> behind_;  // the end that is still to be reached
};

}  // namespace fluxqueue::kafka
