#include "tests/simulation/fiber.h"

#include <memory>
#include <utility>
#include <vector>

#include <cxxabi.h>

#include "libs/base/check.h"

namespace fluxqueue::simulation {
namespace {

thread_local Fiber* current = nullptr;

// Stacks are used again: they are dear to make, and warm.
std::vector<std::unique_ptr<char[]>>& Stacks() {
  thread_local std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  if (Stacks().empty()) {
    stack_.reset(new char[kStackBytes]);
  } else {
    stack_ = std::move(Stacks().back());
    Stacks().pop_back();
  }
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = nullptr;
  makecontext(&own_, &Fiber::Enter, 0);
}

Fiber::~Fiber() {
  CHECK(done_, "a fiber goes that is not done");
  Stacks().push_back(std::move(stack_));
}

Fiber* Fiber::Current() {
  return current;
}

void Fiber::SwapExceptions() {
  auto* globals = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  std::swap(*globals, exceptions_);
}

void Fiber::Enter() {
  Fiber& self = *current;
  if (!self.kill_) {
    try {
      self.body_();
    } catch (const Killed&) {
    }
  }
  self.done_ = true;
  swapcontext(&self.own_, &self.other_);
}

void Fiber::Resume() {
  CHECK(!done_ && current != this);
  Fiber* const before = std::exchange(current, this);
  SwapExceptions();
  swapcontext(&other_, &own_);
  SwapExceptions();
  current = before;
}

void Fiber::Yield() {
  CHECK(current == this);
  swapcontext(&own_, &other_);
  if (kill_) throw Killed();
}

void Fiber::Kill() {
  if (done_) return;
  kill_ = true;
  Resume();
  CHECK(done_, "a fiber waits while it ends");
}

}  // namespace fluxqueue::simulation
