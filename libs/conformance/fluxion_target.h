// Scenarios on a library with Fluxion's C interface (libs/fluxion), as the fluxion engine uses it.
#pragma once

#include <memory>

#include "libs/conformance/scenario.h"
#include "libs/fluxion/library.h"

namespace fluxqueue::conformance {

// What it makes is used by one thread.
MakeTarget MakeFluxionTargets(std::shared_ptr<const fluxion::Library> library);

}  // namespace fluxqueue::conformance
