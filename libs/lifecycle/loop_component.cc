#include "libs/lifecycle/loop_component.h"

#include <exception>
#include <utility>

#include "libs/base/backoff.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::lifecycle {
namespace {

constexpr Millis kMinBackoff{100};
constexpr Millis kMaxBackoff{5'000};

}  // namespace

absl::Status LoopContext::Retry(std::string_view doing, const std::function<absl::Status()>& step) {
  Backoff backoff(kMinBackoff, kMaxBackoff);
  absl::Status last;
  owner_->SetWaiting(Unavailable("{}: under way", doing));
  while (!stop_.stop_requested()) {
    const absl::Status status = Annotate(step(), doing);
    if (!IsTransient(status)) {
      if (status.ok() && !last.ok()) {
        LogInfo("no longer waiting", {{"component", owner_->name()}, {"for", doing}});
      }
      owner_->SetWaiting(absl::OkStatus());
      return status;
    }
    owner_->SetWaiting(status);
    if (status != last) {
      LogWarning("waiting", {{"component", owner_->name()}, {"reason", Message(status)}});
    }
    last = status;
    SleepFor(backoff.Next());
  }
  return absl::CancelledError(ToAbsl(fmt::format("{}: asked to stop", doing)));
}

bool LoopContext::SleepFor(Millis time) {
  std::unique_lock lock(owner_->mutex_);
  owner_->wake_.wait_for(lock, stop_, time, [] { return false; });
  return !stop_.stop_requested();
}

LoopComponent::LoopComponent(
    std::string name, Body body, ReadyFunction ready, FailureSink& failures, AliveFunction alive)
    : name_(std::move(name)),
      body_(std::move(body)),
      ready_(std::move(ready)),
      failures_(failures),
      alive_(std::move(alive)),
      waiting_(Unavailable("not started")) {}

LoopComponent::~LoopComponent() {
  Stop();
}

absl::Status LoopComponent::Start() {
  SetWaiting(Unavailable("starting"));
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  return absl::OkStatus();
}

void LoopComponent::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  SetWaiting(Unavailable("stopped"));
}

absl::Status LoopComponent::Ready() const {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.ok()) return waiting_;
  }
  return ready_ ? ready_() : absl::OkStatus();
}

void LoopComponent::Run(const std::stop_token& stop) {
  SetWaiting(absl::OkStatus());
  LoopContext context(this, stop);
  absl::Status status;
  // Nothing should throw up to here. If it does, the log's last line has to say where it came from.
  try {
    status = body_(context);
  } catch (const std::exception& error) {
    status = Internal("exception: {}", error.what());
  }
  const bool broken = absl::IsInternal(status) || absl::IsDataLoss(status);
  if (stop.stop_requested() && !broken) return;
  if (status.ok()) status = Internal("ended without being asked to");
  SetWaiting(status);
  failures_.Fail(name_, status);
}

void LoopComponent::SetWaiting(absl::Status waiting) {
  const std::lock_guard lock(mutex_);
  waiting_ = std::move(waiting);
}

}  // namespace fluxqueue::lifecycle
