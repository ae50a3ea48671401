// Time, injected. Only the outermost shell holds a RealClock; cores take times as arguments.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace fluxqueue {

using Millis = std::chrono::milliseconds;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Since the Unix epoch. May jump; for what people read.
  virtual std::chrono::system_clock::time_point Now() const = 0;
  // Never goes back; for deadlines and latencies.
  virtual std::chrono::steady_clock::time_point Monotonic() const = 0;
};

class RealClock final : public Clock {
 public:
  std::chrono::system_clock::time_point Now() const override;
  std::chrono::steady_clock::time_point Monotonic() const override;
};

// Stands still until it is told to advance; both hands move together.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(std::chrono::system_clock::time_point start = {}) : now_(start) {}
  std::chrono::system_clock::time_point Now() const override;
  std::chrono::steady_clock::time_point Monotonic() const override;
  void Advance(Millis by);

 private:
  mutable std::mutex mutex_;
  std::chrono::system_clock::time_point now_;
  std::chrono::steady_clock::time_point monotonic_;
};

// The nearest time that RFC 3339 and protobuf's Timestamp can write, and so Kubernetes reads: in
// the years 1 to 9999. What users write, and what is added up of it, may be beyond.
Millis WritableTime(Millis since_epoch);

// RFC 3339 in UTC with milliseconds: 2026-01-31T12:00:00.000Z; as WritableTime.
std::string FormatTime(std::chrono::system_clock::time_point time);
std::string FormatTime(Millis since_epoch);
// In whole seconds: 2026-01-31T12:00:00Z
std::string FormatSeconds(Millis since_epoch);

}  // namespace fluxqueue
