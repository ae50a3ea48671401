// A record of a log as a line of text, so that a pool's history can be kept, sent and simulated:
//
//   {"append_ms":1700000000123,"partition":3,"offset":17,"envelope":{…}}
//
// `envelope` is protobuf's JSON of events.v1.Envelope; `append_ms` the log's time when it was read;
// "buried":["queue"] names services that have put the record into the dead letter instead. Records
// that every service drops (duplicates) have no line. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"

#include "absl/status/statusor.h"

namespace fluxqueue::verify {

struct EventLine {
  int partition = 0;
  int64_t offset = 0;
  Millis time{0};
  std::vector<std::string> buried{};
  events::v1::Envelope message{};
};

// With its end.
std::string FormatEventLine(const EventLine& line);
// InvalidArgument says what is wrong with it.
absl::StatusOr<EventLine> ParseEventLine(std::string_view text);

}  // namespace fluxqueue::verify
