// Makes and deletes the ProvisioningRequests of provisioning.h, on a thread of its own: each time
// that it is told which jobs lack nodes it looks at what is there. While the cluster has no such
// API, or does not answer, nothing is made, and the next time comes.
//
// Thread-safe, save Run.
#pragma once

#include <atomic>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/base/mailbox.h"
#include "libs/kubernetes/cluster.h"
#include "services/binder/domain/provisioning.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class Provisioner {
 public:
  // References must outlive it. Without classes it takes back once what was asked for before.
  Provisioner(kubernetes::Cluster& cluster, const Clock& clock, ProvisioningClasses classes)
      : cluster_(cluster), clock_(clock), classes_(std::move(classes)) {}

  // These jobs lack nothing but nodes, and no others do. Does not block.
  void Lack(std::vector<events::v1::JobFact> jobs);
  // Until `stop`.
  absl::Status Run(const std::stop_token& stop);

  // For metrics.
  const Mailbox<std::vector<events::v1::JobFact>>& mailbox() const { return lacking_; }

 private:
  absl::Status Compare(const std::vector<events::v1::JobFact>& lacking);
  absl::Status Ask(const events::v1::JobFact& fact);
  absl::Status Remove(const Provision& request);

  kubernetes::Cluster& cluster_;
  const Clock& clock_;
  const ProvisioningClasses classes_;
  Mailbox<std::vector<events::v1::JobFact>> lacking_{"lack nodes"};  // the last one counts
  std::atomic<bool> done_ = false;          // without classes: nothing is left to be taken back
  std::map<std::string, Millis> unwanted_;  // as PlanProvisions leaves it
};

}  // namespace fluxqueue::binder
