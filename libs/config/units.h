// Durations and sizes as people write them in configuration files.
//
// Pure functions; errors name the text and what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libs/base/clock.h"

#include "absl/status/statusor.h"

namespace fluxqueue::config {

// `250ms`, `3s`, `5m`, `1h30m`, `2d`, or `0`. A number without a unit is refused, because its
// reader and its writer tend to think of different ones.
absl::StatusOr<Millis> ParseDuration(std::string_view text);

// The shortest text that ParseDuration reads as the same value: 90 s is `1m30s`.
std::string FormatDuration(Millis duration);

// Bytes: `4096`, `64KiB`, `3MiB`, `1GiB`, `2TiB`.
absl::StatusOr<int64_t> ParseSize(std::string_view text);

std::string FormatSize(int64_t bytes);

}  // namespace fluxqueue::config
