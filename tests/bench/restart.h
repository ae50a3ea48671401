// A replica of a running stack, killed and started again.
#pragma once

#include <string>

#include "libs/base/clock.h"

#include "absl/status/statusor.h"

namespace fluxqueue::bench {

// Kills NAME-1 of the stack in `folder`, starts the same command again, and waits until it is
// ready. Returns the seconds from the start to that. DeadlineExceeded: it was not within `timeout`.
absl::StatusOr<double> RestartSeconds(const std::string& folder,
                                      const std::string& service,
                                      Millis timeout);

}  // namespace fluxqueue::bench
