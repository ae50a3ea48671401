// The services of the ancestors, said in our own API, and its answers in theirs.
//
//   FluxionService, FluxcliService ─► v1::MatchRequest ─► a graph ─► v1::MatchResponse ─► theirs
//
// They have no errors but those of their own enums: whatever goes wrong is an answer, and its
// reason goes beside it (`reason`, for the trailing metadata; empty when all went well).
//
// Pure, thread-safe.
#pragma once

#include <string>

#include "fluxcli/fluxcli.pb.h"
#include "fluxion/fluxion.pb.h"

#include "services/graph/domain/api.h"
#include "services/graph/domain/slot_units.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

v1::CreateGraphRequest ToCreateGraph(::fluxion::InitRequest request);
::fluxion::InitResponse ToInitResponse(const absl::Status& created, std::string* reason);

// InvalidArgument for an operation that is not known.
absl::StatusOr<v1::MatchRequest> ToMatch(const ::fluxion::MatchRequest& request);
::fluxion::MatchResponse ToFluxionResponse(const absl::Status& status,
                                           v1::MatchResponse* response,
                                           std::string* reason);

v1::ReleaseRequest ToRelease(int64_t job);
::fluxion::CancelResponse ToFluxionCancel(int64_t job,
                                          const absl::Status& status,
                                          std::string* reason);

// InvalidArgument for what is negative or too much, for many labels, and for an operation that is
// not known.
absl::StatusOr<v1::MatchRequest> ToMatch(const ::fluxcli::MatchRequest& request,
                                         const SlotUnits& units);
// REQUIRES: `response` is what came of ToMatch(request, units).
::fluxcli::MatchResponse ToFluxcliResponse(const ::fluxcli::MatchRequest& request,
                                           const SlotUnits& units,
                                           const v1::MatchResponse& response,
                                           std::string* reason);
::fluxcli::CancelResponse ToFluxcliCancel(int64_t job,
                                          const absl::Status& status,
                                          std::string* reason);

}  // namespace fluxqueue::graph_service
