#include "libs/graph/jgf.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/json_check.h"
#include "libs/graph/json_items.h"
#include "libs/graph/shortened.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;
// Of sizes, ids and ranks: sums and scores made of them stay far from overflow.
constexpr uint64_t kMaxNumber = INT32_MAX;

absl::StatusOr<const json*> Member(const json& object, const char* key, const std::string& path) {
  if (!object.is_object()) {
    return InvalidArgument("{}: must be an object, is {}", path, object.type_name());
  }
  const auto found = object.find(key);
  if (found == object.end()) return InvalidArgument("{}.{}: is missing", path, key);
  return &*found;
}

absl::StatusOr<std::string> Text(const json& value, const std::string& path) {
  if (!value.is_string()) {
    return InvalidArgument("{}: must be a string, is {}", path, value.type_name());
  }
  return value.get<std::string>();
}

absl::Status ReadText(const json& object,
                      const char* key,
                      const std::string& path,
                      std::string* text) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absl::OkStatus();
  ASSIGN_OR_RETURN(*text, Text(*found, fmt::format("{}.{}", path, key)));
  return absl::OkStatus();
}

absl::Status ReadNumber(
    const json& object, const char* key, const std::string& path, int64_t least, int64_t* number) {
  const auto found = object.find(key);
  if (found == object.end()) return absl::OkStatus();
  const bool too_large = found->is_number_unsigned() && found->get<uint64_t>() > kMaxNumber;
  if (!found->is_number_integer() || too_large || found->get<int64_t>() < least) {
    return InvalidArgument("{}.{}: must be an integer from {} to {}, is {}",
                           path,
                           key,
                           least,
                           kMaxNumber,
                           found->dump());
  }
  *number = found->get<int64_t>();
  return absl::OkStatus();
}

std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// The number at the end of a name.
std::optional<int64_t> Suffix(std::string_view name) {
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  const auto number = WholeNumber(name.substr(begin));
  if (number.has_value() && *number > static_cast<int64_t>(kMaxNumber)) return std::nullopt;
  return number;
}

absl::Status ReadStatus(const json& metadata, const std::string& path, Vertex* vertex) {
  int64_t status = 0;
  RETURN_IF_ERROR(ReadNumber(metadata, "status", path, 0, &status));
  if (status > 1) {
    return InvalidArgument("{}.status: must be 0 (up) or 1 (down), is {}", path, status);
  }
  vertex->up = status == 0;
  return absl::OkStatus();
}

absl::Status ReadIds(const json& metadata,
                     const std::string& id,
                     const std::string& path,
                     Vertex* vertex) {
  constexpr int64_t kUnsaid = -2;
  vertex->uniq_id = -1;
  RETURN_IF_ERROR(ReadNumber(metadata, "uniq_id", path, -1, &vertex->uniq_id));
  if (vertex->uniq_id == -1) {
    const auto number = WholeNumber(id);
    if (!number.has_value() || *number < 0 || *number > static_cast<int64_t>(kMaxNumber)) {
      return InvalidArgument(
          "{}.uniq_id: is missing, and the vertex's id \"{}\" is no number to take instead",
          path,
          id);
    }
    vertex->uniq_id = *number;
  }
  vertex->id = kUnsaid;
  RETURN_IF_ERROR(ReadNumber(metadata, "id", path, kUnsaid, &vertex->id));
  if (vertex->id != kUnsaid) return absl::OkStatus();
  const bool is_node = metadata.at("type") == "node";
  vertex->id = (is_node ? Suffix(vertex->name) : std::nullopt).value_or(vertex->uniq_id);
  return absl::OkStatus();
}

absl::Status ReadDivisible(const json& metadata, const std::string& path, Vertex* vertex) {
  const auto divisible = metadata.find("divisible");
  if (divisible == metadata.end()) return absl::OkStatus();
  if (!divisible->is_boolean()) {
    return InvalidArgument("{}.divisible: must be true or false, is {}", path, divisible->dump());
  }
  vertex->divisible = divisible->get<bool>();
  return absl::OkStatus();
}

absl::Status ReadProperties(const json& metadata, const std::string& path, Vertex* vertex) {
  const auto properties = metadata.find("properties");
  if (properties == metadata.end() || properties->is_null()) return absl::OkStatus();
  if (!properties->is_object()) {
    return InvalidArgument(
        "{}.properties: must be an object of strings, is {}", path, properties->type_name());
  }
  for (const auto& [key, value] : properties->items()) {
    ASSIGN_OR_RETURN(std::string text, Text(value, fmt::format("{}.properties.{}", path, key)));
    vertex->properties.emplace_back(key, std::move(text));
  }
  std::sort(vertex->properties.begin(), vertex->properties.end());
  return absl::OkStatus();
}

absl::Status AddPath(const json& value,
                     const std::string& place,
                     SubsystemId subsystem,
                     Vertex* vertex) {
  ASSIGN_OR_RETURN(std::string text, Text(value, place));
  if (!text.starts_with('/') || text.size() < 2) {
    return InvalidArgument("{}: must begin with \"/\" and name a vertex, is \"{}\"", place, text);
  }
  vertex->paths.emplace_back(subsystem, std::move(text));
  return absl::OkStatus();
}

