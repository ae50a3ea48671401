#include "libs/graph/resource_set_reader.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/hostlist.h"
#include "libs/graph/idset.h"
#include "libs/graph/jgf.h"
#include "libs/graph/json_check.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;
// Of ranks and ids: what the graph itself allows (jgf.h).
constexpr int64_t kMaxNumber = INT32_MAX;

using Ids = std::vector<int64_t>;  // sorted, each once

// One entry of R_lite: on each of the ranks, these ids of each type.
struct Entry {
  std::string place;
  Ids ranks;
  std::map<std::string, Ids> children;
};

absl::StatusOr<const json*> Member(const json& object, const char* key, const std::string& place) {
  if (!object.is_object()) {
    return InvalidArgument("{}: must be an object, is {}", place, object.type_name());
  }
  const auto found = object.find(key);
  if (found == object.end()) return InvalidArgument("{}.{}: is missing", place, key);
  return &*found;
}

absl::StatusOr<Ids> ReadIdset(const json& value, const std::string& place) {
  if (!value.is_string()) {
    return InvalidArgument(
        "{}: must be a string such as \"0-3,7\", is {}", place, value.type_name());
  }
  const auto& text = value.get_ref<const std::string&>();
  std::vector<IdRange> ranges;
  RETURN_IF_ERROR(Annotate(ParseIdset(text, kMaxVertices, &ranges), place));
  Ids ids;
  for (const auto& [first, last] : ranges) {
    if (last > kMaxNumber || last - first >= static_cast<int64_t>(kMaxVertices - ids.size())) {
      return InvalidArgument("{}: must be at most {} numbers of at most {}, is \"{}\"",
                             place,
                             kMaxVertices,
                             kMaxNumber,
                             text);
    }
    for (int64_t id = first; id <= last; ++id) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
    return InvalidArgument("{}: a number stands twice in \"{}\"", place, text);
  }
  return ids;
}

absl::StatusOr<Entry> ReadEntry(const json& value, std::string place) {
  Entry entry;
  ASSIGN_OR_RETURN(const json* ranks, Member(value, "rank", place));
  ASSIGN_OR_RETURN(entry.ranks, ReadIdset(*ranks, place + ".rank"));
  ASSIGN_OR_RETURN(const json* children, Member(value, "children", place));
  if (!children->is_object()) {
    return InvalidArgument(
        "{}.children: must be an object of types and ids, is {}", place, children->type_name());
  }
  for (const auto& [type, ids] : children->items()) {
    if (type.empty()) return InvalidArgument("{}.children: a type without a name", place);
    ASSIGN_OR_RETURN(entry.children[type],
                     ReadIdset(ids, fmt::format("{}.children.{}", place, type)));
  }
  entry.place = std::move(place);
  return entry;
}

