// Which job a message is about. Pure.
#pragma once

#include <string>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::model {

// Empty: none, or several. The reference is into the message.
const std::string& JobOf(const events::v1::Envelope& message);
// Empty: a command that this version does not know.
const std::string& JobOf(const events::v1::CommandAccepted& accepted);

}  // namespace fluxqueue::model
