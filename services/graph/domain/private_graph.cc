#include "services/graph/domain/private_graph.h"

#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/graph_explanation.h"
#include "libs/graph/match_operation.h"
#include "libs/graph/resource_set.h"
#include "libs/rpc/error_details.h"
#include "services/graph/domain/resource_set_size.h"

namespace fluxqueue::graph_service {
namespace {

using graph::GraphExplanation;
using graph::Holding;
using graph::JobNumber;
using graph::MatchAnswer;
using graph::MatchOperation;
using graph::MatchStatus;
using graph::SetFormat;

// Jobspecs of at most so many bytes are remembered parsed; all are forgotten when there are more.
constexpr size_t kParsedKept = 256;
constexpr size_t kParsedBytes = 8 << 10;

absl::StatusOr<MatchOperation> OperationOf(v1::Operation operation) {
  switch (operation) {
    case v1::OPERATION_UNSPECIFIED:
    case v1::OPERATION_ALLOCATE:
      return MatchOperation::kAllocate;
    case v1::OPERATION_ALLOCATE_WITH_SATISFIABILITY:
      return MatchOperation::kAllocateWithSatisfiability;
    case v1::OPERATION_ALLOCATE_ORELSE_RESERVE:
      return MatchOperation::kAllocateOrElseReserve;
    case v1::OPERATION_SATISFIABILITY:
      return MatchOperation::kSatisfiability;
    case v1::OPERATION_WITHOUT_ALLOCATING:
      return MatchOperation::kWithoutAllocating;
    case v1::OPERATION_WITHOUT_ALLOCATING_FUTURE:
      return MatchOperation::kWithoutAllocatingFuture;
    default:
      return rpc::InField(
          InvalidArgument("operation: {} is none that is known", static_cast<int>(operation)),
          "operation");
  }
}

v1::Outcome OutcomeOf(MatchOperation operation, MatchStatus status) {
  switch (status) {
    case MatchStatus::kAllocated:
      return v1::OUTCOME_ALLOCATED;
    case MatchStatus::kReserved:
      return v1::OUTCOME_RESERVED;
    case MatchStatus::kMatched:
      return operation == MatchOperation::kSatisfiability ? v1::OUTCOME_SATISFIABLE
                                                          : v1::OUTCOME_FITS;
    case MatchStatus::kBusy:
      return v1::OUTCOME_BUSY;
    case MatchStatus::kUnsatisfiable:
      return v1::OUTCOME_UNSATISFIABLE;
  }
  return v1::OUTCOME_UNSPECIFIED;
}

absl::StatusOr<JobNumber> JobOf(int64_t job, const std::string& job_id) {
  if (!job_id.empty()) {
    return rpc::InField(InvalidArgument("job_id: jobs of a private graph have numbers only"),
                        "job_id");
  }
  if (job < 1) {
    return rpc::InField(InvalidArgument("job: must be a job's number, at least 1, is {}", job),
                        "job");
  }
  return static_cast<JobNumber>(job);
}

// Messages tell which of their fields is wrong by their beginning.
absl::Status InCreateField(const absl::Status& status) {
  const std::string message = Message(status);
  const bool policy = message.find("policy") < message.find(':');
  const bool filters = message.find("prune") < message.find(':');
  // A text that is no graph is DataLoss to a session.
  return rpc::InField(InvalidArgument("{}", message),
                      policy    ? "policy"
                      : filters ? "prune_filters"
                                : "graph");
}

}  // namespace

PrivateGraph::PrivateGraph(std::unique_ptr<reapi::Session> session)
    : session_(std::move(session)), messages_(engine().graph()) {
  const graph::ResourceGraph& resources = engine().graph();
  const auto unit_of = [&resources](const std::string& type) -> int64_t {
    const auto vertices = resources.OfType(resources.types().Find(type));
    const int64_t bytes = vertices.empty() ? 0 : BytesOfUnit(resources.vertex(vertices[0]).unit);
    return bytes == 0 ? BytesOfUnit("") : bytes;
  };
  units_.memory_bytes = unit_of(units_.memory);
  units_.storage_bytes = unit_of(units_.storage);
}

absl::StatusOr<std::unique_ptr<PrivateGraph>> PrivateGraph::Make(
    const v1::CreateGraphRequest& request, int64_t most_vertices) {
  // R version 1 has `execution`, JGF has `graph`; each is read as what it claims to be.
  const std::string& text = request.graph();
  const size_t key = text.find("\"execution\"");
  const bool is_r = key < text.find("\"graph\"");
  if (is_r) RETURN_IF_ERROR(CheckResourceSetSize(text, most_vertices));
  const nlohmann::json options = {
      {"load_format", is_r ? "rv1exec" : "jgf"},
      {"matcher_policy", request.policy().empty() ? "first" : request.policy()},
      {"prune_filters",
       request.prune_filters().empty() ? "ALL:core,ALL:node" : request.prune_filters()}};
  auto session = reapi::Session::Make(text, options.dump());
  if (!session.ok()) return InCreateField(session.status());
  return std::unique_ptr<PrivateGraph>(new PrivateGraph(*std::move(session)));
}

absl::Status PrivateGraph::CheckFormat(v1::Format format) {
  return FormatOf(format).status();
}

absl::StatusOr<PrivateGraph::Request> PrivateGraph::Parse(const std::string& jobspec) {
  const auto known = parsed_.find(jobspec);
  if (known != parsed_.end()) return known->second;
  auto parsed = session_->Parse(jobspec);
  if (!parsed.ok()) return rpc::InField(parsed.status(), "jobspec");
  auto request = std::make_shared<const graph::JobRequest>(*std::move(parsed));
  if (jobspec.size() > kParsedBytes) return request;
  if (parsed_.size() >= kParsedKept) parsed_.clear();
  return parsed_.emplace(jobspec, std::move(request)).first->second;
}

absl::StatusOr<JobNumber> PrivateGraph::NumberFor(int64_t asked) {
  if (asked == 0) return session_->NextJob();
  return JobOf(asked, "");
}

absl::Status PrivateGraph::Match(const v1::MatchRequest& request, v1::MatchResponse* response) {
  ASSIGN_OR_RETURN(const MatchOperation operation, OperationOf(request.operation()));
  RETURN_IF_ERROR(CheckFormat(request.format()));
  ASSIGN_OR_RETURN(const Request jobspec, Parse(request.jobspec()));
  if (!request.job_id().empty()) return JobOf(request.job(), request.job_id()).status();
  ASSIGN_OR_RETURN(const JobNumber job, NumberFor(request.job()));
  RETURN_IF_ERROR(CheckRoom(operation));
  ASSIGN_OR_RETURN(const MatchAnswer answer, session_->Place(operation, *jobspec, job));
  const v1::Outcome outcome = OutcomeOf(operation, answer.status);
  response->set_outcome(outcome);
  if (!answer.holding.vertices.empty() && outcome != v1::OUTCOME_SATISFIABLE) {
    const absl::Status written = messages_.WriteAllocation(
        answer.holding, {request.format(), request.nodes()}, response->mutable_allocation());
    if (!written.ok()) {
      if (session_->Cancel(job).ok()) session_->Forget(job);
      return written;
    }
  }
  if (outcome == v1::OUTCOME_ALLOCATED || outcome == v1::OUTCOME_RESERVED) {
    held_ += HeldBy(job);
    response->set_job(static_cast<int64_t>(job));
    Tell(outcome == v1::OUTCOME_ALLOCATED ? v1::WatchAllocationsResponse::KIND_ALLOCATED
                                          : v1::WatchAllocationsResponse::KIND_RESERVED,
         job,
         &answer.holding);
  }
  return absl::OkStatus();
}

absl::Status PrivateGraph::GiveReason(const v1::MatchRequest& request,
                                      v1::MatchResponse* response) {
  const v1::Outcome outcome = response->outcome();
  const bool refused = outcome == v1::OUTCOME_BUSY || outcome == v1::OUTCOME_UNSATISFIABLE;
  if (!request.explain() || !refused) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Request jobspec, Parse(request.jobspec()));
  response->set_reason(ReasonOf(outcome, engine().Explain(*jobspec)));
  return absl::OkStatus();
}

