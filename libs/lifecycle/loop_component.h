// A component that is one thread with a loop in it.
//
//   LoopComponent queue_loop(
//       "queue loop",
//       [&](LoopContext& context) -> absl::Status {
//         RETURN_IF_ERROR(context.Retry("apply migrations", [&] { return store.Migrate(); }));
//         return loop.Run(context.stop_token());
//       },
//       [&] { return loop.Ready(); }, failures);
//
// The body returns when its stop token asks for it. If it returns earlier, the process stops: with
// the body's status, or, when that was OK, because a loop that ends unasked is a defect.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "libs/base/clock.h"
#include "libs/lifecycle/component.h"

#include "absl/status/status.h"

namespace fluxqueue::lifecycle {

class LoopComponent;

// What the body is given. Used on the loop's own thread only.
class LoopContext {
 public:
  std::stop_token stop_token() const { return stop_; }

  // Calls `step` until it succeeds; from the first try on the component is not ready, with the
  // reason. While the status is transient (status_macros.h) it backs off from 100 ms to 5 s, and
  // logs the first failure and each that reads differently. Any other error is returned; Cancelled
  // when asked to stop.
  absl::Status Retry(std::string_view doing, const std::function<absl::Status()>& step);

  // Waits; false when asked to stop meanwhile.
  bool SleepFor(Millis time);

 private:
  friend class LoopComponent;
  LoopContext(LoopComponent* owner, std::stop_token stop) : owner_(owner), stop_(std::move(stop)) {}

  LoopComponent* owner_;
  std::stop_token stop_;
};

class LoopComponent final : public Component {
 public:
  using Body = std::function<absl::Status(LoopContext&)>;
  using ReadyFunction = std::function<absl::Status()>;
  using AliveFunction = std::function<absl::Status()>;

  // `ready` is asked while the body runs and does not wait in Retry. Without one, that alone
  // counts. `alive` is asked at any time; without one, it is. `failures` must outlive the
  // component.
  LoopComponent(std::string name,
                Body body,
                ReadyFunction ready,
                FailureSink& failures,
                AliveFunction alive = nullptr);
  ~LoopComponent() override;

  const std::string& name() const override { return name_; }
  absl::Status Start() override;
  void Stop() override;
  absl::Status Ready() const override;
  absl::Status Alive() const override { return alive_ ? alive_() : absl::OkStatus(); }

 private:
  friend class LoopContext;

  void Run(const std::stop_token& stop);
  void SetWaiting(absl::Status waiting);

  const std::string name_;
  const Body body_;
  const ReadyFunction ready_;
  FailureSink& failures_;
  const AliveFunction alive_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  absl::Status waiting_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace fluxqueue::lifecycle
