// The log as the delivery loops use it: subscriptions, appenders, topics. Kafka is behind
// RealBus(); tests/simulation has one in memory that does what Kafka may do at its worst.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kafka/client.h"
#include "libs/kafka/message.h"
#include "libs/kafka/topics.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kafka {

struct ConsumerOptions {
  Brokers brokers;
  std::string topic;
  std::string group;
  std::string instance;
  // At least the broker's group.min.session.timeout.ms (6 s where it was not lowered).
  Millis session_timeout{3000};
};

struct Assignment {
  std::vector<int> gained;
  std::vector<int> lost;
};

struct Position {
  int partition;
  int64_t offset;
};

struct Watermarks {
  int64_t low = 0;   // the first offset still kept
  int64_t high = 0;  // the offset that the next record will get
};

// A member of a consumer group (consumer.h says how it is used).
class Subscription {
 public:
  virtual ~Subscription() = default;
  virtual absl::Status Poll(Millis timeout, size_t max, std::vector<Message>* messages) = 0;
  // Thread-safe.
  virtual void Wake() = 0;
  virtual std::optional<Assignment> TakeAssignment() = 0;
  virtual absl::Status Start(const std::vector<Position>& positions) = 0;
  virtual absl::Status Stop(const std::vector<int>& partitions) = 0;
  virtual std::vector<int> TakeOutOfRange() = 0;
  virtual absl::StatusOr<std::map<int, Watermarks>> QueryWatermarks(
      const std::vector<int>& partitions, Millis timeout) = 0;
  virtual absl::StatusOr<std::map<int, int64_t>> FirstAfter(const std::map<int, Millis>& times,
                                                            Millis timeout) = 0;
  virtual int64_t CachedEnd(int partition) = 0;
};

// Called inside Poll with the id given to Produce, once the record is in the log.
using OnAcknowledged = std::function<void(uint64_t id)>;

// Appends in order, each record once, until it fails (producer.h).
class Appender {
 public:
  virtual ~Appender() = default;
  virtual absl::Status Produce(const std::string& topic,
                               int partition,
                               std::string_view key,
                               std::string_view value,
                               const Headers& headers,
                               uint64_t id) = 0;
  virtual void Poll(Millis timeout) = 0;
  virtual absl::StatusOr<int64_t> QueryEnd(const std::string& topic,
                                           int partition,
                                           Millis timeout) = 0;
  virtual const absl::Status& failed() const = 0;
};

class Bus {
 public:
  virtual ~Bus() = default;
  virtual absl::StatusOr<std::unique_ptr<Subscription>> Join(const ConsumerOptions& options) = 0;
  virtual absl::StatusOr<std::unique_ptr<Appender>> Open(const Brokers& brokers,
                                                         std::string_view client_id,
                                                         OnAcknowledged on_acknowledged) = 0;
  // Makes those of the service's topics (rights.h) that are missing.
  virtual absl::Status MakeTopics(const Brokers& brokers,
                                  std::string_view service,
                                  const TopicNames& names) = 0;
};

std::shared_ptr<Bus> RealBus();

}  // namespace fluxqueue::kafka
