#include "libs/delivery/pacer.h"

#include <algorithm>

namespace fluxqueue::delivery {

void Pacer::Committed(TimePoint now, Duration took, double busy) {
  const double load = std::clamp((busy - kIdleBelow) / (kFullFrom - kIdleBelow), 0.0, 1.0);
  const double weight = kIdleWeight + load * (kFullWeight - kIdleWeight);
  const auto price = std::chrono::duration_cast<Duration>(took * weight);
  paid_at_ = std::min(std::max(paid_at_, now) + price, now + kCredit + kLongest);
}

}  // namespace fluxqueue::delivery
