// Virtual time, and who goes on next: fibers of simulated processes, and what happens at its time.
// The seed decides all of it. One thread.
//
// A process' fibers stand still while it is frozen, as after SIGSTOP; End() unwinds them where they
// stand. While a fiber is in NoYield, whatever it calls goes on at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/fiber.h"

namespace fluxqueue::simulation {

using TimePoint = std::chrono::steady_clock::time_point;

// What fibers belong to.
struct Owner {
  std::string name{};
  TimePoint frozen_since{};
  TimePoint frozen_until{};    // not frozen where it is past
  Millis freeze_in_commit{0};  // for so long, in the midst of its next transaction
  bool ended = false;
};

class Scheduler {
 public:
  using Ready = std::function<bool()>;

  explicit Scheduler(uint64_t seed);
  ~Scheduler();

  TimePoint now() const { return now_; }
  Chance& chance() { return chance_; }
  uint64_t steps() const { return steps_; }

  // Returns the fiber's number.
  uint64_t Spawn(Owner& owner, std::string name, std::function<void()> body);
  // Unwinds that fiber, if it is there still. REQUIRES: called outside of it.
  void Kill(uint64_t number);
  // Unwinds all fibers of the owner. REQUIRES: called outside of them.
  void End(Owner& owner);
  void Freeze(Owner& owner, Millis time);

  // Outside of fibers, at that time, in the order of the calls.
  void At(TimePoint time, std::function<void()> action);
  void After(Millis time, std::function<void()> action) { At(now_ + time, std::move(action)); }

  // One step of somebody, or time moves on. False: nothing will ever happen again.
  bool Step();

  // ---- inside of fibers; elsewhere, and in NoYield, they do nothing

  // Others may come first.
  void GiveWay();
  // Until `ready`, or the time has come. True: `ready`.
  bool Wait(const Ready& ready, TimePoint until);
  void Sleep(Millis time);

  class NoYield {
   public:
    explicit NoYield(Scheduler& scheduler) : scheduler_(scheduler) { ++scheduler_.held_; }
    ~NoYield() { --scheduler_.held_; }

   private:
    Scheduler& scheduler_;
  };

 private:
  struct Task {
    uint64_t number;
    Owner* owner;
    std::string name;
    std::unique_ptr<Fiber> fiber;
    const Ready* ready = nullptr;  // waits for it; null: for the time only
    TimePoint until{};
  };

  bool MayYield() const { return Fiber::Current() != nullptr && held_ == 0; }
  bool MayRun(const Task& task) const;
  // To the next time at which something can happen.
  bool MoveOn();

  TimePoint now_;
  Chance chance_;
  uint64_t steps_ = 0;
  int held_ = 0;
  uint64_t spawned_ = 0;
  std::list<Task> tasks_;
  Task* running_ = nullptr;
  std::multimap<TimePoint, std::function<void()>> events_;
};

// A process' clock. `skew`: its wall clock is wrong by so much.
class SimClock final : public Clock {
 public:
  explicit SimClock(Scheduler& scheduler, Millis skew = Millis(0))
      : scheduler_(scheduler), skew_(skew) {}

  std::chrono::system_clock::time_point Now() const override;
  TimePoint Monotonic() const override { return scheduler_.now(); }
  void Wait(Bell& bell, TimePoint until, const std::stop_token& stop) const override;
  void Skew(Millis skew) { skew_ = skew; }

 private:
  Scheduler& scheduler_;
  Millis skew_;
};

Millis SinceBeginning(const Scheduler& scheduler);
// Since the Unix epoch.
Millis WallTime(const Scheduler& scheduler, Millis skew = Millis(0));

}  // namespace fluxqueue::simulation
