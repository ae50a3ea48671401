// The names of the causes for which a promised start is later than it was, or is withdrawn: in
// queue.promises, metrics and the queue's API.
#pragma once

#include <array>
#include <string_view>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::model {

// By the number of the cause; "": there is none.
inline constexpr std::array<std::string_view, 7> kCauseNames = {
    "", "node", "window", "ahead", "overrun", "command", "plan"};
static_assert(kCauseNames.size() == events::v1::Slip::Cause_ARRAYSIZE);

// "plan", of a cause that this version does not know.
constexpr std::string_view CauseName(events::v1::Slip::Cause cause) {
  const auto number = static_cast<size_t>(cause);
  return number < kCauseNames.size() ? kCauseNames[number] : kCauseNames.back();
}

}  // namespace fluxqueue::model
