// What the environment says to a test that runs longer or shorter by it.
#pragma once

#include <cstdint>
#include <string>

namespace fluxqueue::testing {

// `otherwise` where it does not say a number.
uint64_t NumberOf(const char* variable, uint64_t otherwise);
// "" where it is not set.
std::string TextOf(const char* variable);

}  // namespace fluxqueue::testing
