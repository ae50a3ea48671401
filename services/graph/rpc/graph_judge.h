// Whose a token is, and who may look at a pool and make private graphs, by the rights of
// libs/access/rights.h. Who has the key of a private graph may use it; claims the queue judges.
//
// Without an authority (callers are not asked for) all may do everything.
//
// The functions wait for the authority: not for gRPC's own threads. Thread-safe.
#pragma once

#include <string>

#include "libs/access/authority.h"
#include "libs/rpc/caller.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

class GraphJudge {
 public:
  // Null: all may do everything. It outlives the object.
  explicit GraphJudge(access::Authority* authority) : authority_(authority) {}

  // Tokens are taken.
  bool on() const { return authority_ != nullptr; }

  // REQUIRES: on().
  absl::StatusOr<rpc::Caller> WhoseIs(const std::string& token) const;
  // PermissionDenied, with the right that he lacks; Unavailable: nobody can be asked.
  absl::Status MayMakeGraphs(const rpc::Caller& caller) const;
  absl::Status MayLookAt(const rpc::Caller& caller, const std::string& pool) const;

 private:
  absl::Status Allowed(const rpc::Caller& caller, const access::Right& right) const;

  access::Authority* const authority_;
};

}  // namespace fluxqueue::graph_service
