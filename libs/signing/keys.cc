#include "libs/signing/keys.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"

#include "fmt/format.h"

namespace fluxqueue::signing {
namespace {

using Key = std::shared_ptr<evp_pkey_st>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) {
    return MakeStatus(absl::StatusCode::kNotFound, "{}: the file cannot be read", path);
  }
  return text;
}

absl::StatusOr<Key> OfKind(EVP_PKEY* key, const std::string& path) {
  Key owned(key, EVP_PKEY_free);
  if (EVP_PKEY_id(key) == EVP_PKEY_ED25519) return owned;
  return InvalidArgument(
      "{}: it has a key of another kind; allowed is Ed25519 "
      "(openssl genpkey -algorithm ed25519)",
      path);
}

EVP_PKEY* PublicKeyOf(const char* name, const unsigned char* data, long size) {
  if (std::string_view(name) == PEM_STRING_PUBLIC) return d2i_PUBKEY(nullptr, &data, size);
  if (std::string_view(name) != PEM_STRING_X509) return nullptr;
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(d2i_X509(nullptr, &data, size),
                                                                X509_free);
  return certificate == nullptr ? nullptr : X509_get_pubkey(certificate.get());
}

absl::StatusOr<std::vector<Key>> ReadKeys(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  std::vector<Key> keys;
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  while (PEM_read_bio(bio.get(), &name, &header, &data, &size) == 1) {
    EVP_PKEY* key = PublicKeyOf(name, data, size);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(data);
    if (key == nullptr) break;
    ASSIGN_OR_RETURN(Key of_kind, OfKind(key, path));
    keys.push_back(std::move(of_kind));
  }
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!keys.empty() && ended) return keys;
  return InvalidArgument("{}: allowed are PEM blocks PUBLIC KEY and CERTIFICATE, and one at least",
                         path);
}

}  // namespace

absl::StatusOr<Signer> Signer::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  // OpenSSL would ask for a password on the terminal.
  const auto none = [](char*, int, int, void*) { return -1; };
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio.get(), nullptr, none, nullptr);
  ERR_clear_error();
  if (key == nullptr) {
    return InvalidArgument("{}: allowed is a PEM block PRIVATE KEY, without a password", path);
  }
  ASSIGN_OR_RETURN(Key of_kind, OfKind(key, path));
  return Signer(std::move(of_kind));
}

std::string Signer::Sign(std::string_view text) const {
  const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  const bool signed_it =
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
      EVP_DigestSign(context.get(),
                     reinterpret_cast<unsigned char*>(signature.data()),
                     &size,
                     Bytes(text),
                     text.size()) == 1;
  CHECK(signed_it && size == kSignatureBytes, "Ed25519: {} bytes", text.size());
  return signature;
}

absl::StatusOr<Keys> Keys::Read(const std::string& folder) {
  std::error_code error;
  Keys keys;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".pem") continue;
    ASSIGN_OR_RETURN(keys.keys_[entry.path().stem().string()], ReadKeys(entry.path().string()));
  }
  if (error) return MakeStatus(absl::StatusCode::kNotFound, "{}: {}", folder, error.message());
  if (keys.keys_.empty()) return InvalidArgument("{}: there is no NAME.pem in it", folder);
  return keys;
}

bool Keys::Check(std::string_view name, std::string_view text, std::string_view signature) const {
  const auto known = keys_.find(name);
  if (known == keys_.end() || signature.size() != kSignatureBytes) return false;
  for (const Key& key : known->second) {
    const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    const bool is_good =
        EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
        EVP_DigestVerify(
            context.get(), Bytes(signature), signature.size(), Bytes(text), text.size()) == 1;
    ERR_clear_error();
    if (is_good) return true;
  }
  return false;
}

}  // namespace fluxqueue::signing
