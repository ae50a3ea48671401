// What a user wrote may be long, and the message about it travels on: into events, conditions,
// logs.
#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace fluxqueue::graph {

inline constexpr size_t kMaxMessageBytes = 500;

// The status with at most that much of its message, cut between UTF-8 characters; "…" stands for
// the rest.
absl::Status Shortened(const absl::Status& status);

}  // namespace fluxqueue::graph
