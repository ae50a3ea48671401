#include "tests/simulation/scheduler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "libs/base/check.h"

namespace fluxqueue::simulation {
namespace {

constexpr TimePoint kBeginning{std::chrono::hours(1000)};
constexpr Millis kWallBeginning{1'800'000'000'000};

}  // namespace

Millis SinceBeginning(const Scheduler& scheduler) {
  return std::chrono::floor<Millis>(scheduler.now() - kBeginning);
}

Millis WallTime(const Scheduler& scheduler, Millis skew) {
  return kWallBeginning + SinceBeginning(scheduler) + skew;
}

Scheduler::Scheduler(uint64_t seed) : now_(kBeginning), chance_(seed) {}

Scheduler::~Scheduler() {
  for (Task& task : tasks_) task.fiber->Kill();
}

uint64_t Scheduler::Spawn(Owner& owner, std::string name, std::function<void()> body) {
  tasks_.push_back({++spawned_, &owner, std::move(name), std::make_unique<Fiber>(std::move(body))});
  return spawned_;
}

void Scheduler::Kill(uint64_t number) {
  const auto task = std::ranges::find(tasks_, number, &Task::number);
  if (task == tasks_.end()) return;
  CHECK(running_ != &*task, "a fiber ends itself");
  const NoYield at_once(*this);
  task->fiber->Kill();
  tasks_.erase(task);
}

void Scheduler::End(Owner& owner) {
  CHECK(running_ == nullptr, "a process ends itself");
  owner.ended = true;
  for (Task& task : tasks_) {
    if (task.owner == &owner) task.fiber->Kill();
  }
  std::erase_if(tasks_, [&](const Task& task) { return task.owner == &owner; });
}

void Scheduler::Freeze(Owner& owner, Millis time) {
  if (owner.frozen_until <= now_) owner.frozen_since = now_;
  owner.frozen_until = std::max(owner.frozen_until, now_ + time);
}

void Scheduler::At(TimePoint time, std::function<void()> action) {
  events_.emplace(std::max(time, now_), std::move(action));
}

bool Scheduler::MayRun(const Task& task) const {
  if (task.owner->frozen_until > now_) return false;
  return task.until <= now_ || (task.ready != nullptr && (*task.ready)());
}

bool Scheduler::MoveOn() {
  std::optional<TimePoint> next;
  if (!events_.empty()) next = events_.begin()->first;
  for (const Task& task : tasks_) {
    const TimePoint at = std::max(task.until, task.owner->frozen_until);
    next = std::min(next.value_or(at), at);
  }
  if (!next.has_value()) return false;
  now_ = std::max(now_, *next);
  return true;
}

bool Scheduler::Step() {
  if (!events_.empty() && events_.begin()->first <= now_) {
    const auto action = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    action();
    return true;
  }
  std::vector<std::list<Task>::iterator> ready;
  for (auto task = tasks_.begin(); task != tasks_.end(); ++task) {
    if (MayRun(*task)) ready.push_back(task);
  }
  if (ready.empty()) return MoveOn();
  const auto task = ready[chance_.Pick(ready.size())];
  ++steps_;
  running_ = &*task;
  task->fiber->Resume();
  running_ = nullptr;
  if (task->fiber->done()) tasks_.erase(task);
  return true;
}

bool Scheduler::Wait(const Ready& ready, TimePoint until) {
  if (!MayYield()) return ready();
  Task& task = *running_;
  task.ready = &ready;
  task.until = until;
  task.fiber->Yield();
  task.ready = nullptr;
  return ready();
}

void Scheduler::GiveWay() {
  if (!MayYield()) return;
  running_->until = now_;
  running_->fiber->Yield();
}

void Scheduler::Sleep(Millis time) {
  if (!MayYield()) return;
  running_->until = now_ + time;
  running_->fiber->Yield();
}

std::chrono::system_clock::time_point SimClock::Now() const {
  return std::chrono::system_clock::time_point(WallTime(scheduler_, skew_));
}

void SimClock::Wait(Bell& bell, TimePoint until, const std::stop_token& stop) const {
  scheduler_.Wait([&] { return bell.rung() || stop.stop_requested(); }, until);
}

}  // namespace fluxqueue::simulation
