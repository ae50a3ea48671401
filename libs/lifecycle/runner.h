// Starts components in order, waits until asked to stop or one fails, stops them in reverse order.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/lifecycle/component.h"
#include "libs/lifecycle/health.h"

#include "absl/status/status.h"

namespace fluxqueue::lifecycle {

class Runner final : public FailureSink {
 public:
  // When the components have not stopped within `stop_deadline`, the log says which was waited for
  // and the process ends with exit code 1. `health` must outlive the runner.
  Runner(Health& health, Millis stop_deadline) : health_(health), stop_deadline_(stop_deadline) {}

  // Thread-safe, both; the first failure and the first wish to stop count.
  void Fail(const std::string& component, const absl::Status& status) override;
  void RequestStop(const std::string& why);

  // OK when it stopped as asked, else the first failure, `component: reason`. Called once.
  absl::Status Run(const std::vector<Component*>& components);

 private:
  bool StartAll(const std::vector<Component*>& components);
  void WaitForTheEnd();
  void StopAll();
  void Watch(std::stop_token done);

  Health& health_;
  const Millis stop_deadline_;

  // In the order of their start; the runner's own thread only.
  std::vector<Component*> started_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool stop_ = false;  // guarded by mutex_, as what follows
  absl::Status failure_;
  std::string stopping_;  // the component being stopped
};

}  // namespace fluxqueue::lifecycle
