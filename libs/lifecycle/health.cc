#include "libs/lifecycle/health.h"

#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::lifecycle {

void Health::Serving(std::vector<const Component*> components) {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kServing;
  components_ = std::move(components);
}

void Health::Stopping() {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kStopping;
  components_.clear();
}

HealthReport Health::Ready() const {
  // Held while the components are asked, so that none of them can go away under the question.
  const std::lock_guard lock(mutex_);
  switch (phase_) {
    case Phase::kStarting:
      return {.ok = false, .text = "starting\n"};
    case Phase::kStopping:
      return {.ok = false, .text = "stopping\n"};
    case Phase::kServing:
      break;
  }
  std::string waiting;
  for (const Component* component : components_) {
    const absl::Status status = component->Ready();
    if (!status.ok()) waiting += fmt::format("{}: {}\n", component->name(), Message(status));
  }
  if (!waiting.empty()) return {.ok = false, .text = std::move(waiting)};
  return {.ok = true, .text = "ok\n"};
}

}  // namespace fluxqueue::lifecycle
