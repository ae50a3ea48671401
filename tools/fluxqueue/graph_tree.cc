#include "tools/fluxqueue/graph_tree.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

constexpr size_t kBar = 20;

// What is used and what there is, by resource, of all nodes below.
void Sum(const GraphTree& tree, NodeView* sum) {
  for (const NodeView& node : tree.nodes) {
    for (const auto& [resource, amount] : node.allocatable) sum->allocatable[resource] += amount;
    for (const auto& [resource, amount] : node.ours) sum->ours[resource] += amount;
    for (const auto& [resource, amount] : node.foreign) sum->foreign[resource] += amount;
  }
  for (const auto& [name, below] : tree.below) Sum(below, sum);
}

std::string Bar(double use, bool colour) {
  const auto full = static_cast<size_t>(std::lround(std::clamp(use, 0.0, 1.0) * kBar));
  std::string bar;
  for (size_t i = 0; i < full; ++i) bar += "█";
  std::string rest;
  for (size_t i = full; i < kBar; ++i) rest += "░";
  return Paint(bar, Colour::kGreen, colour) + Paint(rest, Colour::kDim, colour);
}

std::string UseText(double use) {
  return fmt::format("{:3.0f} %", use * 100);
}

// A line of the tree: what stands left of it, its name, its use.
struct Row {
  std::string branch;
  std::string name;
  double use = 0;
  std::string note;
};

void AddRows(const GraphTree& tree, bool all, const std::string& indent, std::vector<Row>* rows) {
  size_t left = tree.below.size() + (all ? tree.nodes.size() : 0);
  const auto add = [&](const std::string& name, double use, const std::string& note) {
    --left;
    rows->push_back({indent + (left > 0 ? "├─ " : "└─ "), name, use, note});
  };
  for (const auto& [name, below] : tree.below) {
    add(name, below.Use(), fmt::format("{} nodes", below.CountNodes()));
    AddRows(below, all, indent + (left > 0 ? "│  " : "   "), rows);
  }
  if (!all) return;
  for (const NodeView& node : tree.nodes) {
    add(node.name, node.Use(), node.state == "up" ? node.queue : node.state);
  }
}

size_t Characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Red where it is full.
std::string Fill(double use) {
  const double full = std::clamp(use, 0.0, 1.0);
  return fmt::format("#{:02x}{:02x}80",
                     static_cast<int>(255 - 25 * (1 - full)),
                     static_cast<int>(240 - 150 * full));
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

void AddDot(const GraphTree& tree, const std::string& id, std::string* out) {
  *out += fmt::format("  \"{}\" [label=\"{}\\n{} nodes, {}\" style=filled fillcolor=\"{}\"];\n",
                      id,
                      tree.name,
                      tree.CountNodes(),
                      UseText(tree.Use()),
                      Fill(tree.Use()));
  for (const auto& [name, below] : tree.below) {
    *out += fmt::format("  \"{0}\" -> \"{0}/{1}\";\n", id, name);
    AddDot(below, fmt::format("{}/{}", id, name), out);
  }
  for (const NodeView& node : tree.nodes) {
    *out += fmt::format(
        "  \"{0}\" -> \"{0}/{1}\";\n  \"{0}/{1}\" [label=\"{1}\\n{2}\" style=filled "
        "fillcolor=\"{3}\"];\n",
        id,
        node.name,
        node.state == "up" ? UseText(node.Use()) : node.state,
        Fill(node.Use()));
  }
}

// Boxes in boxes: a title, the levels below from top to bottom, the nodes as squares.
class Svg {
 public:
  void Add(const GraphTree& tree) { y_ += Draw(tree, kGap, y_, kWidth - 2 * kGap) + kGap; }

  std::string Finish() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n{}</svg>\n",
        kWidth,
        y_,
        body_);
  }

 private:
  static constexpr int kWidth = 960;
  static constexpr int kGap = 8;
  static constexpr int kTitle = 18;
  static constexpr int kSquare = 14;

  // Returns the height.
  int Draw(const GraphTree& tree, int x, int y, int width) {
    const std::string title =
        fmt::format("{}: {} nodes, {}", tree.name, tree.CountNodes(), UseText(tree.Use()));
    int at = y + kTitle + kGap;
    for (const auto& [name, below] : tree.below) {
      at += Draw(below, x + kGap, at, width - 2 * kGap) + kGap;
    }
    const int columns = std::max(1, (width - 2 * kGap) / (kSquare + 2));
    const auto nodes = static_cast<int>(tree.nodes.size());
    for (int i = 0; i < nodes; ++i) {
      const NodeView& node = tree.nodes[static_cast<size_t>(i)];
      body_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"{}\">"
          "<title>{}: {}, {}</title></rect>\n",
          x + kGap + i % columns * (kSquare + 2),
          at + i / columns * (kSquare + 2),
          kSquare,
          kSquare,
          Fill(node.Use()),
          node.state == "up" ? "#666" : "#c00",
          Escaped(node.name),
          node.state,
          UseText(node.Use()));
    }
    if (nodes > 0) at += (nodes + columns - 1) / columns * (kSquare + 2) + kGap;
    body_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        x,
        y,
        width,
        at - y,
        x + kGap,
        y + kTitle - 3,
        Escaped(title));
    return at - y;
  }

  int y_ = kGap;
  std::string body_;
};

}  // namespace

