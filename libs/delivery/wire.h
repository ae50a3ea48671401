// Records on their way from the outbox to Kafka. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/delivery/quarantine.h"
#include "libs/kafka/message.h"
#include "libs/signing/batch.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

struct Target {
  std::string topic;
  int partition = 0;
  auto operator<=>(const Target&) const = default;
};

struct WireRecord {
  std::string key;
  std::string value;
  kafka::Headers headers;
  // The headers follow from the value, and are not kept in the outbox.
  bool envelope = true;
};

// The messages of one batch, one stream and one target: sequences last_seq - records.size() + 1 …
// last_seq.
struct OutboxRow {
  std::string stream;
  Target target;
  uint64_t last_seq = 0;
  std::vector<WireRecord> records;
};

// All rows of a stream and target up to a sequence.
struct Prefix {
  std::string stream;
  Target target;
  uint64_t last_seq = 0;
  auto operator<=>(const Prefix&) const = default;
};

// Headers of letters about objects.
inline constexpr const char* kShardHeader = "fluxqueue_shard";
inline constexpr const char* kKindHeader = "fluxqueue_object_kind";
inline constexpr const char* kUidHeader = "fluxqueue_object_uid";
inline constexpr const char* kProofHeader = "fluxqueue_proof";
// Of a letter whose message is not of whom it says.
inline constexpr const char* kUnprovenHeader = "fluxqueue_unproven";

// What could not be handled.
struct DeadLetter {
  int source = 0;
  std::string reason;
  std::string topic;  // where it was read, or was to go
  kafka::Message message;
  bool unproven = false;  // not to be handled later, either
};

// Of an object that a shard has put into quarantine. `stream`: "cleanup/watch". Its key says which
// it is, for people; its value is empty, as what users write into an object is theirs.
DeadLetter MakeLetter(const QuarantineRow& row, const std::string& stream);

WireRecord MakeRecord(const events::v1::Envelope& envelope, int target_partition);
// The original key, value and headers, and headers that say why, by whom and where from. Headers
// that only we write are left out of a message that was read. Of one that is unproven, or too large
// for a letter, only a piece stays.
WireRecord MakeRecord(const DeadLetter& letter, std::string_view service);

// Adds to each envelope its proof (libs/signing/batch.h), as a header.
void SignRecords(const signing::Signer& signer, OutboxRow* row);
// OK: the message was said in `stream` by who may say such. PermissionDenied: why not.
absl::Status CheckRecord(const std::string& topic,
                         const kafka::Message& message,
                         const std::string& stream,
                         events::v1::Envelope::EventCase event,
                         signing::BatchVerifier* verifier);

// The column outbox.blob. DataLoss when it does not decode. A message in it that does not goes on
// with its event id, so that its reader can pass it by.
std::string EncodeBlob(const std::vector<WireRecord>& records);
// REQUIRES: all but the records of `row` is set.
absl::Status DecodeBlob(std::string_view blob, OutboxRow* row);

}  // namespace fluxqueue::delivery
