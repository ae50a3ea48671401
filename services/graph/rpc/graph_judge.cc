#include "services/graph/rpc/graph_judge.h"

#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {

absl::StatusOr<rpc::Caller> GraphJudge::WhoseIs(const std::string& token) const {
  ASSIGN_OR_RETURN(access::User user, authority_->WhoseIs(token));
  rpc::Caller caller{.user = std::move(user.name),
                     .groups = std::move(user.groups),
                     .uid = std::move(user.uid),
                     .extra = std::move(user.extra)};
  RETURN_IF_ERROR(rpc::CheckTokenCaller(caller));
  return caller;
}

absl::Status GraphJudge::MayMakeGraphs(const rpc::Caller& caller) const {
  return Allowed(caller, access::RightToGraphs());
}

absl::Status GraphJudge::MayLookAt(const rpc::Caller& caller, const std::string& pool) const {
  return Allowed(caller, access::RightToLookAt(pool));
}

absl::Status GraphJudge::Allowed(const rpc::Caller& caller, const access::Right& right) const {
  if (authority_ == nullptr) return absl::OkStatus();
  const access::User user{
      .name = caller.user, .groups = caller.groups, .uid = caller.uid, .extra = caller.extra};
  ASSIGN_OR_RETURN(const bool allowed, authority_->Allows(user, right));
  if (allowed) return absl::OkStatus();
  return MakeStatus(
      absl::StatusCode::kPermissionDenied, "{}", access::Refusal(user, right, "", ""));
}

}  // namespace fluxqueue::graph_service
