// Who says what into the logs. Pure, thread-safe.
#pragma once

#include <string_view>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::model {

// The stream in which the command line says again what became a dead letter, whoever said it first.
inline constexpr std::string_view kRetries = "retry";

// The one service that says such events: events.proto numbers them by it. Empty: not set, or of a
// number that this version does not know.
std::string_view SpeakerOf(events::v1::Envelope::EventCase event);

}  // namespace fluxqueue::model
