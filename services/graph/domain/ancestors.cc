#include "services/graph/domain/ancestors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/match_operation.h"

namespace fluxqueue::graph_service {
namespace {

using nlohmann::json;

// What the ancestors' own jobspecs have.
constexpr int kDurationSeconds = 3600;
// A label that is no property: all pods on one node of one subnet.
constexpr std::string_view kZoneLabel = "zone";
constexpr int32_t kMostPods = 100'000;
constexpr int kMostLabels = 100;

// By graph::MatchOperation.
constexpr std::array<v1::Operation, 6> kOperations = {v1::OPERATION_ALLOCATE,
                                                      v1::OPERATION_ALLOCATE_WITH_SATISFIABILITY,
                                                      v1::OPERATION_ALLOCATE_ORELSE_RESERVE,
                                                      v1::OPERATION_SATISFIABILITY,
                                                      v1::OPERATION_WITHOUT_ALLOCATING,
                                                      v1::OPERATION_WITHOUT_ALLOCATING_FUTURE};

absl::StatusOr<v1::Operation> OperationOf(const std::string& name) {
  if (name.empty()) return v1::OPERATION_ALLOCATE;
  ASSIGN_OR_RETURN(const graph::MatchOperation operation, graph::ParseMatchOperation(name));
  return kOperations.at(static_cast<size_t>(operation));
}

int64_t RoundedUp(int64_t bytes, int64_t unit) {
  return bytes / unit + (bytes % unit == 0 ? 0 : 1);
}

int64_t CoresOf(const ::fluxcli::PodSpec& pod) {
  return std::max(pod.cpu(), 1);
}

absl::Status Check(const ::fluxcli::MatchRequest& request) {
  const ::fluxcli::PodSpec& pod = request.ps();
  if (pod.cpu() < 0 || pod.memory() < 0 || pod.gpu() < 0 || pod.storage() < 0) {
    return InvalidArgument("ps: cpu, memory, gpu and storage must not be negative");
  }
  if (request.count() < 0 || request.count() > kMostPods) {
    return InvalidArgument("count: must be from 0 to {}, is {}", kMostPods, request.count());
  }
  // Each is a term of the constraint, or a level around the slots.
  const auto& labels = pod.labels();
  if (labels.size() > kMostLabels || std::count(labels.begin(), labels.end(), kZoneLabel) > 1) {
    return InvalidArgument("ps.labels: at most {} are allowed, and \"{}\" once; are {}",
                           kMostLabels,
                           kZoneLabel,
                           labels.size());
  }
  return absl::OkStatus();
}

json SlotsOf(const ::fluxcli::MatchRequest& request, const SlotUnits& units) {
  const ::fluxcli::PodSpec& pod = request.ps();
  json with = {{{"type", units.cpu}, {"count", CoresOf(pod) * units.per_core}}};
  const auto add = [&with](const std::string& type, int64_t count) {
    if (count > 0) with.push_back({{"type", type}, {"count", count}});
  };
  add(units.memory, RoundedUp(pod.memory(), units.memory_bytes));
  add(units.gpu, pod.gpu());
  add(units.storage, RoundedUp(pod.storage(), units.storage_bytes));
  return {{"type", "slot"},
          {"count", std::max(request.count(), 1)},
          {"label", "default"},
          {"with", std::move(with)}};
}

std::string JobspecOf(const ::fluxcli::MatchRequest& request, const SlotUnits& units) {
  json resources = SlotsOf(request, units);
  json properties = json::array();
  for (const std::string& label : request.ps().labels()) {
    if (label != kZoneLabel) {
      properties.push_back(label);
    } else {
      const json node = {{"type", "node"}, {"count", 1}, {"with", {resources}}};
      resources = {{"type", "subnet"}, {"count", 1}, {"with", {node}}};
    }
  }
  json system = {{"duration", kDurationSeconds}};
  if (!properties.empty()) system["constraints"] = {{"properties", std::move(properties)}};
  return json({{"version", 9999},
               {"resources", {resources}},
               {"tasks",
                {{{"command", {"pod"}}, {"slot", "default"}, {"count", {{"per_slot", 1}}}}}},
               {"attributes", {{"system", std::move(system)}}}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string ReasonOf(const absl::Status& status) {
  return status.ok() ? "" : Message(status);
}

int ErrnoOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return EINVAL;
    case absl::StatusCode::kNotFound:
      return ENOENT;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
      return EPERM;
    default:
      return EIO;
  }
}

}  // namespace

v1::CreateGraphRequest ToCreateGraph(::fluxion::InitRequest request) {
  v1::CreateGraphRequest create;
  create.set_policy(request.policy());
  create.set_graph(std::move(*request.mutable_jgf()));
  return create;
}

::fluxion::InitResponse ToInitResponse(const absl::Status& created, std::string* reason) {
  ::fluxion::InitResponse response;
  *reason = ReasonOf(created);
  if (absl::IsResourceExhausted(created)) {
    response.set_status(::fluxion::InitResponse::INIT_DENIED);
  } else if (!created.ok()) {
    response.set_status(::fluxion::InitResponse::INIT_ERROR);
  }
  return response;
}

absl::StatusOr<v1::MatchRequest> ToMatch(const ::fluxion::MatchRequest& request) {
  v1::MatchRequest match;
  ASSIGN_OR_RETURN(const v1::Operation operation, OperationOf(request.request()));
  match.set_operation(request.reservation() ? v1::OPERATION_ALLOCATE_ORELSE_RESERVE : operation);
  match.set_jobspec(request.jobspec());
  match.set_format(v1::FORMAT_JGF);
  match.set_explain(true);
  return match;
}

::fluxion::MatchResponse ToFluxionResponse(const absl::Status& status,
                                           v1::MatchResponse* response,
                                           std::string* reason) {
  ::fluxion::MatchResponse out;
  if (!status.ok()) {
    out.set_status(::fluxion::MatchResponse::MATCH_ERROR);
    *reason = ReasonOf(status);
    return out;
  }
  if (response->outcome() == v1::OUTCOME_BUSY || response->outcome() == v1::OUTCOME_UNSATISFIABLE) {
    out.set_status(::fluxion::MatchResponse::MATCH_DENIED);
    *reason = response->reason();
  }
  out.set_jobid(response->job());
  out.set_reserved(response->outcome() == v1::OUTCOME_RESERVED);
  out.set_overhead(static_cast<float>(response->overhead().seconds()) +
                   static_cast<float>(response->overhead().nanos()) * 1e-9F);
  if (response->has_allocation()) {
    v1::Allocation* allocation = response->mutable_allocation();
    out.set_at(allocation->at_s());
    out.set_allocation(std::move(*allocation->mutable_resources()));
  }
  return out;
}

v1::ReleaseRequest ToRelease(int64_t job) {
  v1::ReleaseRequest release;
  release.set_job(job);
  return release;
}

::fluxion::CancelResponse ToFluxionCancel(int64_t job,
                                          const absl::Status& status,
                                          std::string* reason) {
  ::fluxion::CancelResponse response;
  response.set_jobid(job);
  response.set_error(ErrnoOf(status));
  *reason = ReasonOf(status);
  switch (response.error()) {
    case 0:
      response.set_status(::fluxion::CancelResponse::CANCEL_SUCCESS);
      break;
    case EINVAL:
      response.set_status(::fluxion::CancelResponse::CANCEL_REQUEST_ERROR);
      break;
    case EPERM:
      response.set_status(::fluxion::CancelResponse::CANCEL_DENIED);
      break;
    default:
      response.set_status(::fluxion::CancelResponse::CANCEL_ERROR);
      break;
  }
  return response;
}

absl::StatusOr<v1::MatchRequest> ToMatch(const ::fluxcli::MatchRequest& request,
                                         const SlotUnits& units) {
  RETURN_IF_ERROR(Check(request));
  v1::MatchRequest match;
  ASSIGN_OR_RETURN(const v1::Operation operation, OperationOf(request.request()));
  match.set_operation(operation);
  match.set_jobspec(JobspecOf(request, units));
  match.set_nodes(true);
  match.set_explain(true);
  return match;
}

::fluxcli::MatchResponse ToFluxcliResponse(const ::fluxcli::MatchRequest& request,
                                           const SlotUnits& units,
                                           const v1::MatchResponse& response,
                                           std::string* reason) {
  ::fluxcli::MatchResponse out;
  out.set_podid(request.ps().id());
  out.set_jobid(response.job());
  const int64_t per_pod = CoresOf(request.ps()) * units.per_core;
  for (const v1::NodeResources& node : response.allocation().nodes()) {
    const auto cpu = node.amounts().find(units.cpu);
    if (cpu == node.amounts().end()) continue;
    ::fluxcli::NodeAlloc* alloc = out.add_nodelist();
    alloc->set_nodeid(node.node());
    alloc->set_tasks(static_cast<int32_t>(cpu->second / per_pod));
  }
  *reason = response.reason();
  return out;
}

::fluxcli::CancelResponse ToFluxcliCancel(int64_t job,
                                          const absl::Status& status,
                                          std::string* reason) {
  ::fluxcli::CancelResponse response;
  response.set_jobid(job);
  response.set_error(ErrnoOf(status));
  *reason = ReasonOf(status);
  return response;
}

}  // namespace fluxqueue::graph_service
