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
#include "absl/synchronization/mutex.h"

namespace fluxqueue::kafka {

class Admin {
 public:
  static absl::StatusOr<std::unique_ptr<Admin>> Create(const Brokers& brokers,
                                                       Millis timeout = Millis{10000});

  // Makes the topics that are missing and returns their names. FailedPrecondition when one exists
  // with fewer partitions than `specs` says, or does not stamp on append: the message says what to
  // change. Unavailable: one is missing, and it is for an account with more rights to make it.
  absl::StatusOr<std::vector<std::string>> EnsureTopics(const std::vector<TopicSpec>& specs);

  // OK: it is as `spec` says. NotFound, or FailedPrecondition as above.
  absl::Status CheckTopic(const TopicSpec& spec);

  // 0: there is no such topic.
  absl::StatusOr<int> PartitionCount(const std::string& topic);
  absl::StatusOr<Watermarks> QueryWatermarks(const std::string& topic, int partition);
  absl::Status DeleteTopic(const std::string& name);

 private:
  Admin(const Brokers& brokers, Millis timeout) : brokers_(brokers), timeout_(timeout) {}

  static void OnError(rd_kafka_t* client, int code, const char* reason, void* self);
  // With the reason why no broker is reached, where that is why: librdkafka tells the two apart.
  absl::Status Failure(rd_kafka_resp_err_t code, std::string_view doing);
  absl::Status CreateTopic(const TopicSpec& spec);
  absl::StatusOr<std::string> TopicSetting(const std::string& topic, const std::string& key);

  const Brokers brokers_;
  const Millis timeout_;
  absl::Mutex mutex_;
  std::string away_ ABSL_GUARDED_BY(mutex_);  // why no broker is reached
  ClientHandle client_;
};

}  // namespace fluxqueue::kafka
