// The envelope on the wire: record key, event id, and the CloudEvents headers. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/kafka/message.h"

namespace fluxqueue::kafka {

// The oneof's field name, such as "job_submitted"; "" when no event is set.
std::string_view EventType(const events::v1::Envelope& envelope);

// The job id of a JobFact, else the pool.
const std::string& RecordKey(const events::v1::Envelope& envelope);

// "queue/3/7/42": stream, target partition, sequence.
std::string EventId(std::string_view stream, int target_partition, uint64_t sequence);

struct EventPosition {
  std::string stream;
  uint64_t sequence = 0;
};

// What ce_id names, for records whose value cannot be read; unset when it names nothing.
std::optional<EventPosition> PositionOf(const Headers& headers);

// ce_id, ce_type, ce_source (the service: the stream up to its slash), ce_time; and traceparent, if
// there is one.
Headers EnvelopeHeaders(const events::v1::Envelope& envelope, int target_partition);

}  // namespace fluxqueue::kafka
