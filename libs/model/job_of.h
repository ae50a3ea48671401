// Which job a message is about. Pure.
#pragma once

#include <string>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::model {

// Empty: none, or several. The reference is into the message.
const std::string& JobOf(const events::v1::Envelope& message);
// Empty: a command that this version does not know.
const std::string& JobOf(const events::v1::CommandAccepted& accepted);

// What the job asks for from now on; null: for nothing else than before.
const events::v1::PartSpec* SpecOf(const events::v1::JobUpdated& updated);

}  // namespace fluxqueue::model
