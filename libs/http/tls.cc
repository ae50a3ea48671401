#include "libs/http/tls.h"

#include <algorithm>
#include <array>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::http::internal {
namespace {

namespace asio = boost::asio;

// The last one, where there are several: so does the API server take it.
std::string CommonName(X509* certificate) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  int at = -1;
  for (int next = X509_NAME_get_index_by_NID(subject, NID_commonName, at); next >= 0;
       next = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) {
    at = next;
  }
  if (at < 0) return {};
  unsigned char* text = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return {};
  std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return name;
}

}  // namespace

absl::StatusOr<TlsContext> MakeTls(const ServerTls& files) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // Connections are kept: sessions to resume would be memory for nothing.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(native, 0);
  boost::system::error_code error;
  context->use_certificate_chain_file(files.certificate_file, error);
  if (error) {
    return InvalidArgument("TLS certificate {}: {}; it must be a readable PEM file",
                           files.certificate_file,
                           error.message());
  }
  context->use_private_key_file(files.key_file, asio::ssl::context::pem, error);
  if (error) {
    return InvalidArgument("TLS key {}: {}; it must be the PEM key of {}",
                           files.key_file,
                           error.message(),
                           files.certificate_file);
  }
  if (files.client_authority_file.empty()) return context;
  context->load_verify_file(files.client_authority_file, error);
  if (error) {
    return InvalidArgument("TLS client authority {}: {}; it must be a readable PEM file",
                           files.client_authority_file,
                           error.message());
  }
  // Who shows none is told so in HTTP.
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
  // The client learns which of its certificates is wanted.
  SSL_CTX_set_client_CA_list(native, SSL_load_client_CA_file(files.client_authority_file.c_str()));
  return context;
}

std::filesystem::file_time_type Written(const ServerTls& files) {
  auto latest = std::filesystem::file_time_type::min();
  for (const std::string* file :
       std::array{&files.certificate_file, &files.key_file, &files.client_authority_file}) {
    if (file->empty()) continue;
    std::error_code error;
    const auto written = std::filesystem::last_write_time(*file, error);
    if (error) return {};
    latest = std::max(latest, written);
  }
  return latest;
}

bool ClientIsAllowed(SSL* connection, const ServerTls& wanted) {
  if (wanted.client_authority_file.empty()) return true;
  const std::vector<std::string>& names = wanted.client_names;
  const std::unique_ptr<X509, void (*)(X509*)> certificate(SSL_get1_peer_certificate(connection),
                                                           X509_free);
  if (certificate == nullptr) return false;
  return names.empty() ||
         std::find(names.begin(), names.end(), CommonName(certificate.get())) != names.end();
}

}  // namespace fluxqueue::http::internal
