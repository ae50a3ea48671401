#include "libs/base/backoff.h"

#include <algorithm>

namespace fluxqueue {

Backoff::Backoff(Millis min, Millis max, uint64_t seed)
    : min_(min), max_(max), random_(static_cast<std::minstd_rand::result_type>(seed)) {}

Millis Backoff::Next() {
  const Millis delay = BackoffDelay(min_, max_, ++failures_);
  const int64_t spread = delay.count() / 5;
  return delay + Millis(std::uniform_int_distribution<int64_t>(-spread, spread)(random_));
}

Millis BackoffDelay(Millis min, Millis max, int failures) {
  Millis delay = min;
  for (int i = 1; i < failures && delay < max; ++i) delay *= 2;
  return std::min(delay, max);
}

}  // namespace fluxqueue
