#include "libs/signing/batch.h"

#include <cstdint>

#include <openssl/sha.h>

#include "libs/base/status_macros.h"

#include "fmt/format.h"

namespace fluxqueue::signing {
namespace {

constexpr size_t kHashBytes = SHA256_DIGEST_LENGTH;
constexpr size_t kNumberBytes = 4;
constexpr size_t kHeadBytes = kSignatureBytes + 2 * kNumberBytes;
constexpr size_t kMostStreams = 1000;
constexpr char kLeaf = '\0';
constexpr char kInner = '\1';
// So that a signature of a batch is one of nothing else.
constexpr std::string_view kPurpose = "fluxqueue batch 1\n";

std::string Hash(std::string_view text) {
  std::string hash(kHashBytes, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()),
         text.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

std::string HashOf(const Record& record) {
  std::string all(1, kLeaf);
  for (const std::string_view text : record) {
    all += fmt::format("{}:", text.size());
    all += text;
  }
  return Hash(all);
}

std::string Join(std::string_view left, std::string_view right) {
  std::string both(1, kInner);
  both += left;
  both += right;
  return Hash(both);
}

void PutNumber(uint32_t number, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) *out += static_cast<char>(number >> shift);
}

uint32_t NumberAt(std::string_view text, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < kNumberBytes; ++i) {
    number = number << 8 | static_cast<unsigned char>(text[at + i]);
  }
  return number;
}

std::string SignedText(std::string_view root, uint32_t count) {
  std::string text(kPurpose);
  PutNumber(count, &text);
  text += root;
  return text;
}

// Levels of the tree, from the leaves to the root. One without a neighbour goes up as it is.
std::vector<std::vector<std::string>> Grow(std::vector<std::string> leaves) {
  std::vector<std::vector<std::string>> levels = {std::move(leaves)};
  while (levels.back().size() > 1) {
    const std::vector<std::string>& below = levels.back();
    std::vector<std::string> level;
    for (size_t i = 0; i + 1 < below.size(); i += 2) level.push_back(Join(below[i], below[i + 1]));
    if (below.size() % 2 == 1) level.push_back(below.back());
    levels.push_back(std::move(level));
  }
  return levels;
}

}  // namespace

std::vector<std::string> SignBatch(const Signer& signer, const std::vector<Record>& records) {
  if (records.empty()) return {};
  std::vector<std::string> leaves;
  leaves.reserve(records.size());
  for (const Record& record : records) leaves.push_back(HashOf(record));
  const auto count = static_cast<uint32_t>(records.size());
  const auto levels = Grow(std::move(leaves));
  const std::string signature = signer.Sign(SignedText(levels.back()[0], count));
  std::vector<std::string> proofs;
  proofs.reserve(records.size());
  for (uint32_t index = 0; index < count; ++index) {
    std::string proof = signature;
    PutNumber(index, &proof);
    PutNumber(count, &proof);
    size_t at = index;
    for (const auto& level : levels) {
      const size_t neighbour = at ^ 1U;
      if (level.size() > 1 && neighbour < level.size()) proof += level[neighbour];
      at /= 2;
    }
    proofs.push_back(std::move(proof));
  }
  return proofs;
}

absl::Status BatchVerifier::Check(const std::string& stream,
                                  const Record& record,
                                  std::string_view proof) {
  const auto denied = [](std::string why) {
    return absl::Status(absl::StatusCode::kPermissionDenied, std::move(why));
  };
  const std::string service = stream.substr(0, stream.find('/'));
  if (!keys_.Knows(service)) {
    return denied(fmt::format("nobody is known by the name '{}' that its stream has", service));
  }
  if (proof.empty()) return denied(fmt::format("it is not signed by {}", service));
  const auto malformed = [&] { return denied("its signature is no proof of a batch"); };
  if (proof.size() < kHeadBytes) return malformed();
  const std::string_view signature = proof.substr(0, kSignatureBytes);
  size_t at = NumberAt(proof, kSignatureBytes);
  const uint32_t count = NumberAt(proof, kSignatureBytes + kNumberBytes);
  std::string_view way = proof.substr(kHeadBytes);
  if (at >= count) return malformed();
  std::string hash = HashOf(record);
  for (size_t width = count; width > 1; width = (width + 1) / 2, at /= 2) {
    const bool right = at % 2 == 1;
    if (!right && at + 1 == width) continue;
    if (way.size() < kHashBytes) return malformed();
    const std::string_view beside = way.substr(0, kHashBytes);
    way.remove_prefix(kHashBytes);
    hash = right ? Join(beside, hash) : Join(hash, beside);
  }
  if (!way.empty()) return malformed();
  std::string text = SignedText(hash, count);
  text += signature;
  const auto last = last_.find(stream);
  if (last != last_.end() && last->second == text) return absl::OkStatus();
  if (!keys_.Check(service, SignedText(hash, count), signature)) {
    return denied(fmt::format("its signature is not of {}", service));
  }
  if (last_.size() >= kMostStreams) last_.clear();
  last_[stream] = std::move(text);
  return absl::OkStatus();
}

}  // namespace fluxqueue::signing
