// A pool's log as `fluxqueue events dump` writes it, of a pool that is played here: jobs come, run
// and end on a cluster that both cores share out.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace fluxqueue::bench {

// With at least this many records. InvalidArgument: it cannot be written.
absl::Status WriteReplayLog(const std::string& path, uint64_t records);

}  // namespace fluxqueue::bench
