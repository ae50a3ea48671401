// What a service says of a cycle that cannot be answered, as it buried the request or the answer:
// the command that closes it. Without it the queue would wait for ever. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::model {

// `service`: that buried it, as history shows it. Any other cycle than `cycle_id` goes on.
events::v1::Envelope AbandonedCycle(const std::string& pool,
                                    uint64_t cycle_id,
                                    std::string_view service);

}  // namespace fluxqueue::model
