#include "libs/delivery/wire.h"

#include <algorithm>
#include <utility>

#include "fluxqueue/delivery/v1/outbox.pb.h"

#include "libs/base/status_macros.h"
#include "libs/delivery/outbox.h"
#include "libs/kafka/envelope.h"
#include "libs/kafka/topics.h"
#include "libs/model/speaker.h"

namespace fluxqueue::delivery {
namespace {

constexpr std::string_view kOurs = "fluxqueue_";
// What a letter keeps of a message that is unproven, or too large for it.
constexpr size_t kShownOfKey = 256;
constexpr size_t kShownOfValue = 1024;
constexpr size_t kShownHeaders = 16;

std::string_view HeaderOf(const kafka::Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

// Where it goes, which place it has in its stream, and what it says.
signing::Record Signed(std::string_view topic,
                       std::string_view partition,
                       const kafka::Headers& headers,
                       std::string_view value) {
  return {topic, partition, HeaderOf(headers, "ce_id"), value};
}

}  // namespace

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
  WireRecord record{message.key, message.value, {}, /*envelope=*/false};
  size_t size = record.key.size() + record.value.size();
  for (const auto& [name, value] : message.headers) {
    // Of what is read headers of ours but the proof are a stranger's.
    const bool forged = message.offset >= 0 && name.starts_with(kOurs) && name != kProofHeader;
    if (forged) continue;
    record.headers.emplace_back(name, value);
    size += name.size() + value.size();
  }
  if (letter.unproven || size > kafka::kMaxValueBytes) {
    record.key.resize(std::min(record.key.size(), kShownOfKey));
    record.value.resize(std::min(record.value.size(), kShownOfValue));
    std::erase_if(record.headers, [](const auto& header) {
      return header.first.size() + header.second.size() > kShownOfKey;
    });
    if (record.headers.size() > kShownHeaders) record.headers.resize(kShownHeaders);
  }
  record.headers.emplace_back("fluxqueue_reason", letter.reason);
  record.headers.emplace_back("fluxqueue_service", service);
  record.headers.emplace_back("fluxqueue_topic", letter.topic);
  record.headers.emplace_back("fluxqueue_partition", fmt::format("{}", message.partition));
  record.headers.emplace_back("fluxqueue_offset", fmt::format("{}", message.offset));
  if (letter.unproven) record.headers.emplace_back(kUnprovenHeader, "true");
  return record;
}

void SignRecords(const signing::Signer& signer, OutboxRow* row) {
  const std::string partition = fmt::format("{}", row->target.partition);
  std::vector<signing::Record> records;
  for (const WireRecord& record : row->records) {
    if (!record.envelope) return;  // letters: no service reads them
    records.push_back(Signed(row->target.topic, partition, record.headers, record.value));
  }
  std::vector<std::string> proofs = signing::SignBatch(signer, records);
  for (size_t i = 0; i < proofs.size(); ++i) {
    row->records[i].headers.emplace_back(kProofHeader, std::move(proofs[i]));
  }
}

absl::Status CheckRecord(const std::string& topic,
                         const kafka::Message& message,
                         const std::string& stream,
                         events::v1::Envelope::EventCase event,
                         signing::BatchVerifier* verifier) {
  const std::string partition = fmt::format("{}", message.partition);
  RETURN_IF_ERROR(verifier->Check(stream,
                                  Signed(topic, partition, message.headers, message.value),
                                  HeaderOf(message.headers, kProofHeader)));
  const std::string service = stream.substr(0, stream.find('/'));
  const std::string_view speaker = model::SpeakerOf(event);
  if (service == speaker || service == model::kRetries || speaker.empty()) return absl::OkStatus();
  return MakeStatus(
      absl::StatusCode::kPermissionDenied, "{} says what {} alone may say", service, speaker);
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