size_t GraphTree::CountNodes() const {
  size_t count = nodes.size();
  for (const auto& [level, tree] : below) count += tree.CountNodes();
  return count;
}

double GraphTree::Use() const {
  NodeView sum;
  Sum(*this, &sum);
  return sum.Use();
}

std::vector<GraphTree> BuildTrees(const std::vector<NodeView>& nodes) {
  std::map<std::string, GraphTree> pools;
  for (const NodeView& node : nodes) {
    GraphTree* at = &pools[node.pool];
    at->name = "pool " + node.pool;
    for (const std::string& level : node.place) {
      at = &at->below[level];
      at->name = level;
    }
    at->nodes.push_back(node);
  }
  std::vector<GraphTree> trees;
  trees.reserve(pools.size());
  for (auto& [name, tree] : pools) trees.push_back(std::move(tree));
  return trees;
}

std::string TreeText(const GraphTree& tree, bool all, bool colour) {
  std::vector<Row> rows = {{"", tree.name, tree.Use(), fmt::format("{} nodes", tree.CountNodes())}};
  AddRows(tree, all, "", &rows);
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, Characters(row.branch + row.name));
  std::string text;
  for (const Row& row : rows) {
    const std::string name = row.branch + row.name;
    text += fmt::format("{}{}  {} {}{}\n",
                        name,
                        std::string(width - Characters(name), ' '),
                        Bar(row.use, colour),
                        UseText(row.use),
                        row.note.empty() ? "" : "  " + row.note);
  }
  return text;
}

std::string TreeDot(const std::vector<GraphTree>& trees) {
  std::string text = "digraph cluster {\n  rankdir=LR;\n  node [shape=box];\n";
  for (const GraphTree& tree : trees) AddDot(tree, tree.name, &text);
  return text + "}\n";
}

std::string TreeSvg(const std::vector<GraphTree>& trees) {
  Svg svg;
  for (const GraphTree& tree : trees) svg.Add(tree);
  return svg.Finish();
}

nlohmann::json TreeJson(const GraphTree& tree) {
  nlohmann::json result = {{"name", tree.name}, {"nodes", tree.CountNodes()}, {"use", tree.Use()}};
  for (const auto& [name, below] : tree.below) result["below"].push_back(TreeJson(below));
  for (const NodeView& node : tree.nodes) {
    result["below"].push_back(
        {{"name", node.name}, {"state", node.state}, {"queue", node.queue}, {"use", node.Use()}});
  }
  return result;
}

}  // namespace fluxqueue::cli
