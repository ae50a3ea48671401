// What /livez and /readyz answer.
//
// Alive: the process answers, and no component hangs. Ready: each component can do its work.
// Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "libs/lifecycle/component.h"

#include "absl/status/status.h"

namespace fluxqueue::lifecycle {

struct HealthReport {
  bool ok = false;
  // One line for each component that is not, `name: reason`; "ok" when there is none.
  std::string text;
};

class Health {
 public:
  // Before: not ready, "starting". `components` must outlive the next call of Stopping.
  void Serving(std::vector<const Component*> components);
  // From now on not ready, "stopping"; the components are not asked any more.
  void Stopping();

  HealthReport Ready() const;
  // While it starts and stops it is alive: both have limits of their own.
  HealthReport Live() const;

 private:
  enum class Phase { kStarting, kServing, kStopping };
  using Question = absl::Status (Component::*)() const;

  // REQUIRES: the mutex is held, so that none of them can go away under the question.
  HealthReport Ask(Question question) const;

  mutable std::mutex mutex_;
  Phase phase_ = Phase::kStarting;
  std::vector<const Component*> components_;
};

}  // namespace fluxqueue::lifecycle
