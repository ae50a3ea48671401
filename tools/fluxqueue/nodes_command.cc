#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/cluster_view.h"
#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/node_map.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/watch.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

json ToJson(const std::vector<NodeView>& nodes) {
  json result = json::array();
  for (const NodeView& node : nodes) {
    result.push_back({{"node", node.name},
                      {"pool", node.pool},
                      {"place", node.place},
                      {"up", node.state == "up"},
                      {"state", node.state},
                      {"queue", node.queue},
                      {"use", node.Use()},
                      {"allocatable", node.allocatable},
                      {"held", node.ours},
                      {"foreign", node.foreign},
                      {"jobs", node.jobs}});
  }
  return result;
}

std::string Upper(const std::string& resource) {
  if (resource == "cpu") return "CPU";
  if (resource == "memory") return "MEMORY";
  return resource == "pods" ? "PODS" : resource;
}

std::string NodeTable(const std::vector<NodeView>& nodes, bool colour) {
  const std::vector<std::string> resources = ResourcesOf(nodes);
  std::vector<std::string> header = {"NODE", "POOL", "STATE", "QUEUE", "JOBS"};
  for (const std::string& resource : resources) header.push_back(Upper(resource));
  Table table(std::move(header));
  for (const NodeView& node : nodes) {
    std::vector<Cell> row = {node.name,
                             node.pool,
                             {node.state, node.state == "up" ? Colour::kGreen : Colour::kYellow},
                             node.queue.empty() ? "-" : node.queue,
                             fmt::format("{}", node.jobs.size())};
    for (const std::string& resource : resources) row.emplace_back(ShareText(node, resource));
    table.Add(std::move(row));
  }
  return table.Render(colour) + "(held by our jobs + used by others / allocatable)\n";
}

absl::StatusOr<std::string> Text(const Context& context, postgres::Connection& connection) {
  ASSIGN_OR_RETURN(const std::vector<NodeView> nodes, ReadClusterView(connection));
  if (context.structured()) return context.Structured(ToJson(nodes));
  if (nodes.empty()) return "no nodes: cleanup tells of them when it has listed the cluster\n";
  return context.wide() ? NodeTable(nodes, context.colour)
                        : DrawNodeMap(nodes, context.width, context.colour);
}

absl::StatusOr<int> Run(const Context& context, const WatchOptions& watch) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Connection connection(PostgresOptions(config.dsn));
  return Present(context, watch, [&](const Context& view) { return Text(view, connection); });
}

}  // namespace

void RegisterNodes(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand(
      "nodes", "Draw the cluster, a cell for each node; -o wide lists the nodes");
  sub->group("Cluster");
  const auto watch = std::make_shared<WatchOptions>();
  AddWatchOptions(sub, watch.get());
  sub->footer(
      "A cell is as full as the node: of the resource that is used most, by our jobs and by "
      "others. Its colour is that\nof the queue whose jobs hold the most of it. Nodes of a rack or "
      "zone stand in a row.\n\n"
      "Examples:\n"
      "  fluxqueue nodes --watch                   the picture, live\n"
      "  fluxqueue nodes -o wide                   what each node has, and who holds it\n"
      "  fluxqueue nodes -o json | jq '.[] | select(.up | not).node'");
  sub->callback(
      [&context, watch] { context.command = [&context, watch] { return Run(context, *watch); }; });
}

}  // namespace fluxqueue::cli
