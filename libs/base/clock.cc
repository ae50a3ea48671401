#include "libs/base/clock.h"

#include <fmt/chrono.h>

namespace fluxqueue {

std::chrono::system_clock::time_point RealClock::Now() const {
  return std::chrono::system_clock::now();
}

std::chrono::steady_clock::time_point RealClock::Monotonic() const {
  return std::chrono::steady_clock::now();
}

std::chrono::system_clock::time_point FakeClock::Now() const {
  std::lock_guard lock(mutex_);
  return now_;
}

std::chrono::steady_clock::time_point FakeClock::Monotonic() const {
  std::lock_guard lock(mutex_);
  return monotonic_;
}

void FakeClock::Advance(Millis by) {
  std::lock_guard lock(mutex_);
  now_ += by;
  monotonic_ += by;
}

std::string FormatTime(std::chrono::system_clock::time_point time) {
  return FormatTime(std::chrono::duration_cast<Millis>(time.time_since_epoch()));
}

std::string FormatTime(Millis since_epoch) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())),
                     (since_epoch - seconds).count());
}

}  // namespace fluxqueue
