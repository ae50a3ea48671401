// Threads, injected as time is (clock.h): where that is simulated, they are fibers of one thread,
// and wait by the clock only.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

namespace fluxqueue {

// Thread-safe. Stopped by its destructor, at the latest.
class Thread {
 public:
  virtual ~Thread() = default;
  // Asks its body to stop.
  virtual void RequestStop() = 0;
  // The same; returns when the body runs no more. Safe to call twice.
  virtual void Stop() = 0;
};

// Thread-safe.
class Threads {
 public:
  using Body = std::function<void(const std::stop_token& stop)>;

  virtual ~Threads() = default;
  virtual std::unique_ptr<Thread> Start(Body body) = 0;
};

class RealThreads final : public Threads {
 public:
  std::unique_ptr<Thread> Start(Body body) override;
};

}  // namespace fluxqueue
