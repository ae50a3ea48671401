// Slots on one node, as a jobspec for Fluxion.
#pragma once

#include <cstdint>
#include <string>

#include "libs/fluxion/granules.h"
#include "libs/graph/constraint.h"
#include "libs/graph/types.h"

namespace fluxqueue::fluxion {

// At most so many slots, at least one, on one node that meets the constraint.
std::string SlotJobspec(const graph::Amounts& request,
                        int64_t slots,
                        const graph::Constraint& where,
                        const Granules& granules);

}  // namespace fluxqueue::fluxion
