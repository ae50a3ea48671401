#include "services/binder/adapters/slot_proofs.h"

#include "libs/base/status_macros.h"
#include "libs/kubernetes/slot_proof.h"

#include "absl/strings/escaping.h"

namespace fluxqueue::binder {
namespace {

constexpr std::string_view kSigner = "binder";

}  // namespace

std::string SlotProofs::Sign(const Call& call) const {
  std::string proof;
  if (signing_.signer == nullptr) return proof;
  absl::Base64Escape(ToAbsl(signing_.signer->Sign(kubernetes::SlotProofText(
                         call.uid, call.space, call.job_id, SlotOf(call), call.node))),
                     &proof);
  return proof;
}

ProofCheck SlotProofs::Check() const {
  if (signing_.keys == nullptr) return nullptr;
  return [this](const PodFacts& pod) { return Holds(pod); };
}

bool SlotProofs::Holds(const PodFacts& pod) const {
  std::string signature;
  if (!pod.slot.has_value() || !absl::Base64Unescape(ToAbsl(pod.proof), &signature)) return false;
  return signing_.keys->Check(
      kSigner,
      kubernetes::SlotProofText(pod.uid, pod.space, pod.job_id, *pod.slot, pod.node),
      signature);
}

}  // namespace fluxqueue::binder
