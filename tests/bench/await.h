// Waiting for what other processes do, by looking again and again.
#pragma once

#include <functional>

#include "libs/base/clock.h"

#include "absl/status/statusor.h"

namespace fluxqueue::bench {

// Asks `done` every `every`. True: it has said so; false: not within `patience`. Its errors end it.
absl::StatusOr<bool> Await(Millis patience,
                           Millis every,
                           const std::function<absl::StatusOr<bool>()>& done);

}  // namespace fluxqueue::bench
