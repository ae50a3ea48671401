// How the graph of the general engine changes, under what is held of it.
#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/graph/general_engine.h"

namespace fluxqueue::graph {

absl::Status GeneralEngine::AddSubgraph(const ResourceGraph& part) {
  RETURN_IF_ERROR(part.Check());
  std::unique_ptr<GeneralEngine> before = recording_ ? Snapshot() : nullptr;
  RETURN_IF_ERROR(graph_.Merge(part));
  if (recording_) journal_.push_back(UndoAll{std::move(before)});
  GraphGrew();
  return absl::OkStatus();
}

absl::StatusOr<VertexId> GeneralEngine::AddVertex(Vertex vertex, VertexId parent) {
  NoteAll();
  ASSIGN_OR_RETURN(const VertexId added, graph_.AddVertex(std::move(vertex)));
  graph_.AddEdge(parent, added, ResourceGraph::kContainment);
  GraphGrew();
  return added;
}

void GeneralEngine::GraphGrew() {
  if (state_.GraphGrew()) {
    for (auto& [job, holding] : jobs_) state_.SumUpBelow(&holding);
  }
  GraphChanged();
}

absl::StatusOr<std::vector<JobNumber>> GeneralEngine::RemoveSubgraph(std::string_view path) {
  const auto top = graph_.FindPath(path);
  if (!top.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  if (*top == graph_.root()) return InvalidArgument("\"{}\" is the root; make a new graph", path);
  NoteAll();
  const std::vector<VertexId> subtree = graph_.SubtreeOf(*top);
  const std::set<VertexId> gone(subtree.begin(), subtree.end());
  std::vector<JobNumber> losers;
  for (const auto& [job, holding] : jobs_) {
    const bool loses = std::any_of(
        holding.vertices.begin(), holding.vertices.end(), [&gone](const HeldVertex& held) {
          return gone.contains(held.vertex);
        });
    if (loses) losers.push_back(job);
  }
  for (const JobNumber job : losers) Reduce(job, gone, /*leaving=*/true);
  state_.GraphShrinks(*top);
  const bool had_shared = graph_.has_shared();
  graph_.RemoveSubtree(*top);
  state_.GraphShrank(had_shared);
  GraphChanged();
  return losers;
}

bool GeneralEngine::HasTwins(VertexId v) const {
  const auto beside = [&](VertexId parent) {
    const auto& out = graph_.vertex(parent).out;
    return std::any_of(out.begin(), out.end(), [&](EdgeId e) {
      const VertexId other = graph_.edge(e).target;
      return other != v && graph_.vertex(other).type == graph_.vertex(v).type;
    });
  };
  const auto parents = graph_.ParentsOf(v);
  return std::any_of(parents.begin(), parents.end(), beside);
}

void GeneralEngine::Resize(VertexId v, int64_t size) {
  NoteAll();
  const int64_t more = size - graph_.vertex(v).size;
  graph_.SetSize(v, size);
  state_.Resize(v, more);
  // Several of one type are searched by an index when they are of one size.
  if (HasTwins(v)) GraphChanged();
  NodesChanged();
}

void GeneralEngine::SetTaints(VertexId v, std::vector<Taint> taints) {
  const std::span<const Taint> before = graph_.TaintsOf(v);
  if (std::equal(before.begin(), before.end(), taints.begin(), taints.end())) return;
  NoteAll();
  graph_.SetTaints(v, std::move(taints));
  state_.Touch(v);
}

void GeneralEngine::SetProperties(VertexId v, Labels properties) {
  if (graph_.vertex(v).properties == properties) return;
  Note(v);
  graph_.SetProperties(v, std::move(properties));
  state_.Touch(v);
  NodesChanged();
}

void GeneralEngine::SetUp(VertexId v, bool up) {
  const Vertex& vertex = graph_.vertex(v);
  if (vertex.up == up) return;
  Note(v);
  if (vertex.type == graph_.types().Find("node")) nodes_up_ += up ? 1 : -1;
  graph_.SetUp(v, up);
  state_.Touch(v);
}

absl::Status GeneralEngine::SetUp(std::string_view path, bool up) {
  const auto v = graph_.FindPath(path);
  if (!v.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  SetUp(*v, up);
  return absl::OkStatus();
}

absl::Status GeneralEngine::SetProperty(std::string_view path, std::string key, std::string value) {
  const auto v = graph_.FindPath(path);
  if (!v.has_value()) {
    return MakeStatus(absl::StatusCode::kNotFound, "the graph has no path \"{}\"", path);
  }
  Note(*v);
  graph_.SetProperty(*v, std::move(key), std::move(value));
  state_.Touch(*v);
  NodesChanged();
  return absl::OkStatus();
}

void GeneralEngine::SetTryOrder(VertexId v, uint64_t weight) {
  for (const EdgeId e : graph_.vertex(v).in) {
    if (graph_.edge(e).subsystem != ResourceGraph::kContainment) continue;
    if (recording_) journal_.push_back(UndoOrder{e, state_.Weight(e)});
    state_.SetWeight(e, weight);
  }
}

absl::Status GeneralEngine::SetPolicy(std::string_view policy) {
  ASSIGN_OR_RETURN(const MatchPolicy parsed, MatchPolicy::Parse(policy));
  NoteAll();
  policy_ = parsed;
  GraphChanged();
  return absl::OkStatus();
}

void GeneralEngine::SetWorkload(Workload workload) {
  for (WorkloadShape& shape : workload) shape.count = QuantisedCount(shape.count);
  if (workload == packing_.workload()) return;
  if (recording_) journal_.push_back(UndoWorkload{packing_.workload()});
  packing_.SetWorkload(std::move(workload));
  WorkloadChanged();
}

void GeneralEngine::NodesChanged() {
  if (!packing_.workload().empty()) WorkloadChanged();
}

void GeneralEngine::WorkloadChanged() {
  if (policy_.order == MatchPolicy::Order::kPacked) packed_ = false;
}

void GeneralEngine::CountNodes() {
  const auto nodes = graph_.OfType(graph_.types().Find("node"));
  nodes_up_ =
      std::count_if(nodes.begin(), nodes.end(), [this](VertexId v) { return graph_.vertex(v).up; });
}

}  // namespace fluxqueue::graph
