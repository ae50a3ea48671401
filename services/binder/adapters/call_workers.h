// A fixed number of threads that make API calls, in the order of call_queue.h; what comes of them
// goes into the inbox.
//
// When it stops, calls under way are finished and those that wait are dropped: whoever holds the
// partition next makes them again, from the rows. A suspend that has waited too long is given back
// undone: no precondition would keep it from a later attempt, should this process have stood still
// meanwhile. Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/threads.h"
#include "libs/lifecycle/component.h"
#include "services/binder/adapters/call_queue.h"
#include "services/binder/adapters/cluster_calls.h"
#include "services/binder/adapters/inbox.h"
#include "services/binder/metrics.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class CallWorkers final : public lifecycle::Component {
 public:
  // `count` of `threads` make calls. References must outlive the workers.
  CallWorkers(int count,
              Threads& threads,
              ClusterCalls& calls,
              Inbox& inbox,
              BinderMetrics& metrics,
              const Clock& clock);
  ~CallWorkers() override { Stop(); }

  // Does not block.
  void Submit(std::vector<Call> calls);

  const std::string& name() const override { return name_; }
  absl::Status Start() override;
  void Stop() override;
  absl::Status Ready() const override { return absl::OkStatus(); }

 private:
  struct Worker {
    Bell bell;
    std::unique_ptr<Thread> thread;
  };

  void Work(Bell& bell, const std::stop_token& stop);
  // Nothing: none may be made by now, and `bell` is rung when that changes.
  std::optional<CallQueue::Waiting> Take(Bell& bell);
  void Done(const Call& call);
  // REQUIRES: mutex_ is held.
  void WakeOne();
  CallResult Make(const Call& call, std::chrono::steady_clock::time_point since);
  void LogFailure(const CallResult& result, std::chrono::steady_clock::time_point now);

  const std::string name_ = "API calls";
  const int count_;
  Threads& threads_;
  ClusterCalls& calls_;
  Inbox& inbox_;
  BinderMetrics& metrics_;
  const Clock& clock_;
  std::mutex mutex_;
  CallQueue waiting_;                                // guarded by mutex_
  std::vector<Bell*> idle_;                          // guarded by mutex_
  std::chrono::steady_clock::time_point log_again_;  // guarded by mutex_
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace fluxqueue::binder
