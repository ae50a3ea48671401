#include "libs/delivery/wire.h"

#include <utility>

#include "fluxqueue/delivery/v1/outbox.pb.h"

#include "libs/base/status_macros.h"
#include "libs/kafka/envelope.h"

namespace fluxqueue::delivery {

WireRecord MakeRecord(const events::v1::Envelope& envelope, int target_partition) {
  return {kafka::RecordKey(envelope),
          envelope.SerializeAsString(),
          kafka::EnvelopeHeaders(envelope, target_partition)};
}

WireRecord MakeRecord(const DeadLetter& letter, std::string_view service) {
  const kafka::Message& message = letter.message;
  WireRecord record{message.key, message.value, message.headers, /*envelope=*/false};
  record.headers.emplace_back("fluxqueue_reason", letter.reason);
  record.headers.emplace_back("fluxqueue_service", service);
  record.headers.emplace_back("fluxqueue_topic", letter.topic);
  record.headers.emplace_back("fluxqueue_partition", fmt::format("{}", message.partition));
  record.headers.emplace_back("fluxqueue_offset", fmt::format("{}", message.offset));
  return record;
}

std::string EncodeBlob(const std::vector<WireRecord>& records) {
  v1::OutboxBlob blob;
  for (const WireRecord& record : records) {
    v1::OutboxRecord* item = blob.add_records();
    item->set_key(record.key);
    item->set_value(record.value);
    if (record.envelope) continue;
    for (const auto& [name, value] : record.headers) {
      v1::OutboxHeader* header = item->add_headers();
      header->set_name(name);
      header->set_value(value);
    }
  }
  return blob.SerializeAsString();
}

absl::StatusOr<std::vector<WireRecord>> DecodeBlob(std::string_view blob, const Target& target) {
  const auto broken = [&](std::string_view what) {
    return MakeStatus(
        absl::StatusCode::kDataLoss,
        "an outbox row for topic {} partition {} does not decode ({}): was it changed by "
        "hand, or written by a newer version?",
        target.topic,
        target.partition,
        what);
  };
  v1::OutboxBlob decoded;
  if (!decoded.ParseFromArray(blob.data(), static_cast<int>(blob.size()))) return broken("blob");
  std::vector<WireRecord> records;
  events::v1::Envelope envelope;
  for (const v1::OutboxRecord& item : decoded.records()) {
    WireRecord record{item.key(), item.value(), {}, item.headers().empty()};
    if (record.envelope) {
      if (!envelope.ParseFromString(record.value)) return broken("envelope");
      record.headers = kafka::EnvelopeHeaders(envelope, target.partition);
    }
    for (const v1::OutboxHeader& header : item.headers()) {
      record.headers.emplace_back(header.name(), header.value());
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace fluxqueue::delivery
