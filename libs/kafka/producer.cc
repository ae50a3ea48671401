#include "libs/kafka/producer.h"

#include <array>

#include "libs/base/status_macros.h"
#include "libs/kafka/ends.h"
#include "libs/kafka/topics.h"

namespace fluxqueue::kafka {
namespace {

constexpr size_t kErrorText = 512;
using HeadersHandle = std::unique_ptr<rd_kafka_headers_t, Destroyer<rd_kafka_headers_destroy>>;

// librdkafka carries the id in the record's opaque pointer.
void* ToOpaque(uint64_t id) {
  static_assert(sizeof(void*) == sizeof(uint64_t));
  return reinterpret_cast<void*>(id);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

absl::StatusOr<std::unique_ptr<Producer>> Producer::Create(const Brokers& brokers,
                                                           std::string_view client_id,
                                                           OnAcknowledged on_acknowledged) {
  std::unique_ptr<Producer> producer(new Producer(std::move(on_acknowledged)));
  ClientConfig config(brokers, client_id);
  config.Set("enable.idempotence", "true")
      .Set("enable.gapless.guarantee", "true")
      .Set("acks", "all")
      .Set("message.timeout.ms", "0")
      .Set("retry.backoff.ms", "50")
      // Long enough to put a burst into one request, too short to be felt.
      .Set("linger.ms", "0.5")
      // Messages of a batch have much in common: a pool's log becomes a few times smaller.
      .Set("compression.codec", "lz4")
      .Set("message.max.bytes", fmt::format("{}", kMaxValueBytes + 64 * 1024))
      .Set("queue.buffering.max.messages", "200000")
      .Set("queue.buffering.max.kbytes", "65536");
  rd_kafka_conf_set_opaque(config.get(), producer.get());
  rd_kafka_conf_set_dr_msg_cb(config.get(), &Producer::OnDelivery);
  rd_kafka_conf_set_error_cb(config.get(), &Producer::OnError);
  ASSIGN_OR_RETURN(producer->client_, config.Create(RD_KAFKA_PRODUCER));
  return producer;
}

Producer::~Producer() {
  if (client_ == nullptr) return;
  rd_kafka_purge(client_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

void Producer::OnDelivery(rd_kafka_t* /*client*/, const rd_kafka_message_t* record, void* self) {
  auto* producer = static_cast<Producer*>(self);
  if (record->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    producer->on_acknowledged_(reinterpret_cast<uint64_t>(record->_private));
  } else if (producer->failed_.ok()) {
    producer->failed_ =
        KafkaStatus(record->err,
                    fmt::format("publish to topic {} partition {}",
                                record->rkt == nullptr ? "?" : rd_kafka_topic_name(record->rkt),
                                record->partition));
  }
}

// Only a fatal error ends a producer; the others are repeated inside librdkafka.
void Producer::OnError(rd_kafka_t* client, int code, const char* /*reason*/, void* self) {
  if (code != RD_KAFKA_RESP_ERR__FATAL) return;
  std::array<char, kErrorText> text{};
  const rd_kafka_resp_err_t cause = rd_kafka_fatal_error(client, text.data(), text.size());
  auto* producer = static_cast<Producer*>(self);
  if (producer->failed_.ok()) producer->failed_ = KafkaStatus(cause, text.data());
}

absl::Status Producer::Produce(const std::string& topic,
                               int partition,
                               std::string_view key,
                               std::string_view value,
                               const Headers& headers,
                               uint64_t id) {
  HeadersHandle list(rd_kafka_headers_new(headers.size()));
  for (const auto& [name, text] : headers) {
    (void)rd_kafka_header_add(list.get(),
                              name.data(),
                              static_cast<ssize_t>(name.size()),
                              text.data(),
                              static_cast<ssize_t>(text.size()));
  }
  std::array<rd_kafka_vu_t, 7> fields{};
  fields[0].vtype = RD_KAFKA_VTYPE_TOPIC;
  fields[0].u.cstr = topic.c_str();
  fields[1].vtype = RD_KAFKA_VTYPE_PARTITION;
  fields[1].u.i32 = partition;
  fields[2].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  fields[2].u.i = RD_KAFKA_MSG_F_COPY;
  fields[3].vtype = RD_KAFKA_VTYPE_KEY;
  fields[3].u.mem = {const_cast<char*>(key.data()), key.size()};
  fields[4].vtype = RD_KAFKA_VTYPE_VALUE;
  fields[4].u.mem = {const_cast<char*>(value.data()), value.size()};
  fields[5].vtype = RD_KAFKA_VTYPE_HEADERS;
  fields[5].u.headers = list.get();
  fields[6].vtype = RD_KAFKA_VTYPE_OPAQUE;
  fields[6].u.ptr = ToOpaque(id);
  const ErrorHandle error(rd_kafka_produceva(client_.get(), fields.data(), fields.size()));
  if (error == nullptr) {
    (void)list.release();  // the record owns them now
    return absl::OkStatus();
  }
  return KafkaStatus(rd_kafka_error_code(error.get()),
                     fmt::format("publish to topic {} partition {}", topic, partition));
}

void Producer::Poll(Millis timeout) {
  rd_kafka_poll(client_.get(), static_cast<int>(timeout.count()));
}

absl::StatusOr<int64_t> Producer::QueryEnd(const std::string& topic,
                                           int partition,
                                           Millis timeout) {
  ASSIGN_OR_RETURN(const Watermarks marks, QueryEnds(client_.get(), topic, partition, timeout));
  return marks.high;
}

absl::Status Producer::Flush(Millis timeout) {
  const rd_kafka_resp_err_t error =
      rd_kafka_flush(client_.get(), static_cast<int>(timeout.count()));
  if (error == RD_KAFKA_RESP_ERR__TIMED_OUT) {
    return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                      "{} records were not acknowledged by Kafka within {} ms",
                      rd_kafka_outq_len(client_.get()),
                      timeout.count());
  }
  return failed_;
}

}  // namespace fluxqueue::kafka
