#include "libs/base/clock.h"

#include <algorithm>
#include <string_view>

#include <fmt/chrono.h>

namespace fluxqueue {

void Bell::Ring() {
  {
    const std::lock_guard lock(mutex_);
    rung_ = true;
  }
  changed_.notify_all();
}

bool Bell::rung() const {
  const std::lock_guard lock(mutex_);
  return rung_;
}

void Bell::Silence() {
  const std::lock_guard lock(mutex_);
  rung_ = false;
}

void Bell::WaitFor(std::chrono::steady_clock::duration time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, time, [this] { return rung_; });
}

void Clock::Wait(Bell& bell,
                 std::chrono::steady_clock::time_point until,
                 const std::stop_token& stop) const {
  bell.WaitFor(until - Monotonic(), stop);
}

void Pause(const Clock& clock, Millis time, const std::stop_token& stop) {
  Bell never_rung;
  clock.Wait(never_rung, clock.Monotonic() + time, stop);
}

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

Millis WritableTime(Millis since_epoch) {
  using namespace std::chrono;
  constexpr Millis kFirst = sys_days(year(1) / 1 / 1).time_since_epoch();
  constexpr Millis kLast = sys_days(year(10'000) / 1 / 1).time_since_epoch() - Millis(1);
  return std::clamp(since_epoch, kFirst, kLast);
}

std::string FormatTime(Millis since_epoch) {
  const Millis time = WritableTime(since_epoch);
  return fmt::format("{}.{:03}Z",
                     FormatSeconds(time).substr(0, std::string_view("2026-01-31T12:00:00").size()),
                     (time - std::chrono::floor<std::chrono::seconds>(time)).count());
}

std::string FormatSeconds(Millis since_epoch) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(WritableTime(since_epoch));
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())));
}

}  // namespace fluxqueue
