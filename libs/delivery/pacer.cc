#include "libs/delivery/pacer.h"

#include <algorithm>

namespace fluxqueue::delivery {

void Pacer::Committed(TimePoint now, Duration took) {
  paid_at_ = std::min(std::max(paid_at_, now) + kWeight * took, now + kCredit + kLongest);
}

}  // namespace fluxqueue::delivery
