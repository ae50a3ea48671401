#include "libs/rpc/error_details.h"

#include <optional>
#include <string>

#include "google/rpc/error_details.pb.h"

#include "libs/base/status_macros.h"
#include "libs/base/text.h"

#include "absl/strings/cord.h"

namespace fluxqueue::rpc {
namespace {

constexpr absl::string_view kInfoPayload = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr absl::string_view kFieldPayload = "fluxqueue.io/field";
// Peers allow 8 KiB of metadata, in which the text stands up to three times, in base64 or escaped.
constexpr size_t kMessageBytes = 1200;

std::optional<std::string> Payload(const absl::Status& status, absl::string_view type) {
  const auto found = status.GetPayload(type);
  if (!found.has_value()) return std::nullopt;
  return std::string(*found);
}

}  // namespace

absl::Status WithReason(absl::Status status,
                        std::string_view reason,
                        const ErrorMetadata& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  for (const auto& [key, value] : metadata) {
    (*info.mutable_metadata())[std::string(key)] = std::string(value);
  }
  status.SetPayload(kInfoPayload, absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Status InField(absl::Status status, std::string_view field) {
  status.SetPayload(kFieldPayload, absl::Cord(ToAbsl(field)));
  return status;
}

google::rpc::Status DetailsOf(const absl::Status& status) {
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(Cut(FromAbsl(status.message()), kMessageBytes));
  google::rpc::ErrorInfo info;
  if (const auto payload = Payload(status, kInfoPayload)) info.ParseFromString(*payload);
  if (info.reason().empty()) info.set_reason(absl::StatusCodeToString(status.code()));
  info.set_domain(std::string(kErrorDomain));
  details.add_details()->PackFrom(info);
  if (absl::IsInvalidArgument(status)) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(Payload(status, kFieldPayload).value_or(""));
    violation->set_description(details.message());
    details.add_details()->PackFrom(bad);
  }
  return details;
}

}  // namespace fluxqueue::rpc
