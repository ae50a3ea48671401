// The logs in readable form. Reading is ReadLog's; the rest is pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kafka/tail.h"
#include "libs/verify/event_line.h"

#include "absl/status/status.h"

namespace fluxqueue::cli {

struct LogRecord {
  std::string topic;
  verify::EventLine line;
};

// Calls `each` for what the partitions hold from `since` on, by the time at which it was appended,
// until it gives something else than OK, which is returned. Records that do not decode are left
// out: they are dead letters.
absl::Status ReadLog(const kafka::Brokers& brokers,
                     const std::vector<kafka::TopicPartition>& partitions,
                     Millis since,
                     const std::function<absl::Status(const LogRecord&)>& each);
// The same, and then what is appended, for ever.
absl::Status FollowLog(const kafka::Brokers& brokers,
                       const std::vector<kafka::TopicPartition>& partitions,
                       Millis since,
                       const std::function<absl::Status(const LogRecord&)>& each);

// Whether the event says something of the job.
bool IsAbout(const events::v1::Envelope& message, const std::string& job_id);

// "job_submitted", "cycle_answered" …
std::string TypeOf(const events::v1::Envelope& message);

// What the event says, in a line.
std::string EventText(const events::v1::Envelope& message);

}  // namespace fluxqueue::cli
