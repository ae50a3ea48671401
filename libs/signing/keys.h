// The keys with which services sign what they say (Ed25519, RFC 8032), as PEM files. A service has
// its private key, and all have the public keys of all: who has taken one service's account
// can say nothing in another's name. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

struct evp_pkey_st;

namespace fluxqueue::signing {

inline constexpr size_t kSignatureBytes = 64;

class Signer {
 public:
  // A PRIVATE KEY. InvalidArgument or NotFound that names the file.
  static absl::StatusOr<Signer> Read(const std::string& path);

  // kSignatureBytes.
  std::string Sign(std::string_view text) const;

 private:
  explicit Signer(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)) {}
  std::shared_ptr<evp_pkey_st> key_;
};

class Keys {
 public:
  // NAME.pem for each service, with one PUBLIC KEY or CERTIFICATE or several: while a key is
  // changed both are good. InvalidArgument or NotFound that names the folder or the file.
  static absl::StatusOr<Keys> Read(const std::string& folder);

  bool Knows(std::string_view name) const { return keys_.find(name) != keys_.end(); }
  // `signature` of `text` is of one of the keys of `name`.
  bool Check(std::string_view name, std::string_view text, std::string_view signature) const;

 private:
  std::map<std::string, std::vector<std::shared_ptr<evp_pkey_st>>, std::less<>> keys_;
};

}  // namespace fluxqueue::signing
