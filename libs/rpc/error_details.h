// What a program at the other end of a call reads of an error, kept in an absl::Status on its way
// to ToGrpcStatus (grpc_status.h). Pure: what decides can say it.
//
//   return rpc::WithReason(MakeStatus(absl::StatusCode::kResourceExhausted, "{} graphs", limit),
//                          "GRAPH_LIMIT", {{"limit", fmt::format("{}", limit)}});
//   return rpc::InField(graph::ParseJobRequest(text).status(), "jobspec");
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "google/rpc/status.pb.h"

#include "absl/status/status.h"

namespace fluxqueue::rpc {

inline constexpr std::string_view kErrorDomain = "fluxqueue.io";

using ErrorMetadata = std::vector<std::pair<std::string_view, std::string_view>>;

// ErrorInfo.reason, a constant in capitals, in place of the code's name. OK stays OK.
absl::Status WithReason(absl::Status status,
                        std::string_view reason,
                        const ErrorMetadata& metadata = {});

// Which field of the request the status is about (BadRequest, for InvalidArgument). OK stays OK.
absl::Status InField(absl::Status status, std::string_view field);

// The status with its details: ErrorInfo always, BadRequest for InvalidArgument. Messages are cut
// to what fits into a call's trailing metadata. REQUIRES: not OK.
google::rpc::Status DetailsOf(const absl::Status& status);

}  // namespace fluxqueue::rpc