absl::StatusOr<std::vector<Entry>> ReadRlite(const json& execution) {
  ASSIGN_OR_RETURN(const json* lite, Member(execution, "R_lite", "execution"));
  if (!lite->is_array()) {
    return InvalidArgument("execution.R_lite: must be a list, is {}", lite->type_name());
  }
  std::vector<Entry> entries;
  size_t named = 0;
  for (size_t i = 0; i < lite->size(); ++i) {
    ASSIGN_OR_RETURN(Entry entry, ReadEntry((*lite)[i], fmt::format("execution.R_lite[{}]", i)));
    size_t each = 1;
    for (const auto& [type, ids] : entry.children) each += ids.size();
    // Neither factor is more than a few times kMaxVertices.
    named += each * entry.ranks.size();
    if (named > kMaxVertices) {
      return InvalidArgument("execution.R_lite: names more than {} resources", kMaxVertices);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

// `version` has been checked in what this returns.
absl::StatusOr<json> ReadTree(std::string_view text) {
  if (text.size() > kMaxResourceSetBytes) {
    return InvalidArgument(
        "R: has {} bytes, at most {} are allowed", text.size(), kMaxResourceSetBytes);
  }
  RETURN_IF_ERROR(Annotate(CheckJson(text, {.depth = kMaxDepth}), "R"));
  // It has parsed once: neither an exception nor a discarded value can come of it.
  json tree = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!tree.is_object()) return InvalidArgument("R: must be an object, is {}", tree.type_name());
  if (tree.contains("graph")) return tree;
  ASSIGN_OR_RETURN(const json* version, Member(tree, "version", "R"));
  if (*version != 1) return InvalidArgument("version: must be 1, is {}", version->dump());
  RETURN_IF_ERROR(Member(tree, "execution", "R").status());
  return tree;
}

absl::StatusOr<int64_t> ReadTime(const json& execution, const char* key) {
  const auto found = execution.find(key);
  if (found == execution.end()) return 0;
  // Flux writes fractions of seconds.
  if (!found->is_number() || found->get<double>() < 0 ||
      found->get<double>() > static_cast<double>(kForever)) {
    return InvalidArgument("execution.{}: must be a number of seconds from 0 to {}, is {}",
                           key,
                           kForever,
                           found->dump());
  }
  return found->get<int64_t>();
}

absl::Status ReadTimes(const json& execution, Holding* holding) {
  ASSIGN_OR_RETURN(holding->at_s, ReadTime(execution, "starttime"));
  ASSIGN_OR_RETURN(int64_t expiration, ReadTime(execution, "expiration"));
  if (expiration == 0) expiration = kForever;
  if (expiration <= holding->at_s) {
    return InvalidArgument("execution.expiration: must be later than starttime ({}), is {}",
                           holding->at_s,
                           expiration);
  }
  holding->duration_s = expiration - holding->at_s;
  holding->reserved = holding->at_s > 0;
  return absl::OkStatus();
}

// Brings what R names into the form of a holding: with the way from the root, children before their
// parents.
class Assembly {
 public:
  explicit Assembly(const ResourceGraph& graph) : graph_(graph) {}

  // False when the vertex is there already.
  bool Add(VertexId v, int64_t amount, bool exclusive) {
    return held_.emplace(v, HeldVertex{v, kNoEdge, amount, exclusive}).second;
  }

  HeldVertices Take() {
    std::vector<VertexId> open;
    for (const auto& [v, held] : held_) open.push_back(v);
    for (size_t i = 0; i < open.size(); ++i) {
      const VertexId v = open[i];
      const EdgeId edge = EdgeTo(v);
      held_.at(v).edge = edge;
      if (edge == kNoEdge) continue;
      const VertexId parent = graph_.edge(edge).source;
      below_[parent].push_back(v);
      // On the way: led through, not held.
      if (Add(parent, graph_.vertex(parent).size, false)) open.push_back(parent);
    }
    HeldVertices order;
    if (!held_.empty()) Append(graph_.root(), &order);
    return order;
  }

 private:
  // From a parent that R names, if one of several is.
  EdgeId EdgeTo(VertexId v) const {
    EdgeId chosen = kNoEdge;
    for (const EdgeId e : graph_.vertex(v).in) {
      if (graph_.edge(e).subsystem != ResourceGraph::kContainment) continue;
      if (held_.contains(graph_.edge(e).source)) return e;
      if (chosen == kNoEdge) chosen = e;
    }
    return chosen;
  }

  void Append(VertexId v, HeldVertices* order) const {
    const auto below = below_.find(v);
    if (below != below_.end()) {
      for (const VertexId child : below->second) Append(child, order);
    }
    order->push_back(held_.at(v));
  }

  const ResourceGraph& graph_;
  std::map<VertexId, HeldVertex> held_;
  std::map<VertexId, std::vector<VertexId>> below_;
};

absl::Status AddJgf(const json& part, const ResourceGraph& graph, Assembly* assembly) {
  ASSIGN_OR_RETURN(const std::vector<VertexId> vertices, FindJgfVertices(part.dump(), graph));
  const json& nodes = part.at("graph").at("nodes");
  for (size_t i = 0; i < vertices.size(); ++i) {
    const std::string place = fmt::format("graph.nodes[{}]", i);
    const json& metadata = nodes[i].at("metadata");
    const auto flag = metadata.find("exclusive");
    if (flag != metadata.end() && !flag->is_boolean()) {
      return InvalidArgument(
          "{}.metadata.exclusive: must be true or false, is {}", place, flag->dump());
    }
    const bool exclusive = flag != metadata.end() && flag->get<bool>();
    // Of what is divisible, a part; else its size.
    const int64_t amount = metadata.value("size", int64_t{1});
    if (!assembly->Add(vertices[i], amount, exclusive)) {
      return InvalidArgument("{}: \"{}\" stands twice", place, graph.PathOf(vertices[i]));
    }
  }
  return absl::OkStatus();
}

// The nodes of a graph by their rank.
absl::StatusOr<std::map<int64_t, VertexId>> NodesByRank(const ResourceGraph& graph) {
  std::map<int64_t, VertexId> nodes;
  for (const VertexId v : graph.OfType(graph.types().Find("node"))) {
    const auto [other, added] = nodes.emplace(graph.vertex(v).rank, v);
    if (added || graph.vertex(v).rank < 0) continue;
    return InvalidArgument(
        "rank {} is that of \"{}\" and of \"{}\": give R with its scheduling key",
        graph.vertex(v).rank,
        graph.PathOf(other->second),
        graph.PathOf(v));
  }
  return nodes;
}

absl::Status AddChildren(const Entry& entry,
                         VertexId node,
                         const ResourceGraph& graph,
                         Assembly* assembly) {
  std::map<std::string, std::map<int64_t, VertexId>> there;
  for (const VertexId v : graph.SubtreeOf(node)) {
    const std::string& type = graph.TypeName(v);
    if (!entry.children.contains(type)) continue;
    if (!there[type].emplace(graph.vertex(v).id, v).second) {
      return InvalidArgument("{}: \"{}\" has several {} {}: give R with its scheduling key",
                             entry.place,
                             graph.PathOf(node),
                             type,
                             graph.vertex(v).id);
    }
  }
  for (const auto& [type, ids] : entry.children) {
    for (const int64_t id : ids) {
      const auto found = there[type].find(id);
      if (found == there[type].end()) {
        return InvalidArgument(
            "{}.children.{}: \"{}\" has no {} {}", entry.place, type, graph.PathOf(node), type, id);
      }
      if (!assembly->Add(found->second, graph.vertex(found->second).size, true)) {
        return InvalidArgument("{}.children.{}: {} {} of \"{}\" stands twice",
                               entry.place,
                               type,
                               type,
                               id,
                               graph.PathOf(node));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status AddRlite(const json& execution, const ResourceGraph& graph, Assembly* assembly) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadRlite(execution));
  ASSIGN_OR_RETURN(const auto nodes, NodesByRank(graph));
  for (const Entry& entry : entries) {
    for (const int64_t rank : entry.ranks) {
      const auto node = nodes.find(rank);
      if (node == nodes.end()) {
        return InvalidArgument("{}.rank: no node of the graph has rank {}", entry.place, rank);
      }
      RETURN_IF_ERROR(AddChildren(entry, node->second, graph, assembly));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadNodelist(const json& execution) {
  ASSIGN_OR_RETURN(const json* list, Member(execution, "nodelist", "execution"));
  if (!list->is_array()) {
    return InvalidArgument("execution.nodelist: must be a list of hostlists, is {}",
                           list->type_name());
  }
  std::vector<std::string> hosts;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string place = fmt::format("execution.nodelist[{}]", i);
    const json& text = (*list)[i];
    if (!text.is_string()) {
      return InvalidArgument(
          "{}: must be a hostlist such as \"node[0-3]\", is {}", place, text.type_name());
    }
    RETURN_IF_ERROR(
        Annotate(ExpandHostlist(text.get_ref<const std::string&>(), kMaxVertices, &hosts), place));
  }
  return hosts;
}

absl::StatusOr<std::map<int64_t, Labels>> ReadProperties(const json& execution) {
  std::map<int64_t, Labels> properties;
  const auto found = execution.find("properties");
  if (found == execution.end()) return properties;
  if (!found->is_object()) {
    return InvalidArgument("execution.properties: must be an object of idsets, is {}",
                           found->type_name());
  }
  for (const auto& [key, value] : found->items()) {
    ASSIGN_OR_RETURN(const Ids ranks,
                     ReadIdset(value, fmt::format("execution.properties.{}", key)));
    // In the order of the keys: Labels are sorted.
    for (const int64_t rank : ranks) properties[rank].emplace_back(key, "");
  }
  return properties;
}

// The graph of `rv1exec`: vertices are numbered as they come.
class GraphWriter {
 public:
  VertexId AddRoot() {
    Vertex root;
    root.basename = "cluster";
    root.name = "cluster0";
    root.paths.emplace_back(ResourceGraph::kContainment, "/cluster0");
    // The first of all: its path is not taken.
    return *Add("cluster", std::move(root));
  }

  // `name` is the basename and the number.
  absl::StatusOr<VertexId> AddBelow(VertexId parent, const std::string& type, Vertex vertex) {
    if (vertex.name.find('/') != std::string::npos) {
      return InvalidArgument("\"{}\" has a \"/\" in its name", vertex.name);
    }
    vertex.paths.emplace_back(ResourceGraph::kContainment,
                              fmt::format("{}/{}", graph_.PathOf(parent), vertex.name));
    ASSIGN_OR_RETURN(const VertexId v, Add(type, std::move(vertex)));
    graph_.AddEdge(parent, v, ResourceGraph::kContainment);
    return v;
  }

  ResourceGraph Take() { return std::move(graph_); }

 private:
  absl::StatusOr<VertexId> Add(const std::string& type, Vertex vertex) {
    vertex.type = graph_.InternType(type);
    vertex.uniq_id = static_cast<int64_t>(graph_.vertices().size());
    return graph_.AddVertex(std::move(vertex));
  }

  ResourceGraph graph_;
};

// What the ranks are called and have.
struct Naming {
  std::map<int64_t, std::string> hosts;
  std::map<int64_t, Labels> properties;
};

absl::StatusOr<Naming> ReadNaming(const json& execution, const std::vector<Entry>& entries) {
  std::set<int64_t> ranks;
  for (const Entry& entry : entries) ranks.insert(entry.ranks.begin(), entry.ranks.end());
  ASSIGN_OR_RETURN(std::vector<std::string> hosts, ReadNodelist(execution));
  if (hosts.size() != ranks.size()) {
    return InvalidArgument(
        "execution.nodelist: must name as many nodes as there are ranks ({}), "
        "names {}",
        ranks.size(),
        hosts.size());
  }
  Naming naming;
  size_t next = 0;
  for (const int64_t rank : ranks) naming.hosts[rank] = std::move(hosts[next++]);
  ASSIGN_OR_RETURN(naming.properties, ReadProperties(execution));
  return naming;
}

// "node12" is node 12; a name without a number has its rank as id.
Vertex NodeOf(int64_t rank, const Naming& naming) {
  Vertex vertex;
  vertex.rank = rank;
  vertex.name = naming.hosts.at(rank);
  const size_t digits = vertex.name.find_last_not_of("0123456789") + 1;
  vertex.basename = vertex.name.substr(0, digits);
  const char* end = vertex.name.data() + vertex.name.size();
  const auto number = std::from_chars(vertex.name.data() + digits, end, vertex.id);
  if (number.ec != std::errc() || vertex.id > kMaxNumber) vertex.id = rank;
  if (const auto own = naming.properties.find(rank); own != naming.properties.end()) {
    vertex.properties = own->second;
  }
  return vertex;
}

absl::Status AddNode(const Entry& entry, Vertex vertex, VertexId root, GraphWriter* writer) {
  const int64_t rank = vertex.rank;
  ASSIGN_OR_RETURN(const VertexId node, writer->AddBelow(root, "node", std::move(vertex)));
  for (const auto& [type, ids] : entry.children) {
    for (const int64_t id : ids) {
      Vertex child;
      child.basename = type;
      child.name = fmt::format("{}{}", type, id);
      child.id = id;
      child.rank = rank;
      RETURN_IF_ERROR(writer->AddBelow(node, type, std::move(child)).status());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResourceSet> ReadResourceSet(std::string_view text, const ResourceGraph& graph) {
  ASSIGN_OR_RETURN(const json tree, ReadTree(text));
  ResourceSet set;
  set.holding.duration_s = kForever;
  Assembly assembly(graph);
  if (tree.contains("graph")) {
    set.by_vertices = true;
    RETURN_IF_ERROR(AddJgf(tree, graph, &assembly));
  } else {
    const json& execution = tree.at("execution");
    RETURN_IF_ERROR(Member(execution, "R_lite", "execution").status());
    RETURN_IF_ERROR(ReadTimes(execution, &set.holding));
    const auto scheduling = tree.find("scheduling");
    set.by_vertices = scheduling != tree.end();
    if (set.by_vertices) {
      RETURN_IF_ERROR(Annotate(AddJgf(*scheduling, graph, &assembly), "scheduling"));
    } else {
      RETURN_IF_ERROR(AddRlite(execution, graph, &assembly));
    }
  }
  set.holding.vertices = assembly.Take();
  const auto& vertices = set.holding.vertices;
  const bool any = std::any_of(
      vertices.begin(), vertices.end(), [](const HeldVertex& held) { return held.exclusive; });
  if (!any) return InvalidArgument("R: names nothing that a job could hold");
  return set;
}

absl::StatusOr<ResourceGraph> ReadResourceSetAsGraph(std::string_view text) {
  ASSIGN_OR_RETURN(const json tree, ReadTree(text));
  ASSIGN_OR_RETURN(const json* execution, Member(tree, "execution", "R"));
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadRlite(*execution));
  ASSIGN_OR_RETURN(const Naming naming, ReadNaming(*execution, entries));
  GraphWriter writer;
  const VertexId root = writer.AddRoot();
  for (const Entry& entry : entries) {
    for (const int64_t rank : entry.ranks) {
      // A rank in two entries, or a name that stands twice.
      RETURN_IF_ERROR(Annotate(AddNode(entry, NodeOf(rank, naming), root, &writer),
                               fmt::format("{}: rank {}", entry.place, rank)));
    }
  }
  return writer.Take();
}

}  // namespace fluxqueue::graph
