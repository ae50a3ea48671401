// A resource graph: vertices (cluster, rack, node, core …) and the edges between them, in one or
// more subsystems. It knows what there is and where, not what is held: see graph_state.h.
//
// The terms are Fluxion's, and so is the file format (jgf.h). Not thread-safe.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/graph/types.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph {

using VertexId = uint32_t;
using EdgeId = uint32_t;
using TypeId = uint32_t;
using SubsystemId = uint32_t;

inline constexpr EdgeId kNoEdge = UINT32_MAX;

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// Numbers for names, given in the order in which the names come.
class NameTable {
 public:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  // The number of the name, given now if it has none.
  uint32_t Intern(std::string_view name);
  // kUnknown when no such name ever came.
  uint32_t Find(std::string_view name) const;
  const std::string& operator[](uint32_t number) const { return names_[number]; }
  uint32_t size() const { return static_cast<uint32_t>(names_.size()); }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> numbers_;
};

struct Vertex {
  TypeId type = 0;
  std::string basename;
  std::string name;  // what hostlists name
  std::string unit;
  int64_t id = 0;       // the number that policies order by; at least -1
  int64_t uniq_id = 0;  // unique in the graph; not negative
  int64_t rank = -1;    // the broker rank of the node that it belongs to; -1: none
  int64_t size = 1;     // in `unit`
  bool up = true;
  bool divisible = false;  // amounts of it are taken (an extension); else it is taken whole
  Labels properties;       // sorted by key
  // Where it is in each subsystem, "/cluster0/rack1/node7". Several in `containment` (an extension)
  // when several vertices contain it: all of them reach it, and it counts once.
  std::vector<std::pair<SubsystemId, std::string>> paths;
  // In the order in which they were added.
  std::vector<EdgeId> out;
  std::vector<EdgeId> in;
  bool gone = false;  // taken out of the graph
};

struct Edge {
  VertexId source = 0;
  VertexId target = 0;
  SubsystemId subsystem = 0;
  bool gone = false;  // one of its ends was taken out
};

class ResourceGraph {
 public:
  // The subsystem that is traversed; always there.
  static constexpr SubsystemId kContainment = 0;
  // Levels below the root: walks are recursive.
  static constexpr uint32_t kMaxDepth = 64;
  // Ways from the root to all vertices together, for each vertex and edge that there is. A walk may
  // go every way, and where what is shared contains what is shared, their number grows
  // exponentially.
  static constexpr uint64_t kMaxWays = 64;

  ResourceGraph();

  TypeId InternType(std::string_view type) { return types_.Intern(type); }
  SubsystemId InternSubsystem(std::string_view name) { return subsystems_.Intern(name); }

  // FailedPrecondition when a path is taken, or it is a second root of a subsystem (a path of one
  // level).
  absl::StatusOr<VertexId> AddVertex(Vertex vertex);
  // REQUIRES: both vertices are in the graph.
  EdgeId AddEdge(VertexId source, VertexId target, SubsystemId subsystem);
  // Adds what `part` has and this graph does not: vertices by their paths, and the edges to and
  // from them. `part` passes Check(). FailedPrecondition, and nothing has changed, when the roots
  // differ or a vertex is there with another type, id, rank or size.
  absl::Status Merge(const ResourceGraph& part);
  // The vertex and all that hangs below it in containment and nowhere else, the top first.
  std::vector<VertexId> SubtreeOf(VertexId top) const;
  // Takes that out. The numbers are not given again. REQUIRES: not the root.
  void RemoveSubtree(VertexId top);

  // That there is a root, everything in `containment` hangs below it, at most kMaxDepth levels
  // deep and not in more than kMaxWays ways, and nothing contains itself.
  absl::Status Check() const;

  const NameTable& types() const { return types_; }
  const NameTable& subsystems() const { return subsystems_; }
  std::span<const Vertex> vertices() const { return vertices_; }
  std::span<const Edge> edges() const { return edges_; }
  const Vertex& vertex(VertexId v) const { return vertices_[v]; }
  const Edge& edge(EdgeId e) const { return edges_[e]; }
  const std::string& TypeName(VertexId v) const { return types_[vertices_[v].type]; }
  // The first in `containment`; empty when it has none there.
  std::string_view PathOf(VertexId v) const;
  // The vertices that contain it.
  std::vector<VertexId> ParentsOf(VertexId v) const;
  // Whether several vertices contain it.
  bool IsShared(VertexId v) const;
  // Whether that is so of any vertex.
  bool has_shared() const { return shared_ > 0; }

  // REQUIRES: Check() is OK.
  VertexId root() const { return *root_; }
  std::optional<VertexId> FindPath(std::string_view path) const;
  // In the order in which they were added.
  std::span<const VertexId> OfType(TypeId type) const;

  // A node's (an extension): what keeps jobs away that do not tolerate it.
  std::span<const Taint> TaintsOf(VertexId v) const;
  void SetTaints(VertexId v, std::vector<Taint> taints);

  void SetSize(VertexId v, int64_t size) { vertices_[v].size = size; }
  void SetUp(VertexId v, bool up) { vertices_[v].up = up; }
  void SetProperty(VertexId v, std::string key, std::string value);
  void SetProperties(VertexId v, Labels properties) {
    vertices_[v].properties = std::move(properties);
  }

 private:
  absl::Status CheckMerge(const ResourceGraph& part) const;
  absl::Status Add(const ResourceGraph& part);
  void Forget(VertexId v);
  void Detach(EdgeId e);

  NameTable types_;
  NameTable subsystems_;
  std::vector<Vertex> vertices_;
  std::vector<Edge> edges_;
  std::optional<VertexId> root_;
  std::unordered_map<VertexId, std::vector<Taint>> taints_;
  std::vector<uint32_t> parents_;  // how many edges in containment lead to each vertex
  uint32_t shared_ = 0;            // edges in containment beyond the first to a vertex
  std::vector<std::vector<VertexId>> by_type_;
  std::unordered_map<std::string, VertexId, TextHash, std::equal_to<>> by_path_;
};

}  // namespace fluxqueue::graph
