#include "libs/lifecycle/runner.h"

#include <cstdlib>
#include <stop_token>
#include <thread>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/config/units.h"

namespace fluxqueue::lifecycle {

void Runner::Fail(const std::string& component, const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = Annotate(status, component);
  stop_ = true;
  changed_.notify_all();
}

void Runner::RequestStop(const std::string& why) {
  LogInfo("stopping", {{"reason", why}});
  const std::lock_guard lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

absl::Status Runner::Run(const std::vector<Component*>& components) {
  if (StartAll(components)) {
    health_.Serving({components.begin(), components.end()});
    LogInfo("started");
    WaitForTheEnd();
  }
  health_.Stopping();
  StopAll();
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Runner::StartAll(const std::vector<Component*>& components) {
  for (Component* component : components) {
    const absl::Status status = component->Start();
    if (!status.ok()) {
      Fail(component->name(), Annotate(status, "start"));
      return false;
    }
    started_.push_back(component);
  }
  return true;
}

void Runner::WaitForTheEnd() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_; });
  // Said here too, because the last line comes only after all was stopped.
  if (!failure_.ok()) LogError("failed, stopping", {{"reason", Message(failure_)}});
}

void Runner::StopAll() {
  const std::jthread watchdog([this](const std::stop_token& done) { Watch(done); });
  for (auto component = started_.rbegin(); component != started_.rend(); ++component) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = (*component)->name();
    }
    (*component)->Stop();
  }
  started_.clear();
}

void Runner::Watch(std::stop_token done) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, done, stop_deadline_, [] { return false; });
  if (done.stop_requested()) return;
  LogError("did not stop in time, ending",
           {{"component", stopping_},
            {"deadline", config::FormatDuration(stop_deadline_)},
            {"failure", Message(failure_)}});
  std::_Exit(1);
}

}  // namespace fluxqueue::lifecycle
