// What Consumer, Producer, Admin and Reader share: configuration and ownership of librdkafka's C
// objects.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <librdkafka/rdkafka.h>

#include "libs/kafka/message.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kafka {

template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    Destroy(object);
  }
};

using ClientHandle = std::unique_ptr<rd_kafka_t, Destroyer<rd_kafka_destroy>>;
using QueueHandle = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using PartitionList = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                      Destroyer<rd_kafka_topic_partition_list_destroy>>;
using ErrorHandle = std::unique_ptr<rd_kafka_error_t, Destroyer<rd_kafka_error_destroy>>;
using MessageHandle = std::unique_ptr<rd_kafka_message_t, Destroyer<rd_kafka_message_destroy>>;

// Whom a client asks first, and how.
struct Brokers {
  // Implicit: most have no properties.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Brokers(std::string servers = {}, std::string file = {})
      : bootstrap(std::move(servers)), properties(std::move(file)) {}

  // "host:port,host:port"; with plaintext:// before it no TLS is asked for.
  std::string bootstrap;
  // A file with librdkafka's security.protocol, ssl.* and sasl.*, one `key=value` a line, as
  // Kafka's own clients have them.
  std::string properties;
};

// Whether all of the servers that it asks first are on this machine (loopback).
bool IsHere(const Brokers& brokers);

// Collects settings; the first bad one is the status of Create. librdkafka's own log lines go to
// our log.
class ClientConfig {
 public:
  // Reads the brokers' properties.
  ClientConfig(const Brokers& brokers, std::string_view client_id);

  ClientConfig& Set(const char* key, const std::string& value);
  // For callbacks; valid until Create.
  rd_kafka_conf_t* get() { return conf_.get(); }
  absl::StatusOr<ClientHandle> Create(rd_kafka_type_t type);

  // In librdkafka's words. What the properties or the bootstrap say; where neither does: TLS, but
  // plain text on this machine itself (loopback).
  std::string SecurityProtocol() const;

 private:
  void SetFromFile(const std::string& path);
  void SetServers(const Brokers& brokers);

  std::unique_ptr<rd_kafka_conf_t, Destroyer<rd_kafka_conf_destroy>> conf_;
  absl::Status status_;
  bool says_protocol_ = false;
  bool says_sasl_ = false;
};

// A copy of what librdkafka owns.
Message CopyMessage(const rd_kafka_message_t& record);

// Unavailable for what passes by itself (broker away, leader moving, timeouts), NotFound for an
// unknown topic or partition, FailedPrecondition for what an operator must change (authorisation,
// fenced instance …).
absl::Status KafkaStatus(rd_kafka_resp_err_t code, std::string_view doing);

}  // namespace fluxqueue::kafka
