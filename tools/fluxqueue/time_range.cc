#include "tools/fluxqueue/time_range.h"

#include <algorithm>
#include <optional>

#include "libs/base/status_macros.h"
#include "libs/config/units.h"
#include "libs/kubernetes/json_reader.h"

namespace fluxqueue::cli {

absl::StatusOr<int64_t> ParseMoment(const std::string& option,
                                    const std::string& text,
                                    int64_t now_ms) {
  constexpr size_t kMonth = sizeof("2026-11") - 1;
  constexpr size_t kDay = sizeof("2026-11-01") - 1;
  std::string whole = text;
  if (text.size() == kMonth) whole += "-01";
  if (text.size() == kMonth || text.size() == kDay) whole += "T00:00:00Z";
  if (const std::optional<int64_t> time = kubernetes::internal::ParseTime(whole)) return *time;
  const absl::StatusOr<Millis> ago = config::ParseDuration(text);
  if (ago.ok()) return now_ms - std::min(now_ms, ago->count());
  return InvalidArgument("{} {}: want {}", option, text, kMoments);
}

absl::StatusOr<TimeRange> ParseTimeRange(const std::string& since,
                                         const std::string& until,
                                         int64_t now_ms,
                                         TimeRange range) {
  if (!since.empty()) {
    ASSIGN_OR_RETURN(range.since_ms, ParseMoment("--since", since, now_ms));
  }
  if (!until.empty()) {
    ASSIGN_OR_RETURN(range.until_ms, ParseMoment("--until", until, now_ms));
  }
  if (range.since_ms < range.until_ms) return range;
  return InvalidArgument("--since {} is not before --until {}",
                         since.empty() ? "(its default)" : since,
                         until.empty() ? "(now)" : until);
}

}  // namespace fluxqueue::cli
