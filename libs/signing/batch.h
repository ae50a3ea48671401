// One signature for the records of a batch, and a proof for each of them that needs no other: a
// reader may begin anywhere.
//
// The records are the leaves of a hash tree (SHA-256; RFC 6962, 2.1: leaves and inner nodes are
// hashed apart), whose root is signed. A record's proof has the signature, its place, and the
// hashes beside its way up. Who reads the whole batch checks the signature once.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/signing/keys.h"

#include "absl/status/status.h"

namespace fluxqueue::signing {

// What is signed of a record. `texts`: where it goes, and what is in it; each counts with its
// length.
using Record = std::vector<std::string_view>;

// A proof for each, in their order. Thread-safe.
std::vector<std::string> SignBatch(const Signer& signer, const std::vector<Record>& records);

// Confined to one thread.
class BatchVerifier {
 public:
  // The keys must outlive it.
  explicit BatchVerifier(const Keys& keys) : keys_(keys) {}

  // OK: the record was said in `stream` by the service before its slash. PermissionDenied: why it
  // was not.
  absl::Status Check(const std::string& stream, const Record& record, std::string_view proof);

 private:
  const Keys& keys_;
  // Of each stream the batch that was found to be signed last. Bounded.
  std::unordered_map<std::string, std::string> last_;
};

}  // namespace fluxqueue::signing
