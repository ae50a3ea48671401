// A request for a claim, checked, as the command that goes into the log.
#pragma once

#include <string>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/queue/v1/queue.pb.h"

#include "libs/base/clock.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::queue {

struct ClaimRequest {
  std::string pool;
  events::v1::CommandAccepted command;  // with everything but who asks
  Millis wait{0};
};

// InvalidArgument names the field. `now_ms`: the time of its creation, since the Unix epoch.
absl::StatusOr<ClaimRequest> ReadClaim(const v1::SubmitClaimRequest& request, int64_t now_ms);

// What a client may choose freely: at most 256 bytes, and none of them 0.
absl::Status CheckText(const std::string& field, const std::string& text);

}  // namespace fluxqueue::queue
