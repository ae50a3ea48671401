// Tells people, in an Event on the object, that the binder could not handle it and leaves it out.
// On a thread of its own; every replica says it, by the same name, so that it is there once.
//
// Thread-safe, save Run.
#pragma once

#include <stop_token>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/mailbox.h"
#include "libs/delivery/quarantine.h"
#include "libs/kubernetes/cluster.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class LeftOutTeller {
 public:
  // So many wait; of others there is a line in the log and a dead letter.
  static constexpr size_t kMostWaiting = 1000;

  // `instance` is named in Events. References must outlive the teller.
  LeftOutTeller(kubernetes::Cluster& cluster, const Clock& clock, std::string instance)
      : cluster_(cluster), clock_(clock), instance_(std::move(instance)) {}

  // Does not block. What stands for a whole namespace has no object to tell it on.
  void Tell(const delivery::QuarantineRow& row);
  // Until `stop`.
  absl::Status Run(const std::stop_token& stop);

  // For metrics.
  const Mailbox<delivery::QuarantineRow>& mailbox() const { return waiting_; }

 private:
  void Write(const delivery::QuarantineRow& row);

  kubernetes::Cluster& cluster_;
  const Clock& clock_;
  const std::string instance_;
  Mailbox<delivery::QuarantineRow> waiting_{"left out", kMostWaiting};  // each counts as 1
};

}  // namespace fluxqueue::binder
