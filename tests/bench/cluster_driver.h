// Jobs on a real cluster, seen from outside as a user sees them: created by several threads,
// watched until they end, with the times of our own clock (those of the API server have whole
// seconds).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/watch.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::bench {

// Requests that change something, by resource (with its subresource) and verb: "pods/binding POST".
using Writes = std::map<std::string, double>;

struct BatchResult {
  double seconds = 0;  // from the first creation to the last end
  Writes writes;       // those of the batch
};

struct ScaleResult {
  double seconds = 0;  // until all pods were seen bound
  Writes writes;
};

// One namespace. One thread; its watches have their own.
class ClusterDriver {
 public:
  // `kubeconfig` of an administrator.
  static absl::StatusOr<std::unique_ptr<ClusterDriver>> Connect(const std::string& kubeconfig,
                                                                std::string space,
                                                                int timeout_s);
  ~ClusterDriver();

  // Makes the namespace; its pods and Jobs are Fluxqueue's if `managed`.
  absl::Status Open(bool managed);

  // `count` Jobs of `pods` pods each. Internal: one of them has failed.
  absl::StatusOr<BatchResult> Batch(const std::string& prefix, int count, int pods);
  // How long from each call that creates a Job to its pod's binding, in milliseconds. A Job begins
  // when the last has ended and `written`, what has been written besides, has not risen for two
  // seconds.
  absl::StatusOr<std::vector<double>> Singles(
      const std::string& prefix, int count, const std::function<absl::StatusOr<double>()>& written);
  // A Deployment that is scaled from none to so many replicas, and deleted.
  absl::StatusOr<ScaleResult> Scale(const std::string& name, int replicas);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  ClusterDriver(kubernetes::ClusterConfig config, std::string space, int timeout_s);

  std::string JobObject(const std::string& name, int pods) const;
  absl::Status CreateAll(const std::string& prefix, int count, int pods);
  // Until every Job of the prefix has ended.
  absl::Status AwaitEnds(const std::string& prefix, int count);
  absl::Status AwaitQuiet(const std::function<absl::StatusOr<double>()>& written);
  absl::StatusOr<Writes> ReadWrites();
  // The same, when it does not rise any more.
  absl::StatusOr<Writes> SettledWrites();
  absl::StatusOr<std::unique_ptr<kubernetes::Watcher>> WatchPods();
  void OnJob(const kubernetes::WatchEvent& event);
  void OnPod(const kubernetes::WatchEvent& event);

  const kubernetes::ClusterConfig config_;
  const std::string space_;
  const std::chrono::seconds timeout_;
  kubernetes::Client client_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> ended_by_prefix_;
  std::map<std::string, TimePoint> ended_;  // by Job
  std::map<std::string, TimePoint> bound_;  // by Job: when its first pod was seen bound
  std::set<std::string> serving_;           // pods of Deployments that were seen bound
  std::string failed_;                      // a Job that did

  std::unique_ptr<kubernetes::Watcher> jobs_;  // last: its thread uses all of the above
};

}  // namespace fluxqueue::bench
