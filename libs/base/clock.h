// Time, injected. Only the outermost shell holds a RealClock; cores take times as arguments.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

namespace fluxqueue {

using Millis = std::chrono::milliseconds;

// Rung by any thread, waited for by one. A ring that comes while none waits is kept until the next
// Silence(). Thread-safe.
class Bell {
 public:
  void Ring();
  bool rung() const;
  void Silence();
  // As RealClock waits.
  void WaitFor(std::chrono::steady_clock::duration time, const std::stop_token& stop);

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool rung_ = false;  // guarded by mutex_
};

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Since the Unix epoch. May jump; for what people read.
  virtual std::chrono::system_clock::time_point Now() const = 0;
  // Never goes back; for deadlines and latencies.
  virtual std::chrono::steady_clock::time_point Monotonic() const = 0;
  // Returns at `until`, and before that once the bell has rung or `stop` came. All that loops wait
  // for goes through here: where time is simulated, others go on meanwhile.
  virtual void Wait(Bell& bell,
                    std::chrono::steady_clock::time_point until,
                    const std::stop_token& stop) const;
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

// Waits for `time`, less when stopped.
void Pause(const Clock& clock, Millis time, const std::stop_token& stop);

// The nearest time that RFC 3339 and protobuf's Timestamp can write, and so Kubernetes reads: in
// the years 1 to 9999. What users write, and what is added up of it, may be beyond.
Millis WritableTime(Millis since_epoch);

// RFC 3339 in UTC with milliseconds: 2026-01-31T12:00:00.000Z; as WritableTime.
std::string FormatTime(std::chrono::system_clock::time_point time);
std::string FormatTime(Millis since_epoch);
// In whole seconds: 2026-01-31T12:00:00Z
std::string FormatSeconds(Millis since_epoch);

}  // namespace fluxqueue
