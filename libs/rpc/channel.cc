#include "libs/rpc/channel.h"

#include <fstream>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::rpc {
namespace {

constexpr unsigned kRefreshSeconds = 1;
constexpr int kMostAnswerBytes = 64 << 20;

// gRPC would wait for files that never come.
absl::Status CheckFiles(const ChannelFiles& files) {
  for (const std::string& file : {files.certificate, files.key, files.authority}) {
    if (!file.empty() && !std::ifstream(file)) {
      return Unavailable("{} cannot be read, which calls of the services need", file);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ChannelFiles& files) {
  if (files.certificate.empty() && files.authority.empty()) {
    return grpc::InsecureChannelCredentials();
  }
  RETURN_IF_ERROR(CheckFiles(files));
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          files.key, files.certificate, files.authority, kRefreshSeconds));
  if (!files.authority.empty()) options.watch_root_certs();
  if (!files.certificate.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
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
  // As much as a server of ours sends.
  arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
  if (!files_.name.empty()) arguments.SetSslTargetNameOverride(files_.name);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace fluxqueue::rpc
