#include "libs/delivery/progress.h"

#include "libs/base/status_macros.h"

namespace fluxqueue::delivery {

absl::Status Progress::Check() const {
  // First: the step may be of this moment.
  const TimePoint at = at_;
  const TimePoint now = clock_.Monotonic();
  if (at >= now || now - at <= limit_) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                    "has not got on for {} s: it hangs",
                    std::chrono::duration_cast<std::chrono::seconds>(now - at).count());
}

}  // namespace fluxqueue::delivery
