// Reads a partition as it is now, outside of any group: for replay and the command line.
#pragma once

#include <functional>
#include <string>

#include "libs/base/clock.h"
#include "libs/kafka/consumer.h"
#include "libs/kafka/message.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kafka {

// Calls `each` for every record from offset `from` (or the first that is still kept) to the end
// that the partition has when the call begins, in order. Stops at the first status of `each` that
// is not OK, and returns it. Returns the watermarks that it went by. DeadlineExceeded when no
// record arrives for `patience`.
absl::StatusOr<Watermarks> ReadPartition(const Brokers& brokers,
                                         const std::string& topic,
                                         int partition,
                                         int64_t from,
                                         const std::function<absl::Status(const Message&)>& each,
                                         Millis patience = Millis{10000});

}  // namespace fluxqueue::kafka
