#include "tools/fluxqueue/match/holding_drawing.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "libs/graph/hostlist.h"

namespace fluxqueue::cli {
namespace {

using graph::EdgeId;
using graph::HeldVertex;
using graph::Holding;
using graph::ResourceGraph;
using graph::Vertex;
using graph::VertexId;
using Lines = std::vector<std::string>;

class Drawer {
 public:
  Drawer(const ResourceGraph& graph, const Holding& holding) : graph_(graph) {
    for (const HeldVertex& held : holding.vertices) held_.emplace(held.vertex, held);
  }

  std::string Draw() {
    const Twins root = TwinsOf(graph_.root());
    std::string drawing = TitleOf(root) + "\n";
    for (const std::string& line : root.below) drawing += line + "\n";
    return drawing;
  }

 private:
  // Siblings that are drawn alike.
  struct Twins {
    std::vector<std::string> names;
    std::string amount;
    std::string mark;
    Lines below;
  };

  static std::string TitleOf(const Twins& twins) {
    std::string title = graph::FormatHostlist(twins.names);
    if (!twins.amount.empty()) {
      title += fmt::format(": {}{}", twins.amount, twins.names.size() > 1 ? " each" : "");
    }
    return title + twins.mark;
  }

  Twins TwinsOf(VertexId v) {
    const Vertex& vertex = graph_.vertex(v);
    const HeldVertex& held = held_.at(v);
    if (!drawn_.insert(v).second) return {{vertex.name}, "", " (as above)", {}};
    Lines below = LinesBelow(v);
    const bool leaf = below.empty();
    return {{vertex.name},
            leaf || held.exclusive ? AmountOf(vertex, held) : "",
            !leaf && held.exclusive ? " (exclusive)" : "",
            std::move(below)};
  }

  static std::string AmountOf(const Vertex& vertex, const HeldVertex& held) {
    const std::string unit = vertex.unit.empty() ? "" : " " + vertex.unit;
    if (held.amount < vertex.size) return fmt::format("{} of {}{}", held.amount, vertex.size, unit);
    if (vertex.size == 1 && unit.empty()) return {};
    return fmt::format("{}{}", vertex.size, unit);
  }

  // By type and id.
  std::vector<VertexId> ChildrenOf(VertexId v) const {
    std::vector<VertexId> children;
    for (const EdgeId e : graph_.vertex(v).out) {
      const graph::Edge& edge = graph_.edge(e);
      if (edge.subsystem != ResourceGraph::kContainment || !held_.contains(edge.target)) continue;
      children.push_back(edge.target);
    }
    const auto key = [this](VertexId child) {
      const Vertex& vertex = graph_.vertex(child);
      return std::tie(vertex.basename, vertex.id, vertex.name);
    };
    std::sort(children.begin(), children.end(), [&key](VertexId a, VertexId b) {
      return key(a) < key(b);
    });
    return children;
  }

  Lines LinesBelow(VertexId v) {
    std::vector<Twins> all;
    std::map<std::tuple<std::string, std::string, std::string, Lines>, size_t> alike;
    for (const VertexId child : ChildrenOf(v)) {
      Twins twins = TwinsOf(child);
      const auto [found, added] = alike.try_emplace(
          {graph_.vertex(child).basename, twins.amount, twins.mark, twins.below}, all.size());
      if (added) {
        all.push_back(std::move(twins));
      } else {
        all[found->second].names.push_back(graph_.vertex(child).name);
      }
    }
    Lines lines;
    for (const Twins& twins : all) {
      const bool last = &twins == &all.back();
      lines.push_back((last ? "└─ " : "├─ ") + TitleOf(twins));
      for (const std::string& line : twins.below) lines.push_back((last ? "   " : "│  ") + line);
    }
    return lines;
  }

  const ResourceGraph& graph_;
  std::unordered_map<VertexId, HeldVertex> held_;
  std::unordered_set<VertexId> drawn_;
};

}  // namespace

std::string DrawHolding(const graph::ResourceGraph& graph, const graph::Holding& holding) {
  return Drawer(graph, holding).Draw();
}

}  // namespace fluxqueue::cli
