// The queue and the matcher, as their app.cc puts them together.
#pragma once

#include <memory>

#include "libs/delivery/handler.h"

namespace fluxqueue::simulation {

std::shared_ptr<delivery::PartitionHandler> MakeQueue(const Clock& clock);
std::shared_ptr<delivery::PartitionHandler> MakeMatcher(const Clock& clock);

}  // namespace fluxqueue::simulation
