// Proves by a MAC (HMAC-SHA256, RFC 2104) which slot the binder gave to a pod, where the row is
// lost (libs/kubernetes/slot_proof.h). Thread-safe.
#pragma once

#include <string>

#include "services/binder/domain/call.h"
#include "services/binder/domain/pod_board.h"

#include "absl/status/statusor.h"

namespace fluxqueue::binder {

class SlotProofs {
 public:
  static constexpr size_t kLeastKeyBytes = 32;
  static constexpr size_t kMostKeyBytes = 4096;

  // The key: all bytes of the file. NotFound or InvalidArgument, which name the file.
  static absl::StatusOr<SlotProofs> Read(const std::string& key_file);
  explicit SlotProofs(std::string key) : key_(std::move(key)) {}

  // Of a call that starts a pod: the annotation's value.
  std::string Prove(const Call& call) const;
  // The pod shows what Prove has made for it, its node and the slot that it says it has.
  bool Holds(const PodFacts& pod) const;

 private:
  std::string key_;
};

}  // namespace fluxqueue::binder
