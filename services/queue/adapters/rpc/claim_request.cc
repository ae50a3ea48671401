#include "services/queue/adapters/rpc/claim_request.h"

#include <limits>
#include <map>

#include <google/protobuf/util/time_util.h>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/graph/jobspec.h"
#include "libs/model/host_ports.h"
#include "libs/rpc/error_details.h"
#include "services/queue/adapters/rpc/requests.h"
#include "services/queue/domain/claim_id.h"

namespace fluxqueue::queue {
namespace {

using google::protobuf::util::TimeUtil;

constexpr size_t kMostText = 256;
constexpr Millis kLongestWait = std::chrono::minutes(10);
constexpr size_t kIdInName = 8;

// A hundred years.
constexpr int64_t kLongestSeconds = int64_t{100} * 365 * 24 * 3600;

absl::StatusOr<int64_t> ReadDuration(const std::string& field,
                                     const google::protobuf::Duration& duration) {
  const bool valid = duration.seconds() >= 0 && duration.seconds() <= kLongestSeconds &&
                     duration.nanos() >= 0 && duration.nanos() < 1'000'000'000;
  if (!valid) {
    return rpc::InField(InvalidArgument("{}: {} s {} ns is not a duration from 0 to {} s",
                                        field,
                                        duration.seconds(),
                                        duration.nanos(),
                                        kLongestSeconds),
                        field);
  }
  return TimeUtil::DurationToMilliseconds(duration);
}

void SetAmounts(const graph::Jobspec& jobspec, events::v1::PartSpec* spec) {
  std::map<std::string, int64_t> sums;
  for (const graph::SlotGroup& group : jobspec.groups) {
    for (const auto& [resource, amount] : group.request) {
      int64_t all = 0;
      int64_t& sum = sums[resource];
      const bool over = __builtin_mul_overflow(amount, int64_t{group.slots}, &all) ||
                        __builtin_add_overflow(sum, all, &sum);
      if (over) sum = std::numeric_limits<int64_t>::max();
    }
  }
  for (const auto& [resource, amount] : sums) {
    events::v1::Amount* added = spec->add_amounts();
    added->set_resource(resource);
    added->set_amount(amount);
  }
}

absl::Status CheckTexts(const v1::SubmitClaimRequest& request) {
  if (request.client_id().empty()) {
    return rpc::InField(
        InvalidArgument("client_id: is missing; choose one for each claim, such as a UUID"),
        "client_id");
  }
  RETURN_IF_ERROR(CheckText("client_id", request.client_id()));
  RETURN_IF_ERROR(CheckText("pool", request.pool()));
  RETURN_IF_ERROR(CheckText("queue", request.queue()));
  RETURN_IF_ERROR(CheckText("name", request.name()));
  return CheckText("owner", request.owner());
}

}  // namespace

absl::Status CheckText(const std::string& field, const std::string& text) {
  if (text.size() > kMostText) {
    return rpc::InField(
        InvalidArgument("{}: has {} bytes; at most {} are allowed", field, text.size(), kMostText),
        field);
  }
  if (!IsPlain(text, kMostText)) {
    return rpc::InField(InvalidArgument("{}: holds a control character, which no text may", field),
                        field);
  }
  return absl::OkStatus();
}

absl::StatusOr<ClaimRequest> ReadClaim(const v1::SubmitClaimRequest& request, int64_t now_ms) {
  RETURN_IF_ERROR(CheckTexts(request));
  const absl::StatusOr<graph::Jobspec> jobspec = graph::ParseJobspec(request.jobspec());
  if (!jobspec.ok()) return rpc::InField(jobspec.status(), "jobspec");
  if (const absl::Status text = graph::CheckJobspecText(request.jobspec()); !text.ok()) {
    return rpc::InField(text, "jobspec");
  }
  if (jobspec->min_slots != 0) {
    return rpc::InField(
        InvalidArgument("jobspec: resources[0].count: {} to {}: a claim is held as a "
                        "whole; give one integer",
                        jobspec->min_slots,
                        jobspec->slots),
        "jobspec");
  }
  // Whose pods they are is said by the API server, and by no caller.
  const bool names_pods = !jobspec->pods.space.empty() || !jobspec->pods.AreNone();
  if (names_pods) {
    return rpc::InField(
        InvalidArgument("jobspec: attributes.system.{}: a claim has no pods; leave it out",
                        jobspec->pods.AreNone() ? "job.pod" : "pods"),
        "jobspec");
  }
  for (const graph::SlotGroup& group : jobspec->groups) {
    for (const graph::Amount& amount : group.request) {
      if (!model::IsHostPort(amount.resource)) continue;
      return rpc::InField(InvalidArgument("jobspec: {}: a claim has no pods, and no host ports; "
                                          "leave it out",
                                          amount.resource),
                          "jobspec");
    }
  }
  ClaimRequest claim;
  claim.pool = PoolOf(request.pool());
  claim.command.set_client_id(request.client_id());
  events::v1::SubmitClaim* submit = claim.command.mutable_submit_claim();
  submit->set_job_id(ClaimId(claim.pool, request.client_id()));
  submit->set_queue(request.queue().empty() ? "default" : request.queue());
  submit->set_priority(request.priority());
  if (request.has_duration()) {
    ASSIGN_OR_RETURN(const int64_t duration_ms, ReadDuration("duration", request.duration()));
    submit->set_duration_ms(duration_ms);
  }
  submit->mutable_spec()->set_revision(1);
  submit->mutable_spec()->set_slots(jobspec->slots);
  submit->mutable_spec()->set_jobspec(request.jobspec());
  SetAmounts(*jobspec, submit->mutable_spec());
  submit->set_name(request.name().empty() ? "claim-" + submit->job_id().substr(0, kIdInName)
                                          : request.name());
  submit->set_owner(request.owner());
  submit->set_created_ms(now_ms);
  ASSIGN_OR_RETURN(const int64_t wait_ms, ReadDuration("wait", request.wait()));
  claim.wait = std::min(Millis(wait_ms), kLongestWait);
  return claim;
}

}  // namespace fluxqueue::queue
