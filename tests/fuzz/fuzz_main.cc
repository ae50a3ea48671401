// libFuzzer's entry point, for the target FLUXQUEUE_FUZZ_TARGET (tests/fuzz/CMakeLists.txt).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libs/base/check.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fluxqueue::fuzz::kTargets;
  static const auto* const target =
      std::find_if(kTargets.begin(), kTargets.end(), [](const auto& candidate) {
        return candidate.name == FLUXQUEUE_FUZZ_TARGET;
      });
  CHECK(target != kTargets.end());
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
