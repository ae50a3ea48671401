// Topics: made, looked at, deleted. Thread-safe; each call asks the broker and waits for its
// answer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kafka/client.h"
#include "libs/kafka/consumer.h"
#include "libs/kafka/topic_check.h"
#include "libs/kafka/topics.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace fluxqueue::kafka {

class Admin {
 public:
  static absl::StatusOr<std::unique_ptr<Admin>> Create(const Brokers& brokers,
                                                       Millis timeout = Millis{10000});

  struct Ensured {
    std::vector<std::string> made;      // names of topics
    std::vector<std::string> warnings;  // what the log may lose by its settings (topic_check.h)
  };
  // Makes the topics that are missing. FailedPrecondition when the services cannot work with one as
  // it is: the message says what to change. Unavailable: one is missing, and it is for an account
  // with more rights to make it.
  absl::StatusOr<Ensured> EnsureTopics(const std::vector<TopicSpec>& specs);

  // `partitions` 0: there is no such topic.
  absl::StatusOr<TopicState> Describe(const std::string& topic);
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
  absl::StatusOr<TopicState> Shape(const std::string& topic);
  absl::StatusOr<std::map<std::string, std::string>> Settings(const std::string& topic);

  const Brokers brokers_;
  const Millis timeout_;
  absl::Mutex mutex_;
  std::string away_ ABSL_GUARDED_BY(mutex_);  // why no broker is reached
  ClientHandle client_;
};

}  // namespace fluxqueue::kafka
