// --since, --until and the like: moments as people write them. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

// What help says of both.
inline constexpr char kMoments[] =
    "a day (2026-11-01), a month (2026-11) or a time (2026-11-01T12:00:00Z), all in UTC, or how "
    "long "
    "ago (36h, 7d)";

// Unix milliseconds. A day or month stands for its beginning. The error names the option.
absl::StatusOr<int64_t> ParseMoment(const std::string& option,
                                    const std::string& text,
                                    int64_t now_ms);

// Unix milliseconds: from `since_ms` on, before `until_ms`.
struct TimeRange {
  int64_t since_ms = 0;
  int64_t until_ms = 0;
};

// What is empty: `range` as it was. The error names the option.
absl::StatusOr<TimeRange> ParseTimeRange(const std::string& since,
                                         const std::string& until,
                                         int64_t now_ms,
                                         TimeRange range);

}  // namespace fluxqueue::cli
