// The smallest plan that still fails.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/simulation/trial.h"

namespace fluxqueue::simulation {

// The trial with only these of its faults.
Trial Only(const Trial& trial, const std::vector<size_t>& faults);

// Numbers of the faults that are left when one after the other was taken out, as long as it failed
// all the same. REQUIRES: the trial fails.
std::vector<size_t> Shrink(const Subject& subject, const Trial& trial);

}  // namespace fluxqueue::simulation
