#include "tools/fluxqueue/served_certificate.h"

#include <ctime>
#include <memory>

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Stream = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

std::string LastError() {
  char text[256] = "no answer";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof text);
  }
  return text;
}

bool IsAddress(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 || inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

void Believe(SSL_CTX* context, const std::string& authority) {
  const Stream pem(BIO_new_mem_buf(authority.data(), static_cast<int>(authority.size())),
                   &BIO_free_all);
  while (X509* signer = PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), signer);
    X509_free(signer);
  }
  ERR_clear_error();
}

}  // namespace

absl::StatusOr<ServedCertificate> ReadServedCertificate(const std::string& host,
                                                        const std::string& port,
                                                        const std::string& authority) {
  const Context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  Believe(context.get(), authority);
  // What is wrong with it is what we want to know: it does not end the handshake.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  const Stream stream(BIO_new_ssl_connect(context.get()), &BIO_free_all);
  SSL* ssl = nullptr;
  BIO_get_ssl(stream.get(), &ssl);
  X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl);
  if (IsAddress(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0);
    SSL_set_tlsext_host_name(ssl, host.c_str());
  }
  BIO_set_conn_hostname(stream.get(), (host + ":" + port).c_str());
  if (BIO_do_connect(stream.get()) != 1 || BIO_do_handshake(stream.get()) != 1) {
    return Unavailable("{}:{}: {}", host, port, LastError());
  }
  const Certificate served(SSL_get1_peer_certificate(ssl), &X509_free);
  ServedCertificate result;
  std::tm end{};
  ASN1_TIME_to_tm(X509_get0_notAfter(served.get()), &end);
  result.not_after_ms = static_cast<int64_t>(timegm(&end)) * 1000;
  if (const long code = SSL_get_verify_result(ssl); code != X509_V_OK) {
    result.problem = X509_verify_cert_error_string(code);
  }
  return result;
}

}  // namespace fluxqueue::cli
