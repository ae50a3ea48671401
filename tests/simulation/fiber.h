// A body with a stack of its own, which goes on until it yields. So loops that block can be stepped
// one by one on one thread, and ended where they stand.
//
// What C++ knows of exceptions under way is the thread's: it is kept for each fiber, so that a body
// may yield within a catch block. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <ucontext.h>

namespace fluxqueue::simulation {

class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{256} << 10;
  // Thrown out of Yield() where the fiber is to end. No std::exception: no handler of those catches
  // it.
  struct Killed {};

  explicit Fiber(std::function<void()> body);
  // REQUIRES: it is done.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on until it yields or is done. REQUIRES: called outside of it, and it is not done.
  void Resume();
  // Unwinds its stack: whatever it calls meanwhile must not yield. Done afterwards.
  void Kill();
  bool done() const { return done_; }
  bool killed() const { return kill_; }

  // Inside of a fiber: gives way.
  void Yield();
  static Fiber* Current();

 private:
  struct Exceptions {  // __cxa_eh_globals
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  static void Enter();
  void SwapExceptions();

  const std::function<void()> body_;
  std::unique_ptr<char[]> stack_;
  ucontext_t own_{};
  ucontext_t other_{};
  Exceptions exceptions_;
  bool kill_ = false;
  bool done_ = false;
};

}  // namespace fluxqueue::simulation
