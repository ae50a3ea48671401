#include "services/graph/domain/pool_view.h"

#include <algorithm>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/booked_engine.h"
#include "libs/graph/cluster_graph.h"
#include "libs/graph/find_criteria.h"
#include "libs/graph/fnv.h"
#include "libs/graph/planned_end.h"
#include "libs/rpc/error_details.h"
#include "services/graph/domain/pod_jobspec.h"

namespace fluxqueue::graph_service {
namespace {

using graph::Holding;
using graph::JobNumber;
using graph::JobRequest;
using graph::MatchAnswer;
using graph::MatchOperation;
using graph::MatchStatus;
using graph::VertexId;

// The graph's time begins now.
graph::Placement FromNowOn(graph::Placement placement, int64_t now_s) {
  const int64_t end_s = graph::PlannedEnd(placement, now_s) - now_s;
  placement.start_s = std::max<int64_t>(0, placement.start_s - now_s);
  if (placement.duration_s != 0) placement.duration_s = end_s - placement.start_s;
  return placement;
}

std::vector<graph::Closure> FromNowOn(std::vector<graph::Closure> closures, int64_t now_s) {
  for (graph::Closure& closure : closures) {
    closure.from_s = std::max<int64_t>(0, closure.from_s - now_s);
    closure.to_s -= now_s;
  }
  return closures;
}

absl::StatusOr<graph::Jobspec> ParseField(const std::string& text) {
  const absl::StatusOr<std::string> pods = ToPodJobspec(text);
  if (!pods.ok()) return rpc::InField(pods.status(), "jobspec");
  auto jobspec = graph::ParseJobspec(*pods);
  if (!jobspec.ok()) return rpc::InField(jobspec.status(), "jobspec");
  return jobspec;
}

// The pool in the native engine.
struct Books {
  std::unique_ptr<graph::BookedEngine> engine;
  graph::ClusterGraph* cluster = nullptr;  // the engine's
};

absl::StatusOr<Books> MakeBooks(const PoolState& state) {
  Books books;
  books.engine = std::make_unique<graph::BookedEngine>(
      [&books](graph::NodeTable* table, graph::ExpectedWork* expected) {
        auto graph = std::make_unique<graph::ClusterGraph>(table, expected);
        books.cluster = graph.get();
        return graph;
      });
  // Fluxion has others, which are of no use on this graph.
  if (!books.engine->SetPolicy(state.policy).ok()) CHECK(books.engine->SetPolicy("first").ok());
  RETURN_IF_ERROR(books.engine->SetLevels(state.levels));
  for (const graph::NodeSpec& node : state.nodes) RETURN_IF_ERROR(books.engine->AddNode(node));
  // Nothing is held yet that would have to be held again.
  books.cluster->Rebuild();
  for (const auto& [key, placement] : state.held) {
    RETURN_IF_ERROR(books.engine->Restore(key, FromNowOn(placement, state.now_s)));
  }
  // One whose nodes have gone is promised another time in the next cycle.
  for (const auto& [key, placement] : state.reserved) {
    books.engine->Reserve(key, FromNowOn(placement, state.now_s));
  }
  books.cluster->SetClosures(FromNowOn(state.closures, state.now_s));
  return books;
}

}  // namespace

int64_t NumberOf(std::string_view job_id) {
  graph::Fnv hash;
  hash.Add(std::string(job_id));
  return static_cast<int64_t>(hash.value() >> 1) | 1;
}

absl::StatusOr<std::unique_ptr<const PoolView>> PoolView::Make(const PoolState& state) {
  const absl::StatusOr<Books> books = MakeBooks(state);
  if (!books.ok()) {
    return MakeStatus(absl::StatusCode::kInternal, "{}", Message(books.status()));
  }
  std::unique_ptr<PoolView> view(new PoolView());
  view->now_s_ = state.now_s;
  ASSIGN_OR_RETURN(view->levels_, graph::ParseLevels(state.levels));
  view->in_use_ = books->cluster->levels_in_use();
  view->engine_ = books->cluster->engine().Snapshot();
  // The books have numbered the groups of slots from 1 on, in the order in which they came.
  for (const auto& [key, placement] : state.held) {
    for (size_t group = 0; group < placement.groups.size(); ++group) {
      view->job_ids_.emplace(view->job_ids_.size() + 1, key.job_id);
    }
  }
  const graph::ResourceGraph& resources = view->engine_->graph();
  view->messages_ = std::make_unique<GraphMessages>(resources);
  for (const VertexId node : resources.OfType(resources.types().Find("node"))) {
    view->nodes_.emplace(resources.vertex(node).name, node);
  }
  return view;
}

// ---- jobs

v1::WatchAllocationsResponse::Kind KindOf(const HeldByJob& held) {
  if (held.empty()) return v1::WatchAllocationsResponse::KIND_RELEASED;
  const bool reduced = std::any_of(held.begin(), held.end(), [](const graph::Placement& one) {
    return std::any_of(one.slots.begin(), one.slots.end(), [](const graph::PlacedSlot& slot) {
      return slot.released;
    });
  });
  return reduced ? v1::WatchAllocationsResponse::KIND_REDUCED
                 : v1::WatchAllocationsResponse::KIND_ALLOCATED;
}

absl::Status PoolView::WriteJob(const HeldByJob& held,
                                const Wanted& wanted,
                                v1::Allocation* allocation) const {
  Vertices vertices;
  Holding holding;
  holding.duration_s = graph::kForever;
  for (const graph::Placement& placement : held) {
    size_t slot = 0;
    for (const graph::SlotGroup& group : placement.groups) {
      for (const size_t end = slot + group.slots; slot < end; ++slot) {
        AddSlot(placement.slots[slot], group.request, &vertices);
      }
    }
    holding.at_s = placement.start_s;
    if (placement.duration_s > 0) holding.duration_s = placement.duration_s;
  }
  // Vertices have greater numbers than what contains them; these come last.
  for (auto vertex = vertices.rbegin(); vertex != vertices.rend(); ++vertex) {
    holding.vertices.push_back(vertex->second);
  }
  return messages_->WriteAllocation(holding, wanted, allocation);
}

void PoolView::AddSlot(const graph::PlacedSlot& slot,
                       const graph::Amounts& request,
                       Vertices* vertices) const {
  const auto node = slot.released ? nodes_.end() : nodes_.find(slot.node);
  if (node == nodes_.end()) return;
  const graph::ResourceGraph& resources = engine_->graph();
  for (const graph::EdgeId e : resources.vertex(node->second).out) {
    const VertexId leaf = resources.edge(e).target;
    for (const graph::Amount& amount : request) {
      if (amount.resource != resources.TypeName(leaf)) continue;
      const auto device = static_cast<uint32_t>(resources.vertex(leaf).id);
      if (amount.resource != graph::kGpuMilli) {
        Hold(leaf, amount.amount, vertices);
      } else if (std::find(slot.devices.begin(), slot.devices.end(), device) !=
                 slot.devices.end()) {
        Hold(leaf, graph::DevicesFor(amount.amount).of_each, vertices);
      }
    }
  }
  for (VertexId v = node->second; v != resources.root(); v = resources.ParentsOf(v).front()) {
    Pass(v, vertices);
  }
  Pass(resources.root(), vertices);
}

graph::HeldVertex& PoolView::At(VertexId v, Vertices* vertices) const {
  const std::vector<graph::EdgeId>& in = engine_->graph().vertex(v).in;
  return vertices->try_emplace(v, graph::HeldVertex{v, in.empty() ? graph::kNoEdge : in.front()})
      .first->second;
}

void PoolView::Hold(VertexId v, int64_t amount, Vertices* vertices) const {
  graph::HeldVertex& held = At(v, vertices);
  held.amount += amount;
  held.exclusive = true;
}

void PoolView::Pass(VertexId v, Vertices* vertices) const {
  At(v, vertices).amount = 1;
}

// ---- looking

absl::StatusOr<std::vector<JobRequest>> PoolView::Ways(const std::string& text) const {
  ASSIGN_OR_RETURN(const graph::Jobspec jobspec, ParseField(text));
  if (jobspec.groups.size() > 1) {
    return rpc::InField(InvalidArgument("jobspec: slots that differ can be matched, but not tried"),
                        "jobspec");
  }
  std::vector<JobRequest> ways;
  for (graph::SlotRequests& way : graph::WaysToMeet(jobspec, levels_, in_use_)) {
    way.requests.front().duration_s = jobspec.duration_s;
    ways.push_back(std::move(way.requests.front()));
  }
  return ways;
}

absl::Status PoolView::Explain(const v1::ExplainRequest& request,
                               v1::ExplainResponse* response) const {
  ASSIGN_OR_RETURN(const std::vector<JobRequest> ways, Ways(request.jobspec()));
  if (ways.empty()) {
    response->set_sentence("no node has a label of the level that is required");
    response->set_missing("level");
    return absl::OkStatus();
  }
  const graph::GraphExplanation why = engine_->Explain(ways.back());
  WriteExplanation(why, response);
  for (const graph::GraphExplanation::Holder& holder : why.holders) {
    const auto job_id = job_ids_.find(holder.job);
    // Others than us.
    if (job_id == job_ids_.end()) continue;
    v1::ExplainResponse::Holder* out = response->add_holders();
    out->set_job(NumberOf(job_id->second));
    out->set_job_id(job_id->second);
    out->set_amount(holder.amount);
    out->set_until_s(now_s_ + holder.until_s);
  }
  return absl::OkStatus();
}

absl::Status PoolView::Find(const v1::FindRequest& request, v1::FindResponse* response) const {
  ASSIGN_OR_RETURN(const auto format, FormatOf(request.format()));
  RETURN_IF_ERROR(CheckCriteria(request.criteria()));
  const auto criteria = graph::FindCriteria::Parse(request.criteria());
  if (!criteria.ok()) return rpc::InField(criteria.status(), "criteria");
  Holding found;
  for (const graph::VertexId v : engine_->FindVertices(*criteria)) {
    const graph::Vertex& vertex = engine_->graph().vertex(v);
    found.vertices.push_back(
        {v, vertex.in.empty() ? graph::kNoEdge : vertex.in.front(), vertex.size, true});
  }
  response->set_vertices(static_cast<int64_t>(found.vertices.size()));
  RETURN_IF_ERROR(CheckWritten(found.vertices.size(), request.format()));
  if (format.has_value() && !found.vertices.empty()) {
    response->set_resources(graph::WriteResourceSet(engine_->graph(), found, *format));
  }
  return absl::OkStatus();
}

void PoolView::Summarise(v1::GetGraphResponse* response) const {
  std::map<graph::TypeId, int64_t> sums;
  for (const auto& [job, id] : job_ids_) {
    const Holding* held = engine_->Find(job);
    if (held == nullptr) continue;
    for (const graph::HeldVertex& vertex : held->vertices) {
      if (vertex.exclusive) sums[engine_->graph().vertex(vertex.vertex).type] += vertex.amount;
    }
  }
  messages_->Summarise(sums, response);
}

// ---- trying

absl::Status PoolView::WriteInWorldTime(const Holding& holding,
                                        const Wanted& wanted,
                                        v1::Allocation* allocation) const {
  Holding in_world = holding;
  in_world.at_s += now_s_;
  return messages_->WriteAllocation(in_world, wanted, allocation);
}

absl::StatusOr<std::string> PoolView::ReasonFor(const std::string& jobspec) const {
  v1::ExplainRequest request;
  request.set_jobspec(jobspec);
  v1::ExplainResponse response;
  RETURN_IF_ERROR(Explain(request, &response));
  return response.sentence();
}

// Nothing held: it has no place, as far as is known.
absl::StatusOr<MatchAnswer> PoolView::Trials::Place(const std::vector<JobRequest>& ways) {
  MatchAnswer answer{MatchStatus::kUnsatisfiable, {}};
  for (const JobRequest& way : ways) {
    ASSIGN_OR_RETURN(answer, engine_->Match(MatchOperation::kAllocate, ++job_, way));
    if (answer.status == MatchStatus::kAllocated) return answer;
  }
  if (ways.empty()) return answer;
  // The last way asks least.
  ASSIGN_OR_RETURN(answer,
                   engine_->Match(MatchOperation::kAllocateOrElseReserve, ++job_, ways.back()));
  // Behind what has no end.
  if (answer.holding.at_s >= graph::kForever) {
    engine_->Cancel(job_);
    answer.holding = {};
  }
  if (!answer.holding.vertices.empty()) return answer;
  ASSIGN_OR_RETURN(const MatchAnswer ever,
                   engine_->Match(MatchOperation::kSatisfiability, ++job_, ways.back()));
  answer.status = ever.status == MatchStatus::kMatched ? MatchStatus::kBusy : ever.status;
  return answer;
}

absl::Status PoolView::Trials::Try(const v1::WhatIfRequest& request,
                                   const std::string& jobspec,
                                   v1::WhatIfResponse::Trial* trial) {
  ASSIGN_OR_RETURN(const std::vector<JobRequest> ways, view_.Ways(jobspec));
  ASSIGN_OR_RETURN(const MatchAnswer answer, Place(ways));
  if (!answer.holding.vertices.empty()) {
    trial->set_outcome(answer.status == MatchStatus::kAllocated ? v1::OUTCOME_ALLOCATED
                                                                : v1::OUTCOME_RESERVED);
    return view_.WriteInWorldTime(
        answer.holding, {request.format(), request.nodes()}, trial->mutable_allocation());
  }
  trial->set_outcome(answer.status == MatchStatus::kBusy ? v1::OUTCOME_BUSY
                                                         : v1::OUTCOME_UNSATISFIABLE);
  ASSIGN_OR_RETURN(*trial->mutable_reason(), view_.ReasonFor(jobspec));
  return absl::OkStatus();
}

absl::Status PoolView::Try(const v1::MatchRequest& request, v1::MatchResponse* response) const {
  RETURN_IF_ERROR(FormatOf(request.format()).status());
  v1::WhatIfRequest what_if;
  what_if.set_format(request.format());
  what_if.set_nodes(request.nodes());
  v1::WhatIfResponse::Trial trial;
  RETURN_IF_ERROR(BeginTrials().Try(what_if, request.jobspec(), &trial));
  const bool later = trial.outcome() == v1::OUTCOME_RESERVED;
  const bool later_will_do = request.operation() == v1::OPERATION_WITHOUT_ALLOCATING_FUTURE;
  if (request.operation() == v1::OPERATION_SATISFIABILITY) {
    // What waits for nodes that are down could run, too.
    response->set_outcome(trial.outcome() == v1::OUTCOME_UNSATISFIABLE ? trial.outcome()
                                                                       : v1::OUTCOME_SATISFIABLE);
  } else if (trial.outcome() == v1::OUTCOME_ALLOCATED || (later && later_will_do)) {
    response->set_outcome(v1::OUTCOME_FITS);
    response->mutable_allocation()->Swap(trial.mutable_allocation());
  } else {
    response->set_outcome(later ? v1::OUTCOME_BUSY : trial.outcome());
  }
  const bool refused =
      response->outcome() == v1::OUTCOME_BUSY || response->outcome() == v1::OUTCOME_UNSATISFIABLE;
  if (!request.explain() || !refused) return absl::OkStatus();
  ASSIGN_OR_RETURN(*response->mutable_reason(), ReasonFor(request.jobspec()));
  return absl::OkStatus();
}

}  // namespace fluxqueue::graph_service
