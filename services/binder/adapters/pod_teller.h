// Writes what pods that wait are to say (waiting_pods.h) into their status, on a thread of its own
// and at kPerSecond at most, so that binding never waits for it. A pod that is bound by then, or is
// gone, is left alone: the API server refuses the write (the policy fluxqueue-binder, the uid).
//
// Thread-safe, save Run.
#pragma once

#include <atomic>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/mailbox.h"
#include "libs/kubernetes/cluster.h"
#include "services/binder/domain/waiting_pods.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class PodTeller {
 public:
  // Taken at once.
  static constexpr size_t kMost = 1000;
  static constexpr int kPerSecond = 50;

  // The cluster must outlive it.
  explicit PodTeller(kubernetes::Cluster& cluster) : cluster_(cluster) {}

  // REQUIRES: idle(), kMost at most. Does not block.
  void Tell(std::vector<PodCondition> conditions);
  // Nothing that it was told waits to be written, or is being written.
  bool idle() const { return left_ == 0; }
  // What is not written yet is forgotten.
  void Clear();
  // Until `stop`.
  absl::Status Run(const std::stop_token& stop);

  // For metrics.
  const Mailbox<PodCondition>& mailbox() const { return waiting_; }

 private:
  // False: the API server does not answer, or lets us write none.
  bool Write(const PodCondition& condition);

  kubernetes::Cluster& cluster_;
  Mailbox<PodCondition> waiting_{"pods that wait"};
  std::atomic<size_t> left_ = 0;
};

// A strategic merge patch of the pod's status.
std::string WaitingPatch(const PodCondition& condition);

}  // namespace fluxqueue::binder
