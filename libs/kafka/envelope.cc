#include "libs/kafka/envelope.h"

#include <fmt/format.h>

#include "libs/base/clock.h"

namespace fluxqueue::kafka {

using events::v1::Envelope;

std::string_view EventType(const Envelope& envelope) {
  const auto* field = Envelope::descriptor()->FindFieldByNumber(envelope.event_case());
  return field == nullptr ? std::string_view() : std::string_view(field->name());
}

const std::string& RecordKey(const Envelope& envelope) {
  return envelope.has_job_fact() ? envelope.job_fact().job_id() : envelope.pool();
}

std::string EventId(const Envelope& envelope, int target_partition) {
  return fmt::format("{}/{}/{}", envelope.stream(), target_partition, envelope.sequence());
}

Headers EnvelopeHeaders(const Envelope& envelope, int target_partition) {
  const std::string& stream = envelope.stream();
  Headers headers = {{"ce_id", EventId(envelope, target_partition)},
                     {"ce_type", std::string(EventType(envelope))},
                     {"ce_source", stream.substr(0, stream.find('/'))},
                     {"ce_time", FormatTime(Millis{envelope.time_ms()})}};
  if (!envelope.traceparent().empty()) {
    headers.emplace_back("traceparent", envelope.traceparent());
  }
  return headers;
}

}  // namespace fluxqueue::kafka
