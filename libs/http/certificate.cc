#include "libs/http/certificate.h"

#include <ctime>
#include <memory>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::http {

absl::StatusOr<std::chrono::system_clock::time_point> CertificateEnd(const std::string& file) {
  const std::unique_ptr<BIO, int (*)(BIO*)> in(BIO_new_file(file.c_str(), "r"), BIO_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      in == nullptr ? nullptr : PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr), X509_free);
  std::tm end{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return InvalidArgument("{}: no PEM certificate", file);
  }
  return std::chrono::system_clock::from_time_t(timegm(&end));
}

}  // namespace fluxqueue::http