absl::Status PrivateGraph::Release(const v1::ReleaseRequest& request,
                                   v1::ReleaseResponse* response) {
  ASSIGN_OR_RETURN(const JobNumber job, JobOf(request.job(), request.job_id()));
  const int64_t held = HeldBy(job);
  bool all = true;
  if (request.resources().empty()) {
    RETURN_IF_ERROR(session_->Cancel(job));
  } else {
    const auto released = session_->CancelPart(job, request.resources());
    if (!released.ok()) return rpc::InField(released.status(), "resources");
    all = *released;
  }
  held_ -= held - HeldBy(job);
  response->set_all(all);
  if (all) {
    Released(job);
    Tell(v1::WatchAllocationsResponse::KIND_RELEASED, job, nullptr);
  } else {
    Tell(v1::WatchAllocationsResponse::KIND_REDUCED, job, engine().Find(job));
  }
  return absl::OkStatus();
}

absl::Status PrivateGraph::CheckRoom(MatchOperation operation) const {
  const bool holds = operation == MatchOperation::kAllocate ||
                     operation == MatchOperation::kAllocateWithSatisfiability ||
                     operation == MatchOperation::kAllocateOrElseReserve;
  const int64_t most = kHeldOfEach * vertices() + kHeldBesides;
  if (!holds || held_ <= most) return absl::OkStatus();
  return rpc::WithReason(
      MakeStatus(absl::StatusCode::kResourceExhausted,
                 "the jobs of this graph hold and have reserved {} vertices, of {} that are "
                 "allowed: release some",
                 held_,
                 most),
      "HOLD_LIMIT",
      {{"limit", fmt::format("{}", most)}});
}

