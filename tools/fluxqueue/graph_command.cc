// graph: the levels of the cluster, as a tree.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/cluster_view.h"
#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/graph_tree.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

struct Options {
  bool dot = false;
  bool svg = false;
};

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Connection connection(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const std::vector<NodeView> nodes, ReadClusterView(connection));
  const std::vector<GraphTree> trees = BuildTrees(nodes);
  if (options.dot) {
    fmt::print("{}", TreeDot(trees));
  } else if (options.svg) {
    fmt::print("{}", TreeSvg(trees));
  } else if (context.structured()) {
    nlohmann::json result = nlohmann::json::array();
    for (const GraphTree& tree : trees) result.push_back(TreeJson(tree));
    fmt::print("{}", context.Structured(result));
  } else {
    for (const GraphTree& tree : trees) {
      fmt::print("{}", TreeText(tree, context.wide() || tree.below.empty(), context.colour));
    }
  }
  return 0;
}

}  // namespace

void RegisterGraph(CLI::App& app, Context& context) {
  CLI::App* sub =
      app.add_subcommand("graph", "Draw the graph that jobs are matched on, with its use");
  sub->group("Cluster");
  const auto options = std::make_shared<Options>();
  CLI::Option* dot = sub->add_flag("--dot", options->dot, "For Graphviz");
  sub->add_flag("--svg", options->svg, "As a picture")->excludes(dot);
  sub->footer(
      "Pools, their levels (zone, block, rack: what nodes are labelled with), and nodes with -o "
      "wide. Use is that of\nthe resource that is used most.\n\n"
      "Examples:\n"
      "  fluxqueue graph -o wide\n"
      "  fluxqueue graph --dot | dot -Tpng >cluster.png\n"
      "  fluxqueue graph --svg >cluster.svg");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
