#include "libs/delivery/wire.h"

#include <utility>

#include "fluxqueue/delivery/v1/outbox.pb.h"

#include "libs/base/status_macros.h"
#include "libs/delivery/outbox.h"
#include "libs/kafka/envelope.h"

namespace fluxqueue::delivery {

DeadLetter MakeLetter(const QuarantineRow& row, const std::string& stream) {
  const ObjectRef& object = row.object;
  DeadLetter letter{kShard, row.reason, stream, {}};
  letter.message.offset = -1;
  letter.message.key =
      fmt::format("{} {}/{}", object.kind, object.space, object.name.empty() ? "*" : object.name);
  letter.message.headers = {{kShardHeader, stream.substr(stream.find('/') + 1)},
                            {kKindHeader, object.kind},
                            {kUidHeader, object.uid}};
  return letter;
}

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

absl::Status DecodeBlob(std::string_view blob, OutboxRow* row) {
  const Target& target = row->target;
  v1::OutboxBlob decoded;
  if (!decoded.ParseFromArray(blob.data(), static_cast<int>(blob.size()))) {
    return MakeStatus(absl::StatusCode::kDataLoss,
                      "an outbox row for topic {} partition {} does not decode: was it changed by "
                      "hand, or written by a newer version?",
                      target.topic,
                      target.partition);
  }
  uint64_t sequence = row->last_seq - static_cast<uint64_t>(decoded.records_size());
  events::v1::Envelope envelope;
  for (const v1::OutboxRecord& item : decoded.records()) {
    ++sequence;
    WireRecord record{item.key(), item.value(), {}, item.headers().empty()};
    if (record.envelope) {
      record.headers =
          envelope.ParseFromString(record.value)
              ? kafka::EnvelopeHeaders(envelope, target.partition)
              : kafka::Headers{{"ce_id", kafka::EventId(row->stream, target.partition, sequence)}};
    }
    for (const v1::OutboxHeader& header : item.headers()) {
      record.headers.emplace_back(header.name(), header.value());
    }
    row->records.push_back(std::move(record));
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::delivery
