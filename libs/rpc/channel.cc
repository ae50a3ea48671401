#include "libs/rpc/channel.h"

#include <fstream>
#include <iterator>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::rpc {
namespace {

constexpr unsigned kRefreshSeconds = 1;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Unavailable("{} cannot be read, which calls of the services need", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// gRPC would wait for files that never come.
absl::Status CheckFiles(const ChannelFiles& files) {
  for (const std::string& file : {files.certificate, files.key, files.authority}) {
    if (!file.empty()) RETURN_IF_ERROR(ReadFile(file).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ChannelFiles& files) {
  if (files.certificate.empty() && files.authority.empty()) {
    if (files.token.empty()) return grpc::InsecureChannelCredentials();
    return InvalidArgument(
        "the token {} is not sent in plain text: say what has signed the "
        "certificates of the services (grpc.authority)",
        files.token);
  }
  RETURN_IF_ERROR(CheckFiles(files));
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          files.key, files.certificate, files.authority, kRefreshSeconds));
  if (!files.authority.empty()) options.watch_root_certs();
  if (!files.certificate.empty()) options.watch_identity_key_cert_pairs();
  auto tls = grpc::experimental::TlsCredentials(options);
  if (files.token.empty()) return tls;
  ASSIGN_OR_RETURN(std::string token, ReadFile(files.token));
  token.erase(token.find_last_not_of(" \r\n\t") + 1);
  return grpc::CompositeChannelCredentials(tls, grpc::AccessTokenCredentials(token));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Dialer::Credentials() {
  const std::lock_guard lock(mutex_);
  if (credentials_ == nullptr) {
    ASSIGN_OR_RETURN(credentials_, MakeCredentials(files_));
  }
  return credentials_;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dialer::Open(const std::string& address) {
  ASSIGN_OR_RETURN(const auto credentials, Credentials());
  grpc::ChannelArguments arguments;
  if (!files_.name.empty()) arguments.SetSslTargetNameOverride(files_.name);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace fluxqueue::rpc
