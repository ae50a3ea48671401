// The log's time: what all who read a log take for the time of its records, whatever their own
// clocks say.
#pragma once

#include <algorithm>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"

namespace fluxqueue::model {

// Of a record that the broker says was appended at `appended`. `before`: the log's time until then;
// it does not go back.
inline Millis LogTime(Millis before, Millis appended, const events::v1::Envelope& message) {
  const Millis latest{message.latest_ms()};
  return std::max(before, latest.count() > 0 ? std::min(appended, latest) : appended);
}

}  // namespace fluxqueue::model
