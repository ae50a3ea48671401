// What the soak makes, as YAML. Pure.
#pragma once

#include <string>

#include "tests/soak/plan.h"

namespace fluxqueue::soak {

// The object of an action that makes one.
std::string ObjectYaml(const Action& action);

// Of a JobSet or an MPIJob, what its controller makes; kOutputBefore stands for its uid.
std::string ChildrenYaml(const Action& action);

}  // namespace fluxqueue::soak
