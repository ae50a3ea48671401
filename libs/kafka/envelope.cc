#include "libs/kafka/envelope.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "libs/base/clock.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace fluxqueue::kafka {

using events::v1::Envelope;

std::string_view EventType(const Envelope& envelope) {
  const auto* field = Envelope::descriptor()->FindFieldByNumber(envelope.event_case());
  return field == nullptr ? std::string_view() : std::string_view(field->name());
}

const std::string& RecordKey(const Envelope& envelope) {
  return envelope.has_job_fact() ? envelope.job_fact().job_id() : envelope.pool();
}

std::string EventId(std::string_view stream, int target_partition, uint64_t sequence) {
  return fmt::format("{}/{}/{}", stream, target_partition, sequence);
}

std::optional<EventPosition> PositionOf(const Headers& headers) {
  const auto header = std::find_if(
      headers.begin(), headers.end(), [](const auto& one) { return one.first == "ce_id"; });
  if (header == headers.end()) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(header->second, '/');
  EventPosition position;
  // "queue/3/7/42": a stream has one slash.
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[3], &position.sequence)) return std::nullopt;
  position.stream = fmt::format("{}/{}", parts[0], parts[1]);
  if (position.sequence == 0) return std::nullopt;
  return position;
}

Headers EnvelopeHeaders(const Envelope& envelope, int target_partition) {
  const std::string& stream = envelope.stream();
  Headers headers = {{"ce_id", EventId(stream, target_partition, envelope.sequence())},
                     {"ce_type", std::string(EventType(envelope))},
                     {"ce_source", stream.substr(0, stream.find('/'))},
                     {"ce_time", FormatTime(Millis{envelope.time_ms()})}};
  if (!envelope.traceparent().empty()) {
    headers.emplace_back("traceparent", envelope.traceparent());
  }
  return headers;
}

}  // namespace fluxqueue::kafka
