// Signs slots as pods are given them, and checks such signatures (libs/kubernetes/slot_proof.h).
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "libs/config/service_config.h"
#include "services/binder/domain/call.h"
#include "services/binder/domain/pod_board.h"

namespace fluxqueue::binder {

class SlotProofs {
 public:
  explicit SlotProofs(config::SigningConfig signing) : signing_(std::move(signing)) {}

  // Of a call that starts a pod: the annotation's value. Empty: nothing is signed here.
  std::string Sign(const Call& call) const;
  // Null: there are no keys to check with. Valid as long as this object.
  ProofCheck Check() const;

 private:
  bool Holds(const PodFacts& pod) const;

  const config::SigningConfig signing_;
};

}  // namespace fluxqueue::binder
