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

HealthReport Health::Ask(Question question) const {
  std::string lines;
  for (const Component* component : components_) {
    const absl::Status status = (component->*question)();
    if (!status.ok()) lines += fmt::format("{}: {}\n", component->name(), Message(status));
  }
  if (!lines.empty()) return {.ok = false, .text = std::move(lines)};
  return {.ok = true, .text = "ok\n"};
}

HealthReport Health::Live() const {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kServing) return {.ok = true, .text = "ok\n"};
  return Ask(&Component::Alive);
}

HealthReport Health::Ready() const {
  const std::lock_guard lock(mutex_);
  switch (phase_) {
    case Phase::kStarting:
      return {.ok = false, .text = "starting\n"};
    case Phase::kStopping:
      return {.ok = false, .text = "stopping\n"};
    case Phase::kServing:
      break;
  }
  return Ask(&Component::Ready);
}

}  // namespace fluxqueue::lifecycle
