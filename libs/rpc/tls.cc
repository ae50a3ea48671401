#include "libs/rpc/tls.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::rpc::internal {
namespace {

constexpr unsigned kRefreshSeconds = 1;

std::string WhyNot() {
  const char* reason = ::ERR_reason_error_string(::ERR_peek_last_error());
  ::ERR_clear_error();
  return reason == nullptr ? "it cannot be read" : reason;
}

// gRPC says what is wrong with a file only when the first client calls.
absl::Status Check(const ServerConfig::Tls& tls) {
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(
      ::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free);
  if (context == nullptr) return Internal("TLS: {}", WhyNot());
  if (::SSL_CTX_use_certificate_chain_file(context.get(), tls.certificate.c_str()) != 1) {
    return InvalidArgument(
        "TLS certificate {}: {}; it must be a readable PEM file", tls.certificate, WhyNot());
  }
  if (::SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return InvalidArgument(
        "TLS key {}: {}; it must be the PEM key of {}", tls.key, WhyNot(), tls.certificate);
  }
  if (!tls.client_ca.empty() &&
      ::SSL_CTX_load_verify_locations(context.get(), tls.client_ca.c_str(), nullptr) != 1) {
    return InvalidArgument(
        "TLS authority of clients {}: {}; it must be a readable PEM file", tls.client_ca, WhyNot());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(
    const ServerConfig::Tls& tls, bool by_choice) {
  if (tls.certificate.empty()) return grpc::InsecureServerCredentials();
  RETURN_IF_ERROR(Check(tls));
  const auto files = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      tls.key, tls.certificate, tls.client_ca, kRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(files);
  options.watch_identity_key_cert_pairs();
  if (!tls.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(by_choice
                                      ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                      : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace fluxqueue::rpc::internal
