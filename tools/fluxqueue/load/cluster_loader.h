// Plays a plan on a cluster: makes the nodes (kwok's) and the namespace, submits each Job at its
// time, watches until all have ended, and takes everything away again.
//
// It writes nothing but what it makes itself, and reads by two watches: Jobs and FluxJobs of its
// namespace. What the API server cannot do now is tried again until the timeout; a Job that it
// refuses is noted, and the load goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>

#include "libs/base/clock.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/watch.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/fluxqueue/load/load_plan.h"
#include "tools/fluxqueue/load/load_report.h"
#include "tools/fluxqueue/load/load_tracker.h"
#include "tools/fluxqueue/load/progress_line.h"

namespace fluxqueue::load {

struct LoaderOptions {
  std::string space = "load";
  std::string queue{};                        // empty: the default
  bool managed = true;                        // false: Kubernetes schedules, for comparison
  bool keep = false;                          // leave namespace and nodes
  Millis timeout = std::chrono::minutes(30);  // for all but the taking away
};

// One Run, on one thread.
class ClusterLoader {
 public:
  // All must outlive it.
  ClusterLoader(kubernetes::Client& client,
                const Clock& clock,
                const Plan& plan,
                LoaderOptions options);

  // A load that ran out of time has a report too. AlreadyExists: the namespace or its nodes are
  // there, left by an earlier load. Cancelled: stopped; it has cleaned up all the same.
  absl::StatusOr<LoadReport> Run(std::stop_token stop);

 private:
  absl::Status CheckRoom();
  absl::Status MakeNodes(std::stop_token stop);
  absl::Status AwaitNodes(std::stop_token stop);
  absl::StatusOr<LoadReport> Play(std::stop_token stop);
  void Submit(std::stop_token stop);
  void SubmitOne(size_t index, std::stop_token stop);
  void AwaitEnds(std::stop_token stop);
  void OnJob(const kubernetes::WatchEvent& event);
  void OnFluxJob(const kubernetes::WatchEvent& event);
  void ShowProgress(const Counts& counts);
  absl::Status CleanUp();
  absl::Status AwaitNamespaceGone();

  // Calls until the answer is not transient, the time is up or a stop is asked for. `repeated`
  // tells the call that an earlier one may have been done.
  absl::Status Insist(const std::function<absl::Status(bool repeated)>& call, std::stop_token stop);
  // fn(0) … fn(count - 1), begun in this order, some at a time; the first error ends it.
  absl::Status ForEach(size_t count, const std::function<absl::Status(size_t)>& fn);
  // False when asked to stop.
  bool SleepUntil(std::chrono::steady_clock::time_point time, std::stop_token stop);
  int64_t NowMs() const;

  kubernetes::Client& client_;
  const Clock& clock_;
  const Plan& plan_;
  const LoaderOptions options_;
  std::chrono::steady_clock::time_point deadline_{};
  std::chrono::steady_clock::time_point begin_{};  // of the submissions
  ProgressLine progress_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  LoadTracker tracker_;      // guarded by mutex_
  absl::Status unreadable_;  // guarded by mutex_: the first object that could not be read
};

}  // namespace fluxqueue::load
