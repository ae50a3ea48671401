// Topics: made, looked at, deleted. Thread-safe; each call asks the broker and waits for its
// answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kafka/client.h"
#include "libs/kafka/consumer.h"
#include "libs/kafka/topics.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kafka {

class Admin {
 public:
  static absl::StatusOr<std::unique_ptr<Admin>> Create(const Brokers& brokers,
                                                       Millis timeout = Millis{10000});

  // Makes the topics that are missing and returns their names. FailedPrecondition when one exists
  // with fewer partitions than `specs` says, or does not stamp on append: the message says what to
  // change.
  absl::StatusOr<std::vector<std::string>> EnsureTopics(const std::vector<TopicSpec>& specs);

  // OK: it is as `spec` says. NotFound, or FailedPrecondition as above.
  absl::Status CheckTopic(const TopicSpec& spec);

  // 0: there is no such topic.
  absl::StatusOr<int> PartitionCount(const std::string& topic);
  absl::StatusOr<Watermarks> QueryWatermarks(const std::string& topic, int partition);
  absl::Status DeleteTopic(const std::string& topic);

 private:
  Admin(ClientHandle client, Millis timeout) : client_(std::move(client)), timeout_(timeout) {}

  absl::Status CreateTopic(const TopicSpec& spec);
  absl::StatusOr<std::string> TopicSetting(const std::string& topic, const std::string& key);

  ClientHandle client_;
  Millis timeout_;
};

}  // namespace fluxqueue::kafka
