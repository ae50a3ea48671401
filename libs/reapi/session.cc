#include "libs/reapi/session.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/graph/alternatives.h"
#include "libs/graph/find_criteria.h"
#include "libs/graph/jgf.h"
#include "libs/graph/request.h"
#include "libs/graph/resource_set.h"
#include "libs/graph/resource_set_reader.h"

namespace fluxqueue::reapi {
namespace {

using graph::GeneralEngine;
using graph::HeldVertex;
using graph::Holding;
using graph::MatchOperation;
using graph::MatchStatus;
using graph::ResourceGraph;
using graph::VertexId;

absl::StatusOr<ResourceGraph> ReadGraph(std::string_view text, LoadFormat format) {
  auto graph =
      format == LoadFormat::kJgf ? graph::ParseJgf(text) : graph::ReadResourceSetAsGraph(text);
  if (graph.ok()) return graph;
  // Fluxion aborts on these, and answers EPROTO to all else.
  const std::string message = Message(graph.status());
  if (message.find(".metadata.properties") != std::string::npos) return graph.status();
  return MakeStatus(absl::StatusCode::kDataLoss, "{}", message);
}

absl::Status HoldsNothing(JobNumber job) {
  return MakeStatus(absl::StatusCode::kNotFound, "job {} holds nothing", job);
}

bool Overlap(const Holding& one, const Holding& other) {
  return one.at_s < other.at_s + other.duration_s && other.at_s < one.at_s + one.duration_s;
}

bool IsRliteType(const std::string& type) {
  return std::find(graph::kRliteTypes.begin(), graph::kRliteTypes.end(), type) !=
         graph::kRliteTypes.end();
}

// Types that Fluxion has numbers for whatever the graph.
constexpr std::array<std::string_view, 7> kBuiltInTypes = {
    "cluster", "core", "socket", "gpu", "node", "rack", graph::kSlotType};

bool IsKnownType(const std::string& type, const ResourceGraph& resources) {
  return std::find(kBuiltInTypes.begin(), kBuiltInTypes.end(), type) != kBuiltInTypes.end() ||
         type == graph::kXorSlotType || resources.types().Find(type) != graph::NameTable::kUnknown;
}

// To Fluxion's interface a type that no graph ever had is a mistake, not a want of resources.
absl::Status CheckTypes(const std::vector<graph::ResourceRequest>& requests,
                        const ResourceGraph& resources) {
  for (const graph::ResourceRequest& request : requests) {
    if (!IsKnownType(request.type, resources)) {
      return InvalidArgument("the graph has no resources of type \"{}\"", request.type);
    }
    RETURN_IF_ERROR(CheckTypes(request.with, resources));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view NameOf(JobMode mode) {
  switch (mode) {
    case JobMode::kAllocated:
      return "ALLOCATED";
    case JobMode::kReserved:
      return "RESERVED";
    case JobMode::kCanceled:
      return "CANCELED";
  }
  return {};
}

absl::StatusOr<std::unique_ptr<Session>> Session::Make(std::string_view graph,
                                                       std::string_view options) {
  ASSIGN_OR_RETURN(const SessionOptions parsed, SessionOptions::Parse(options));
  ASSIGN_OR_RETURN(ResourceGraph resources, ReadGraph(graph, parsed.load_format));
  ASSIGN_OR_RETURN(std::unique_ptr<GeneralEngine> engine,
                   GeneralEngine::Make(std::move(resources),
                                       {.policy = parsed.matcher_policy,
                                        .prune_filters = parsed.prune_filters,
                                        .traverser = parsed.traverser_policy}));
  return std::unique_ptr<Session>(new Session(std::move(engine), parsed.match_format));
}

std::unique_ptr<Session> Session::Clone() const {
  auto clone = std::unique_ptr<Session>(new Session(engine_->Snapshot(), format_));
  clone->jobs_ = jobs_;
  clone->next_job_ = next_job_;
  return clone;
}

Placement Session::PlacementOf(Holding holding) const {
  std::string resources = graph::WriteResourceSet(engine_->graph(), holding, format_);
  return {holding.reserved, holding.at_s, std::move(holding), std::move(resources)};
}

absl::StatusOr<Placement> Session::Match(int operation, std::string_view jobspec, JobNumber job) {
  constexpr auto kMost = static_cast<int>(graph::kMatchOperations.size());
  if (operation < 1 || operation > kMost) {
    return InvalidArgument("the operation must be from 1 to {}, is {}", kMost, operation);
  }
  return Match(static_cast<MatchOperation>(operation - 1), jobspec, job);
}

absl::StatusOr<graph::JobRequest> Session::Parse(std::string_view jobspec) const {
  ASSIGN_OR_RETURN(graph::JobRequest request, graph::ParseJobRequest(jobspec));
  RETURN_IF_ERROR(CheckTypes(request.resources, engine_->graph()));
  return request;
}

absl::StatusOr<graph::MatchAnswer> Session::Place(MatchOperation asked,
                                                  const graph::JobRequest& request,
                                                  JobNumber job) {
  if (asked != MatchOperation::kSatisfiability && engine_->Find(job) != nullptr) {
    return MakeStatus(absl::StatusCode::kAlreadyExists, "job {} holds something already", job);
  }
  ASSIGN_OR_RETURN(graph::MatchAnswer answer, engine_->Match(asked, job, request));
  if (answer.status == MatchStatus::kAllocated) {
    jobs_[job] = {JobMode::kAllocated, answer.holding.at_s};
  } else if (answer.status == MatchStatus::kReserved) {
    jobs_[job] = {JobMode::kReserved, answer.holding.at_s};
  }
  // What is only looked for is not reserved, whenever it would be.
  answer.holding.reserved = answer.status == MatchStatus::kReserved;
  return answer;
}

absl::StatusOr<Placement> Session::Match(MatchOperation asked,
                                         std::string_view jobspec,
                                         JobNumber job) {
  ASSIGN_OR_RETURN(const graph::JobRequest request, Parse(jobspec));
  ASSIGN_OR_RETURN(graph::MatchAnswer answer, Place(asked, request, job));
  if (answer.status == MatchStatus::kBusy) {
    return MakeStatus(
        absl::StatusCode::kResourceExhausted, "job {}: what it asks for is not there now", job);
  }
  if (answer.status == MatchStatus::kUnsatisfiable) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "job {}: what it asks for is more than the graph could ever give",
                      job);
  }
  if (asked == MatchOperation::kSatisfiability) return Placement{};
  return PlacementOf(std::move(answer.holding));
}

JobNumber Session::NextJob() {
  while (jobs_.contains(next_job_)) ++next_job_;
  return next_job_++;
}

// The engine restores whatever it is told; what a job was given is its own, so two jobs never hold
// one vertex at a time.
absl::Status Session::CheckFree(const Holding& wanted) const {
  std::unordered_set<VertexId> vertices;
  for (const HeldVertex& held : wanted.vertices) {
    if (held.exclusive) vertices.insert(held.vertex);
  }
  for (const auto& [job, info] : jobs_) {
    const Holding* other = engine_->Find(job);
    if (other == nullptr || !Overlap(wanted, *other)) continue;
    for (const HeldVertex& held : other->vertices) {
      if (!held.exclusive || !vertices.contains(held.vertex)) continue;
      return InvalidArgument(
          "\"{}\" is held by job {} at that time", engine_->graph().PathOf(held.vertex), job);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Placement> Session::Restore(JobNumber job, std::string_view resources) {
  if (engine_->Find(job) != nullptr) {
    return MakeStatus(absl::StatusCode::kAlreadyExists, "job {} holds something already", job);
  }
  ASSIGN_OR_RETURN(graph::ResourceSet set, graph::ReadResourceSet(resources, engine_->graph()));
  RETURN_IF_ERROR(CheckFree(set.holding));
  RETURN_IF_ERROR(engine_->Restore(job, set.holding));
  jobs_[job] = {set.holding.reserved ? JobMode::kReserved : JobMode::kAllocated, set.holding.at_s};
  return PlacementOf(std::move(set.holding));
}

absl::Status Session::Cancel(JobNumber job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.mode == JobMode::kCanceled) return HoldsNothing(job);
  // It may have lost all to a subgraph that was removed.
  engine_->Cancel(job);
  found->second.mode = JobMode::kCanceled;
  return absl::OkStatus();
}

// What the job holds on the ranks that are named.
absl::StatusOr<std::vector<VertexId>> Session::WholeRanks(const Holding& held,
                                                          const Holding& named) const {
  const ResourceGraph& resources = engine_->graph();
  std::set<VertexId> given;
  std::set<int64_t> ranks;
  for (const HeldVertex& one : named.vertices) {
    if (!one.exclusive) continue;
    given.insert(one.vertex);
    ranks.insert(resources.vertex(one.vertex).rank);
  }
  std::vector<VertexId> all;
  for (const HeldVertex& one : held.vertices) {
    const int64_t rank = resources.vertex(one.vertex).rank;
    if (!one.exclusive || !ranks.contains(rank)) continue;
    if (!given.contains(one.vertex) && IsRliteType(resources.TypeName(one.vertex))) {
      return InvalidArgument("a rank is given back as a whole, and \"{}\" of rank {} is not named",
                             resources.PathOf(one.vertex),
                             rank);
    }
    given.erase(one.vertex);
    all.push_back(one.vertex);
  }
  // The engine complains of them: the job does not hold them.
  all.insert(all.end(), given.begin(), given.end());
  return all;
}

absl::StatusOr<bool> Session::CancelPart(JobNumber job, std::string_view resources) {
  const Holding* held = engine_->Find(job);
  if (held == nullptr) return HoldsNothing(job);
  if (held->reserved) {
    return MakeStatus(absl::StatusCode::kNotFound, "nothing is allocated to job {} yet", job);
  }
  ASSIGN_OR_RETURN(const graph::ResourceSet set,
                   graph::ReadResourceSet(resources, engine_->graph()));
  std::vector<VertexId> vertices;
  if (set.by_vertices) {
    for (const HeldVertex& one : set.holding.vertices) {
      if (one.exclusive) vertices.push_back(one.vertex);
    }
  } else {
    ASSIGN_OR_RETURN(vertices, WholeRanks(*held, set.holding));
  }
  ASSIGN_OR_RETURN(const bool all, engine_->CancelPart(job, vertices));
  if (all) jobs_[job].mode = JobMode::kCanceled;
  return all;
}

void Session::Forget(JobNumber job) {
  const auto found = jobs_.find(job);
  if (found != jobs_.end() && found->second.mode == JobMode::kCanceled) jobs_.erase(found);
}

absl::StatusOr<JobInfo> Session::Info(JobNumber job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    return MakeStatus(absl::StatusCode::kNotFound, "there is no job {}", job);
  }
  return found->second;
}

absl::StatusOr<std::optional<std::string>> Session::Find(
    std::string_view criteria, std::optional<std::string_view> format) const {
  graph::SetFormat written = format_;
  if (format.has_value()) {
    ASSIGN_OR_RETURN(written, graph::ParseSetFormat(*format));
  }
  ASSIGN_OR_RETURN(const Holding found, FindVertices(criteria));
  if (found.vertices.empty()) return std::optional<std::string>();
  return std::optional(graph::WriteResourceSet(engine_->graph(), found, written));
}

absl::StatusOr<Holding> Session::FindVertices(std::string_view criteria) const {
  ASSIGN_OR_RETURN(const graph::FindCriteria parsed, graph::FindCriteria::Parse(criteria));
  const std::vector<VertexId> found = engine_->FindVertices(parsed);
  const std::set<VertexId> vertices(found.begin(), found.end());
  const ResourceGraph& resources = engine_->graph();
  Holding holding;
  for (const VertexId v : found) {
    graph::EdgeId way = graph::kNoEdge;
    for (const graph::EdgeId e : resources.vertex(v).in) {
      const graph::Edge& edge = resources.edge(e);
      if (edge.subsystem != ResourceGraph::kContainment || !vertices.contains(edge.source))
        continue;
      way = e;
      break;
    }
    holding.vertices.push_back({v, way, resources.vertex(v).size, true});
  }
  return holding;
}

absl::Status Session::AddSubgraph(std::string_view jgf) {
  ASSIGN_OR_RETURN(const ResourceGraph part, graph::ParseJgf(jgf));
  const absl::Status added = engine_->AddSubgraph(part);
  // It is not the state that is in the way.
  return added.ok() ? added : InvalidArgument("{}", Message(added));
}

absl::Status Session::RemoveSubgraph(std::string_view path) {
  return engine_->RemoveSubgraph(path).status();
}

absl::Status Session::SetUp(std::string_view path, bool up) {
  const absl::Status set = engine_->SetUp(path, up);
  return set.ok() ? set : InvalidArgument("{}", Message(set));
}

absl::StatusOr<bool> Session::IsUp(std::string_view path) const {
  const ResourceGraph& resources = engine_->graph();
  const auto v = resources.FindPath(path);
  if (!v.has_value()) return InvalidArgument("the graph has no path \"{}\"", path);
  return resources.vertex(*v).up;
}

absl::Status Session::SetProperty(std::string_view path, std::string key, std::string value) {
  return engine_->SetProperty(path, std::move(key), std::move(value));
}

}  // namespace fluxqueue::reapi
