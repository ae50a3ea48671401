// Exponential backoff: min, 2·min, 4·min … max, with a spread of ±20 % so that replicas do not
// retry in step. Not thread-safe; one for each retried thing.
#pragma once

#include <cstdint>
#include <random>

#include "libs/base/clock.h"

namespace fluxqueue {

class Backoff {
 public:
  Backoff(Millis min, Millis max, uint64_t seed = std::random_device()());

  // How long to wait before the next try.
  Millis Next();
  void Reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  Millis min_;
  Millis max_;
  int failures_ = 0;
  std::minstd_rand random_;
};

// The same curve without the spread, for decisions that must be repeatable: failures = 1, 2, 3 …
Millis BackoffDelay(Millis min, Millis max, int failures);

}  // namespace fluxqueue