absl::Status ReadPaths(const json& metadata,
                       const std::string& path,
                       ResourceGraph* graph,
                       Vertex* vertex) {
  ASSIGN_OR_RETURN(const json* paths, Member(metadata, "paths", path));
  if (!paths->is_object() || paths->empty()) {
    return InvalidArgument("{}.paths: must be an object with a path for each subsystem", path);
  }
  for (const auto& [subsystem, value] : paths->items()) {
    const std::string place = fmt::format("{}.paths.{}", path, subsystem);
    const SubsystemId number = graph->InternSubsystem(subsystem);
    // One path, or (ours) a list of them.
    if (!value.is_array()) {
      RETURN_IF_ERROR(AddPath(value, place, number, vertex));
      continue;
    }
    if (value.empty()) return InvalidArgument("{}: is an empty list", place);
    for (size_t i = 0; i < value.size(); ++i) {
      RETURN_IF_ERROR(AddPath(value[i], fmt::format("{}[{}]", place, i), number, vertex));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> IdOf(const json& node, const std::string& place) {
  ASSIGN_OR_RETURN(const json* id, Member(node, "id", place));
  return Text(*id, place + ".id");
}

absl::StatusOr<Vertex> ReadVertex(const json& node,
                                  const std::string& id,
                                  const std::string& place,
                                  ResourceGraph* graph) {
  ASSIGN_OR_RETURN(const json* metadata, Member(node, "metadata", place));
  const std::string path = place + ".metadata";
  Vertex vertex;
  ASSIGN_OR_RETURN(const json* type, Member(*metadata, "type", path));
  ASSIGN_OR_RETURN(vertex.basename, Text(*type, path + ".type"));
  if (vertex.basename.empty()) return InvalidArgument("{}.type: is empty", path);
  vertex.type = graph->InternType(vertex.basename);
  RETURN_IF_ERROR(ReadText(*metadata, "basename", path, &vertex.basename));
  RETURN_IF_ERROR(ReadText(*metadata, "name", path, &vertex.name));
  RETURN_IF_ERROR(ReadText(*metadata, "unit", path, &vertex.unit));
  RETURN_IF_ERROR(ReadNumber(*metadata, "size", path, 0, &vertex.size));
  RETURN_IF_ERROR(ReadNumber(*metadata, "rank", path, -1, &vertex.rank));
  RETURN_IF_ERROR(ReadStatus(*metadata, path, &vertex));
  RETURN_IF_ERROR(ReadDivisible(*metadata, path, &vertex));
  RETURN_IF_ERROR(ReadIds(*metadata, id, path, &vertex));
  if (vertex.name.empty()) vertex.name = fmt::format("{}{}", vertex.basename, vertex.id);
  RETURN_IF_ERROR(ReadPaths(*metadata, path, graph, &vertex));
  RETURN_IF_ERROR(ReadProperties(*metadata, path, &vertex));
  return vertex;
}

class Reader {
 public:
  // As ReadJsonItem. Edges that come before the nodes are left for a second reading.
  absl::Status Read(std::string_view list, size_t index, const json& item) {
    const std::string place = fmt::format("graph.{}[{}]", list, index);
    if (list == "nodes") return ReadNode(item, place);
    if (graph_.vertices().empty()) {
      edges_came_first_ = true;
      return absl::OkStatus();
    }
    return ReadEdge(item, place);
  }

  bool edges_came_first() const { return edges_came_first_; }
  ResourceGraph Take() { return std::move(graph_); }

 private:
  absl::Status ReadNode(const json& node, const std::string& place) {
    ASSIGN_OR_RETURN(const std::string id, IdOf(node, place));
    ASSIGN_OR_RETURN(Vertex vertex, ReadVertex(node, id, place, &graph_));
    const int64_t uniq_id = vertex.uniq_id;
    const absl::StatusOr<VertexId> v = graph_.AddVertex(std::move(vertex));
    if (!v.ok()) return InvalidArgument("{}.metadata.paths: {}", place, Message(v.status()));
    if (!numbers_.emplace(id, *v).second) {
      return InvalidArgument("{}.id: \"{}\" stands twice", place, id);
    }
    if (!uniq_ids_.insert(uniq_id).second) {
      return InvalidArgument("{}.metadata.uniq_id: {} stands twice", place, uniq_id);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<VertexId> End(const json& edge, const char* key, const std::string& place) {
    ASSIGN_OR_RETURN(const json* value, Member(edge, key, place));
    ASSIGN_OR_RETURN(const std::string id, Text(*value, fmt::format("{}.{}", place, key)));
    const auto found = numbers_.find(id);
    if (found == numbers_.end()) {
      return InvalidArgument("{}.{}: there is no vertex \"{}\"", place, key, id);
    }
    return found->second;
  }

  absl::Status ReadEdge(const json& edge, const std::string& place) {
    ASSIGN_OR_RETURN(const VertexId source, End(edge, "source", place));
    ASSIGN_OR_RETURN(const VertexId target, End(edge, "target", place));
    SubsystemId subsystem = ResourceGraph::kContainment;
    const auto metadata = edge.find("metadata");
    if (metadata != edge.end() && metadata->is_object()) {
      std::string name;
      RETURN_IF_ERROR(ReadText(*metadata, "subsystem", place + ".metadata", &name));
      // Older writers: {"name": {"containment": "contains"}}.
      const auto names = metadata->find("name");
      if (name.empty() && names != metadata->end() && names->is_object() && !names->empty()) {
        name = names->items().begin().key();
      }
      if (!name.empty()) subsystem = graph_.InternSubsystem(name);
    }
    graph_.AddEdge(source, target, subsystem);
    return absl::OkStatus();
  }

  ResourceGraph graph_;
  std::unordered_map<std::string, VertexId> numbers_;
  std::unordered_set<int64_t> uniq_ids_;
  bool edges_came_first_ = false;
};

absl::Status CheckText(std::string_view text) {
  if (text.size() > kMaxJgfBytes) {
    return InvalidArgument("has {} bytes, at most {} are allowed", text.size(), kMaxJgfBytes);
  }
  return CheckJson(
      text,
      {.depth = kMaxDepth, .lists = {{"graph.nodes", kMaxVertices}, {"graph.edges", kMaxEdges}}});
}

// That what is around the items is as documented.
absl::Status CheckFrame(const json& frame, std::initializer_list<const char*> lists) {
  ASSIGN_OR_RETURN(const json* graph, Member(frame, "graph", "JGF"));
  for (const char* name : lists) {
    ASSIGN_OR_RETURN(const json* list, Member(*graph, name, "graph"));
    if (!list->is_array()) {
      return InvalidArgument("graph.{}: must be a list, is {}", name, list->type_name());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ResourceGraph> ReadGraph(std::string_view text) {
  RETURN_IF_ERROR(Annotate(CheckText(text), "JGF"));
  Reader reader;
  const ReadJsonItem read = [&reader](std::string_view list, size_t index, const json& item) {
    return reader.Read(list, index, item);
  };
  ASSIGN_OR_RETURN(const json frame, ReadJsonItems(text, {"graph", {"nodes", "edges"}}, read));
  RETURN_IF_ERROR(CheckFrame(frame, {"nodes", "edges"}));
  if (reader.edges_came_first()) {
    RETURN_IF_ERROR(ReadJsonItems(text, {"graph", {"edges"}}, read).status());
  }
  ResourceGraph graph = reader.Take();
  RETURN_IF_ERROR(Annotate(graph.Check(), "graph.edges"));
  return graph;
}

// The vertex of `graph` that `node` names. `names`: of the text's types and subsystems.
absl::StatusOr<VertexId> FindVertex(const json& node,
                                    const std::string& place,
                                    const ResourceGraph& graph,
                                    ResourceGraph* names) {
  ASSIGN_OR_RETURN(const std::string id, IdOf(node, place));
  ASSIGN_OR_RETURN(const Vertex named, ReadVertex(node, id, place, names));
  const std::string& path = named.paths.front().second;
  const auto v = graph.FindPath(path);
  if (!v.has_value()) return InvalidArgument("{}: the graph has no path \"{}\"", place, path);
  const Vertex& vertex = graph.vertex(*v);
  const bool is_share = vertex.divisible && named.size < vertex.size;
  const bool same = names->types()[named.type] == graph.TypeName(*v) &&
                    named.basename == vertex.basename && named.name == vertex.name &&
                    named.id == vertex.id && named.rank == vertex.rank &&
                    (named.size == vertex.size || is_share);
  if (same) return *v;
  return InvalidArgument(
      "{}: \"{}\" is not as it is in the graph (type, basename, name, id, rank, size)",
      place,
      path);
}

absl::StatusOr<std::vector<VertexId>> FindVertices(std::string_view text,
                                                   const ResourceGraph& graph) {
  RETURN_IF_ERROR(Annotate(CheckText(text), "JGF"));
  std::vector<VertexId> found;
  ResourceGraph names;
  const ReadJsonItem read = [&](std::string_view list, size_t index, const json& item) {
    const auto v = FindVertex(item, fmt::format("graph.{}[{}]", list, index), graph, &names);
    if (v.ok()) found.push_back(*v);
    return v.status();
  };
  ASSIGN_OR_RETURN(const json frame, ReadJsonItems(text, {"graph", {"nodes"}}, read));
  RETURN_IF_ERROR(CheckFrame(frame, {"nodes"}));
  return found;
}

}  // namespace

absl::StatusOr<ResourceGraph> ParseJgf(std::string_view text) {
  absl::StatusOr<ResourceGraph> graph = ReadGraph(text);
  if (!graph.ok()) return Shortened(graph.status());
  return graph;
}

absl::StatusOr<std::vector<VertexId>> FindJgfVertices(std::string_view text,
                                                      const ResourceGraph& graph) {
  absl::StatusOr<std::vector<VertexId>> vertices = FindVertices(text, graph);
  if (!vertices.ok()) return Shortened(vertices.status());
  return vertices;
}

}  // namespace fluxqueue::graph
