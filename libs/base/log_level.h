// The level of the log while the process runs.
#pragma once

#include "libs/base/log.h"

namespace fluxqueue {

// From now on. Thread-safe.
void SetLogLevel(LogLevel level);

}  // namespace fluxqueue
