#include "libs/rpc/grpc_status.h"

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::rpc {
namespace {

constexpr size_t kMetadataBytes = 2048;

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status details = DetailsOf(status);
  // The codes are the same numbers.
  return {static_cast<grpc::StatusCode>(details.code()),
          details.message(),
          details.SerializeAsString()};
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), ToAbsl(status.error_message())};
}

std::string MetadataText(std::string_view text) {
  std::string out = Cut(text, kMetadataBytes);
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

}  // namespace fluxqueue::rpc