int64_t PrivateGraph::HeldBy(JobNumber job) const {
  const Holding* holding = engine().Find(job);
  return holding == nullptr ? 0 : static_cast<int64_t>(holding->vertices.size());
}

void PrivateGraph::Released(JobNumber job) {
  released_.push_back(job);
  if (released_.size() <= kReleasedKept) return;
  session_->Forget(released_.front());
  released_.pop_front();
}

absl::Status PrivateGraph::GetJob(const v1::GetJobRequest& request,
                                  v1::GetJobResponse* response) const {
  ASSIGN_OR_RETURN(const JobNumber job, JobOf(request.job(), request.job_id()));
  RETURN_IF_ERROR(CheckFormat(request.format()));
  ASSIGN_OR_RETURN(const reapi::JobInfo info, session_->Info(job));
  response->set_job(request.job());
  switch (info.mode) {
    case reapi::JobMode::kAllocated:
      response->set_state(v1::JOB_STATE_ALLOCATED);
      break;
    case reapi::JobMode::kReserved:
      response->set_state(v1::JOB_STATE_RESERVED);
      break;
    case reapi::JobMode::kCanceled:
      response->set_state(v1::JOB_STATE_RELEASED);
      break;
  }
  const Holding* holding = engine().Find(job);
  if (holding == nullptr) return absl::OkStatus();
  return messages_.WriteAllocation(
      *holding, {request.format(), request.nodes()}, response->mutable_allocation());
}

absl::Status PrivateGraph::Explain(const v1::ExplainRequest& request,
                                   v1::ExplainResponse* response) {
  ASSIGN_OR_RETURN(const Request jobspec, Parse(request.jobspec()));
  const GraphExplanation why = engine().Explain(*jobspec);
  WriteExplanation(why, response);
  for (const GraphExplanation::Holder& holder : why.holders) {
    v1::ExplainResponse::Holder* out = response->add_holders();
    out->set_job(static_cast<int64_t>(holder.job));
    out->set_amount(holder.amount);
    out->set_until_s(holder.until_s);
  }
  return absl::OkStatus();
}

absl::Status PrivateGraph::Find(const v1::FindRequest& request, v1::FindResponse* response) const {
  ASSIGN_OR_RETURN(const std::optional<SetFormat> format, FormatOf(request.format()));
  RETURN_IF_ERROR(CheckCriteria(request.criteria()));
  const absl::StatusOr<Holding> found = session_->FindVertices(request.criteria());
  if (!found.ok()) return rpc::InField(found.status(), "criteria");
  response->set_vertices(static_cast<int64_t>(found->vertices.size()));
  RETURN_IF_ERROR(CheckWritten(found->vertices.size(), request.format()));
  if (format.has_value() && !found->vertices.empty()) {
    response->set_resources(graph::WriteResourceSet(engine().graph(), *found, *format));
  }
  return absl::OkStatus();
}

PrivateGraph::Trials PrivateGraph::BeginTrials() const {
  auto copy = std::unique_ptr<PrivateGraph>(new PrivateGraph(session_->Clone()));
  copy->held_ = held_;
  return Trials(std::move(copy));
}

absl::Status PrivateGraph::Trials::Try(const v1::WhatIfRequest& request,
                                       const std::string& jobspec,
                                       v1::WhatIfResponse::Trial* trial) {
  v1::MatchRequest match;
  match.set_operation(v1::OPERATION_ALLOCATE_ORELSE_RESERVE);
  match.set_jobspec(jobspec);
  match.set_format(request.format());
  match.set_nodes(request.nodes());
  match.set_explain(true);
  v1::MatchResponse response;
  RETURN_IF_ERROR(copy_->Match(match, &response));
  if (response.outcome() == v1::OUTCOME_BUSY) {
    // Reserving does not tell what never fits from what does not while nodes are down.
    v1::MatchResponse ever;
    match.set_operation(v1::OPERATION_SATISFIABILITY);
    RETURN_IF_ERROR(copy_->Match(match, &ever));
    if (ever.outcome() == v1::OUTCOME_UNSATISFIABLE) response.set_outcome(ever.outcome());
  }
  RETURN_IF_ERROR(copy_->GiveReason(match, &response));
  trial->set_outcome(response.outcome());
  trial->set_reason(response.reason());
  if (response.has_allocation()) trial->mutable_allocation()->Swap(response.mutable_allocation());
  return absl::OkStatus();
}

}  // namespace fluxqueue::graph_service
