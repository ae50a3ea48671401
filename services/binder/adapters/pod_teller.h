// Writes what pods that wait are to say (waiting_pods.h) into their status, on a thread of its own
// and at kPerSecond at most, so that binding never waits for it. A pod that is bound by then, or is
// gone, is left alone: the API server refuses the write (the policy fluxqueue-binder, the uid).
//
// Thread-safe, save Run.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/mailbox.h"
#include "libs/kubernetes/client.h"
#include "services/binder/domain/waiting_pods.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class PodTeller {
 public:
  // So many wait to be written; what comes then is dropped.
  static constexpr size_t kMostWaiting = 1000;
  static constexpr int kPerSecond = 20;

  // The client must outlive it.
  explicit PodTeller(kubernetes::Client& client) : client_(client) {}

  // Does not block.
  void Tell(std::vector<PodCondition> conditions);
  // All that it was told is written: what is compared with the pods now is not on its way already.
  bool idle() const { return waiting_.empty(); }
  // Until `stop`.
  absl::Status Run(const std::stop_token& stop);

  // For metrics.
  const Mailbox<PodCondition>& mailbox() const { return waiting_; }

 private:
  void Write(const PodCondition& condition);

  kubernetes::Client& client_;
  Mailbox<PodCondition> waiting_{"pods that wait", kMostWaiting};  // each counts as 1
};

// A strategic merge patch of the pod's status.
std::string WaitingPatch(const PodCondition& condition);

}  // namespace fluxqueue::binder
