#include "libs/graph/jgf_writer.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace fluxqueue::graph {
namespace {

using nlohmann::ordered_json;

ordered_json PathsOf(const ResourceGraph& graph, const Vertex& vertex) {
  ordered_json paths;
  for (const auto& [subsystem, path] : vertex.paths) {
    ordered_json& known = paths[graph.subsystems()[subsystem]];
    if (known.is_string()) known = ordered_json::array({known});
    if (known.is_array()) {
      known.push_back(path);
    } else {
      known = path;
    }
  }
  return paths;
}

ordered_json NodeOf(const ResourceGraph& graph, VertexId v) {
  const Vertex& vertex = graph.vertex(v);
  ordered_json metadata = {{"type", graph.TypeName(v)},
                           {"basename", vertex.basename},
                           {"name", vertex.name},
                           {"id", vertex.id},
                           {"uniq_id", vertex.uniq_id},
                           {"rank", vertex.rank},
                           {"size", vertex.size},
                           {"unit", vertex.unit}};
  if (vertex.divisible) metadata["divisible"] = true;
  if (!vertex.up) metadata["status"] = 1;
  for (const auto& [key, value] : vertex.properties) metadata["properties"][key] = value;
  metadata["paths"] = PathsOf(graph, vertex);
  return {{"id", std::to_string(vertex.uniq_id)}, {"metadata", std::move(metadata)}};
}

ordered_json EdgeOf(const ResourceGraph& graph, const Edge& edge) {
  const auto id = [&graph](VertexId v) { return std::to_string(graph.vertex(v).uniq_id); };
  return {{"source", id(edge.source)},
          {"target", id(edge.target)},
          {"metadata", {{"subsystem", graph.subsystems()[edge.subsystem]}}}};
}

}  // namespace

std::string JgfWriter::Next(size_t bytes) {
  std::string piece;
  if (part_ == Part::kBegin) {
    piece = R"({"graph":{"nodes":[)";
    part_ = Part::kNodes;
  }
  if (part_ == Part::kNodes) AppendNodes(bytes, &piece);
  if (part_ == Part::kEdges) AppendEdges(bytes, &piece);
  return piece;
}

void JgfWriter::AppendNodes(size_t bytes, std::string* piece) {
  for (; next_ < graph_.vertices().size(); ++next_) {
    if (graph_.vertices()[next_].gone) continue;
    if (piece->size() >= bytes) return;
    if (!std::exchange(first_, false)) *piece += ',';
    *piece += NodeOf(graph_, static_cast<VertexId>(next_)).dump();
  }
  *piece += R"(],"edges":[)";
  part_ = Part::kEdges;
  next_ = 0;
  first_ = true;
}

void JgfWriter::AppendEdges(size_t bytes, std::string* piece) {
  for (; next_ < graph_.edges().size(); ++next_) {
    const Edge& edge = graph_.edges()[next_];
    if (edge.gone) continue;
    if (piece->size() >= bytes) return;
    if (!std::exchange(first_, false)) *piece += ',';
    *piece += EdgeOf(graph_, edge).dump();
  }
  *piece += "]}}";
  part_ = Part::kEnd;
}

}  // namespace fluxqueue::graph
