#include "services/binder/adapters/slot_proofs.h"

#include <array>
#include <fstream>
#include <iterator>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/slot_proof.h"

#include "absl/strings/escaping.h"

namespace fluxqueue::binder {
namespace {

std::string ProofOf(const std::string& key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned size = 0;
  const auto* made = HMAC(EVP_sha256(),
                          key.data(),
                          static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()),
                          text.size(),
                          mac.data(),
                          &size);
  CHECK(made != nullptr, "HMAC-SHA256 of {} bytes", text.size());
  std::string proof;
  absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(mac.data()), size), &proof);
  return proof;
}

}  // namespace

absl::StatusOr<SlotProofs> SlotProofs::Read(const std::string& key_file) {
  std::ifstream file(key_file, std::ios::binary);
  if (!file) {
    return MakeStatus(absl::StatusCode::kNotFound, "proof_key: {} cannot be read", key_file);
  }
  std::string key{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (key.size() < kLeastKeyBytes || key.size() > kMostKeyBytes) {
    return InvalidArgument("proof_key: {} has {} bytes; allowed: {} to {} random bytes",
                           key_file,
                           key.size(),
                           kLeastKeyBytes,
                           kMostKeyBytes);
  }
  return SlotProofs(std::move(key));
}

std::string SlotProofs::Prove(const Call& call) const {
  return ProofOf(
      key_, kubernetes::SlotProofText(call.uid, call.space, call.job_id, SlotOf(call), call.node));
}

bool SlotProofs::Holds(const PodFacts& pod) const {
  if (!pod.slot.has_value()) return false;
  const std::string proof =
      ProofOf(key_, kubernetes::SlotProofText(pod.uid, pod.space, pod.job_id, *pod.slot, pod.node));
  return pod.proof.size() == proof.size() &&
         CRYPTO_memcmp(pod.proof.data(), proof.data(), proof.size()) == 0;
}

}  // namespace fluxqueue::binder
