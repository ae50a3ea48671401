// From our statuses to gRPC's, and texts into metadata.
#pragma once

#include <string>
#include <string_view>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace fluxqueue::rpc {

// The same code and message, with google.rpc.Status as details (error_details.h).
grpc::Status ToGrpcStatus(const absl::Status& status);

// The code, the message, and no details: what a client makes of an answer.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Metadata is printable ASCII and small: everything else becomes '?', and long texts are cut.
std::string MetadataText(std::string_view text);

}  // namespace fluxqueue::rpc
