// An idempotent producer (acks=all): within one Producer, the records of a partition are appended
// in the order of Produce, each once, with no gap. It repeats for ever while the broker is away.
// After a delivery error it appends nothing more: failed() is then true, and the owner makes a new
// Producer and repeats from the first record that was not acknowledged.
//
// Confined to one thread: acknowledgements arrive inside Poll.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/kafka/bus.h"
#include "libs/kafka/client.h"
#include "libs/kafka/message.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kafka {

class Producer final : public Appender {
 public:
  using OnAcknowledged = kafka::OnAcknowledged;

  static absl::StatusOr<std::unique_ptr<Producer>> Create(const Brokers& brokers,
                                                          std::string_view client_id,
                                                          OnAcknowledged on_acknowledged);
  // Drops what was not acknowledged.
  ~Producer() override;
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  // Queues a copy. Unavailable: the queue is full, Poll and try again.
  absl::Status Produce(const std::string& topic,
                       int partition,
                       std::string_view key,
                       std::string_view value,
                       const Headers& headers,
                       uint64_t id) override;
  // Serves acknowledgements; waits up to `timeout` for the first.
  void Poll(Millis timeout) override;
  // Waits until all is acknowledged, or fails with DeadlineExceeded.
  absl::Status Flush(Millis timeout);
  // Where the next record of the partition will be. Blocks.
  absl::StatusOr<int64_t> QueryEnd(const std::string& topic,
                                   int partition,
                                   Millis timeout) override;
  // Not OK after a record was refused; says which topic and why.
  const absl::Status& failed() const override { return failed_; }

 private:
  explicit Producer(OnAcknowledged on_acknowledged)
      : on_acknowledged_(std::move(on_acknowledged)) {}

  static void OnDelivery(rd_kafka_t* client, const rd_kafka_message_t* record, void* self);
  static void OnError(rd_kafka_t* client, int code, const char* reason, void* self);

  OnAcknowledged on_acknowledged_;
  absl::Status failed_;
  ClientHandle client_;
};

}  // namespace fluxqueue::kafka
