#include "tests/bench/await.h"

#include <chrono>
#include <thread>

#include "libs/base/status_macros.h"

namespace fluxqueue::bench {

absl::StatusOr<bool> Await(Millis patience,
                           Millis every,
                           const std::function<absl::StatusOr<bool>()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    ASSIGN_OR_RETURN(const bool reached, done());
    if (reached) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(every);
  }
}

}  // namespace fluxqueue::bench
