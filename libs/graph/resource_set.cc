#include "libs/graph/resource_set.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/hostlist.h"
#include "libs/graph/idset.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, SetFormat>, 5> kFormats = {
    {{"rv1", SetFormat::kRv1},
     {"rv1_nosched", SetFormat::kRv1NoSched},
     {"rlite", SetFormat::kRlite},
     {"jgf", SetFormat::kJgf},
     {"simple", SetFormat::kSimple}}};

// What can be told from the rest is left out, as Fluxion does.
ordered_json VertexOf(const ResourceGraph& graph, const HeldVertex& held) {
  const Vertex& vertex = graph.vertex(held.vertex);
  const std::string& type = graph.TypeName(held.vertex);
  ordered_json metadata = {{"type", type}};
  if (vertex.basename != type) metadata["basename"] = vertex.basename;
  if (vertex.name != fmt::format("{}{}", vertex.basename, vertex.id)) {
    metadata["name"] = vertex.name;
  }
  metadata["id"] = vertex.id;
  metadata["rank"] = vertex.rank;
  for (const auto& [key, value] : vertex.properties) metadata["properties"][key] = value;
  if (held.exclusive) metadata["exclusive"] = true;
  if (vertex.divisible) metadata["divisible"] = true;
  if (held.amount != 1) metadata["size"] = held.amount;
  for (const auto& [subsystem, path] : vertex.paths) {
    ordered_json& paths = metadata["paths"][graph.subsystems()[subsystem]];
    if (paths.is_string()) paths = ordered_json::array({paths});
    if (paths.is_array()) {
      paths.push_back(path);
    } else {
      paths = path;
    }
  }
  return {{"id", std::to_string(vertex.uniq_id)}, {"metadata", std::move(metadata)}};
}

ordered_json GraphOf(const ResourceGraph& graph, const Holding& holding) {
  ordered_json nodes = ordered_json::array();
  ordered_json edges = ordered_json::array();
  const auto id = [&graph](VertexId v) { return std::to_string(graph.vertex(v).uniq_id); };
  for (const HeldVertex& held : holding.vertices) {
    nodes.push_back(VertexOf(graph, held));
    if (held.edge == kNoEdge) continue;
    const Edge& edge = graph.edge(held.edge);
    edges.push_back({{"source", id(edge.source)}, {"target", id(edge.target)}});
  }
  return {{"graph", {{"nodes", std::move(nodes)}, {"edges", std::move(edges)}}}};
}

// What R says of nodes by their rank.
struct Ranks {
  std::map<std::string, std::vector<int64_t>> by_children;  // JSON, as it is sorted and written
  std::vector<std::string> names;
  std::map<std::string, std::vector<int64_t>> properties;
};

Ranks RanksOf(const ResourceGraph& graph, const Holding& holding) {
  std::map<int64_t, std::map<std::string_view, std::set<int64_t>>> children;
  std::map<int64_t, VertexId> nodes;
  for (const HeldVertex& held : holding.vertices) {
    const Vertex& vertex = graph.vertex(held.vertex);
    const std::string& type = graph.TypeName(held.vertex);
    if (vertex.rank < 0) continue;
    if (type == "node") nodes[vertex.rank] = held.vertex;
    for (const std::string_view known : kRliteTypes) {
      if (type == known && held.exclusive) children[vertex.rank][known].insert(vertex.id);
    }
  }
  Ranks ranks;
  for (const auto& [rank, types] : children) {
    ordered_json named = ordered_json::object();
    for (const std::string_view type : kRliteTypes) {
      const auto ids = types.find(type);
      if (ids != types.end()) {
        named[std::string(type)] = FormatIdset({ids->second.begin(), ids->second.end()});
      }
    }
    ranks.by_children[named.dump()].push_back(rank);
    const auto node = nodes.find(rank);
    if (node == nodes.end()) continue;
    ranks.names.push_back(graph.vertex(node->second).name);
    for (const auto& [key, value] : graph.vertex(node->second).properties) {
      ranks.properties[key].push_back(rank);
    }
  }
  return ranks;
}

ordered_json RliteOf(const Ranks& ranks) {
  ordered_json lite = ordered_json::array();
  for (const auto& [children, members] : ranks.by_children) {
    lite.push_back({{"rank", FormatIdset(members)}, {"children", ordered_json::parse(children)}});
  }
  return lite;
}

ordered_json ExecutionOf(const ResourceGraph& graph, const Holding& holding) {
  const Ranks ranks = RanksOf(graph, holding);
  ordered_json execution = {{"R_lite", RliteOf(ranks)},
                            {"nodelist", ordered_json::array({FormatHostlist(ranks.names)})}};
  for (const auto& [key, members] : ranks.properties) {
    execution["properties"][key] = FormatIdset(members);
  }
  execution["starttime"] = holding.at_s;
  execution["expiration"] = holding.at_s + holding.duration_s;
  return execution;
}

std::string LinesOf(const ResourceGraph& graph, const Holding& holding) {
  std::string lines;
  for (const HeldVertex& held : holding.vertices) {
    const std::string_view path = graph.PathOf(held.vertex);
    lines.append(6, ' ');
    for (const char c : path) lines += c == '/' ? "---" : "";
    lines += fmt::format(
        "{}[{}:{}]\n", graph.vertex(held.vertex).name, held.amount, held.exclusive ? 'x' : 's');
  }
  return lines;
}

}  // namespace

absl::StatusOr<SetFormat> ParseSetFormat(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return InvalidArgument("match format: must be rv1, rv1_nosched, rlite, jgf or simple, is \"{}\"",
                         name);
}

std::string WriteResourceSet(const ResourceGraph& graph, const Holding& holding, SetFormat format) {
  switch (format) {
    case SetFormat::kJgf:
      return GraphOf(graph, holding).dump();
    case SetFormat::kRlite:
      return RliteOf(RanksOf(graph, holding)).dump();
    case SetFormat::kSimple:
      return LinesOf(graph, holding);
    case SetFormat::kRv1NoSched:
    case SetFormat::kRv1:
      break;
  }
  ordered_json result = {{"version", 1}, {"execution", ExecutionOf(graph, holding)}};
  if (format == SetFormat::kRv1) result["scheduling"] = GraphOf(graph, holding);
  return result.dump();
}

}  // namespace fluxqueue::graph
