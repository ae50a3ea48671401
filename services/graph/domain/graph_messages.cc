#include "services/graph/domain/graph_messages.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::graph_service {

using graph::GraphExplanation;
using graph::Holding;
using graph::ResourceGraph;
using graph::SetFormat;
using graph::VertexId;

absl::StatusOr<std::optional<SetFormat>> FormatOf(v1::Format format) {
  switch (format) {
    case v1::FORMAT_UNSPECIFIED:
      return std::optional<SetFormat>();
    case v1::FORMAT_RV1:
      return std::optional(SetFormat::kRv1);
    case v1::FORMAT_RV1_NOSCHED:
      return std::optional(SetFormat::kRv1NoSched);
    case v1::FORMAT_RLITE:
      return std::optional(SetFormat::kRlite);
    case v1::FORMAT_JGF:
      return std::optional(SetFormat::kJgf);
    case v1::FORMAT_SIMPLE:
      return std::optional(SetFormat::kSimple);
    default:
      return rpc::InField(
          InvalidArgument("format: {} is none that is known", static_cast<int>(format)), "format");
  }
}

absl::Status CheckWritten(size_t vertices, v1::Format format) {
  const bool of_each =
      format == v1::FORMAT_RV1 || format == v1::FORMAT_JGF || format == v1::FORMAT_SIMPLE;
  if (!of_each || vertices <= kMostWritten) return absl::OkStatus();
  return rpc::WithReason(
      MakeStatus(absl::StatusCode::kResourceExhausted,
                 "{} vertices are more than an answer names in this format ({}): ask for "
                 "FORMAT_RLITE, FORMAT_RV1_NOSCHED or the amounts by node",
                 vertices,
                 kMostWritten),
      "ANSWER_SIZE",
      {{"limit", fmt::format("{}", kMostWritten)}});
}

absl::Status CheckCriteria(const std::string& criteria) {
  constexpr size_t kMostCriteria = size_t{4} << 10;
  if (criteria.size() <= kMostCriteria) return absl::OkStatus();
  return rpc::InField(
      InvalidArgument(
          "criteria: have {} bytes, at most {} are allowed", criteria.size(), kMostCriteria),
      "criteria");
}

void FitEvent(const absl::Status& written, v1::WatchAllocationsResponse* event) {
  if (written.ok() && event->ByteSizeLong() <= kMostEventBytes) return;
  // A new one: what is cleared would keep its memory.
  v1::WatchAllocationsResponse small;
  small.set_kind(event->kind());
  small.set_job(event->job());
  small.set_job_id(event->job_id());
  small.mutable_allocation()->set_at_s(event->allocation().at_s());
  small.mutable_allocation()->set_duration_s(event->allocation().duration_s());
  small.set_left_out(true);
  event->Swap(&small);
}

GraphMessages::GraphMessages(const ResourceGraph& graph) : graph_(graph) {
  node_of_.assign(graph.vertices().size(), kNoNode);
  for (const VertexId node : graph.OfType(graph.types().Find("node"))) {
    for (const VertexId v : graph.SubtreeOf(node)) node_of_[v] = node;
  }
}

absl::Status GraphMessages::WriteAllocation(const Holding& holding,
                                            const Wanted& wanted,
                                            v1::Allocation* allocation) const {
  allocation->set_at_s(holding.at_s);
  allocation->set_duration_s(holding.duration_s);
  RETURN_IF_ERROR(CheckWritten(holding.vertices.size(), wanted.format));
  const auto format = FormatOf(wanted.format);
  if (format.ok() && format->has_value()) {
    allocation->set_resources(graph::WriteResourceSet(graph_, holding, **format));
  }
  if (wanted.nodes) WriteNodes(holding, allocation);
  return absl::OkStatus();
}

void GraphMessages::WriteNodes(const Holding& holding, v1::Allocation* allocation) const {
  std::map<std::string, v1::NodeResources> by_name;
  for (const graph::HeldVertex& held : holding.vertices) {
    if (!held.exclusive || node_of_[held.vertex] == kNoNode) continue;
    v1::NodeResources& node = by_name[graph_.vertex(node_of_[held.vertex]).name];
    (*node.mutable_amounts())[graph_.TypeName(held.vertex)] += held.amount;
  }
  for (auto& [name, node] : by_name) {
    node.set_node(name);
    allocation->add_nodes()->Swap(&node);
  }
}

int64_t GraphMessages::NodesIn(const Holding& holding) const {
  std::set<VertexId> nodes;
  for (const graph::HeldVertex& held : holding.vertices) {
    if (held.exclusive && node_of_[held.vertex] != kNoNode) nodes.insert(node_of_[held.vertex]);
  }
  return static_cast<int64_t>(nodes.size());
}

void GraphMessages::Summarise(const std::map<graph::TypeId, int64_t>& held,
                              v1::GetGraphResponse* response) const {
  std::map<graph::TypeId, v1::GetGraphResponse::Level*> levels;
  std::vector<std::pair<VertexId, bool>> way = {{graph_.root(), true}};
  std::vector<bool> seen(graph_.vertices().size(), false);
  // From the top, level by level.
  for (size_t next = 0; next < way.size(); ++next) {
    const auto [v, above_up] = way[next];
    if (seen[v]) continue;
    seen[v] = true;
    const graph::Vertex& vertex = graph_.vertex(v);
    v1::GetGraphResponse::Level*& level = levels[vertex.type];
    if (level == nullptr) {
      level = response->add_levels();
      level->set_type(graph_.TypeName(v));
    }
    const bool up = above_up && vertex.up;
    level->set_vertices(level->vertices() + 1);
    level->set_up(level->up() + (up ? 1 : 0));
    level->set_size(level->size() + vertex.size);
    for (const graph::EdgeId e : vertex.out) {
      const graph::Edge& edge = graph_.edge(e);
      if (edge.subsystem == ResourceGraph::kContainment) way.emplace_back(edge.target, up);
    }
  }
  for (const auto& [type, amount] : held) {
    levels.at(type)->set_held(amount);
  }
}

void WriteExplanation(const GraphExplanation& why, v1::ExplainResponse* response) {
  response->set_sentence(why.sentence);
  response->set_missing(why.missing);
  for (const GraphExplanation::Level& level : why.levels) {
    v1::ExplainResponse::Level* out = response->add_levels();
    out->set_type(level.type);
    out->set_wanted(level.wanted);
    out->set_there(level.there);
    out->set_allowed(level.allowed);
    out->set_large_enough(level.large_enough);
    out->set_up(level.up);
    out->set_free_enough(level.free_enough);
  }
}

std::string ReasonOf(v1::Outcome outcome, const GraphExplanation& why) {
  if (!why.missing.empty()) return why.sentence;
  return outcome == v1::OUTCOME_UNSATISFIABLE ? "it is more than the graph could ever give"
                                              : "it does not fit now";
}

}  // namespace fluxqueue::graph_service
