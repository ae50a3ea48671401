#include "tools/fluxqueue/node_map.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

// Queues, and their colours by their order.
using Queues = std::map<std::string, size_t>;  // nodes of each

Colour QueueColour(const Queues& queues, const std::string& queue) {
  return ColourOf(static_cast<size_t>(std::distance(queues.begin(), queues.find(queue))));
}

std::string CellOf(const NodeView& node, const Queues& queues, bool colour) {
  static constexpr const char* kFill[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (node.state == "not ready" || node.state == "gone") return Paint("x", Colour::kRed, colour);
  const double use = std::clamp(node.Use(), 0.0, 1.0);
  const bool nobody = node.queue.empty();
  if (nobody && node.state == "cordoned") return Paint("=", Colour::kYellow, colour);
  if (nobody && node.foreign.empty()) return Paint("·", Colour::kDim, colour);
  const char* fill = kFill[std::min<size_t>(7, static_cast<size_t>(use * 8))];
  return Paint(fill, nobody ? Colour::kDim : QueueColour(queues, node.queue), colour);
}

std::string Legend(const std::vector<NodeView>& nodes, const Queues& queues, bool colour) {
  std::map<std::string, size_t> states;
  size_t empty = 0;
  size_t others = 0;
  for (const NodeView& node : nodes) {
    ++states[node.state];
    if (node.queue.empty() && node.state == "up") ++(node.foreign.empty() ? empty : others);
  }
  std::vector<std::string> parts;
  for (const auto& [queue, count] : queues) {
    parts.push_back(
        fmt::format("{} {} {}", Paint("█", QueueColour(queues, queue), colour), queue, count));
  }
  const auto add = [&](const char* cell, Colour look, const char* what, size_t count) {
    if (count > 0) parts.push_back(fmt::format("{} {} {}", Paint(cell, look, colour), what, count));
  };
  add("▂", Colour::kDim, "others only", others);
  add("·", Colour::kDim, "empty", empty);
  add("=", Colour::kYellow, "cordoned", states["cordoned"]);
  add("x", Colour::kRed, "not ready", states["not ready"] + states["gone"]);
  return fmt::format("{} nodes: {}\n", nodes.size(), fmt::join(parts, "   "));
}

std::string PlaceText(const NodeView& node) {
  return fmt::format("{}", fmt::join(node.place, "/"));
}

}  // namespace

std::string DrawNodeMap(const std::vector<NodeView>& nodes, size_t width, bool colour) {
  Queues queues;
  std::map<std::string, std::vector<const NodeView*>> places;
  size_t label = 0;
  for (const NodeView& node : nodes) {
    if (!node.queue.empty()) ++queues[node.queue];
    const std::string place = PlaceText(node);
    places[place].push_back(&node);
    label = std::max(label, place.size());
  }
  if (label > 0) label += 2;
  const size_t cells = std::max<size_t>(10, width > label ? width - label : 0);
  std::string text;
  for (const auto& [place, members] : places) {
    for (size_t i = 0; i < members.size(); ++i) {
      if (i % cells == 0) {
        if (i > 0) text += '\n';
        text += fmt::format("{:<{}}", i == 0 ? place : "", label);
      }
      text += CellOf(*members[i], queues, colour);
    }
    text += '\n';
  }
  return text + Legend(nodes, queues, colour);
}

}  // namespace fluxqueue::cli
