#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/verify/snapshot.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;
using Amounts = std::map<std::string, int64_t>;

struct NodeLine {
  std::string name;
  std::string pool;
  std::string up;  // "up", or why not
  Amounts allocatable;
  Amounts foreign;
  verify::NodeUse use;
};

Amounts ToMap(const google::protobuf::RepeatedPtrField<events::v1::Amount>& amounts) {
  Amounts result;
  for (const events::v1::Amount& amount : amounts) result[amount.resource()] += amount.amount();
  return result;
}

std::string UpOrWhyNot(const verify::NodeRow& row) {
  if (!row.present) return "gone";
  if (!row.node.ready()) return "not ready";
  if (row.node.unschedulable()) return "cordoned";
  return "up";
}

std::vector<NodeLine> Lines(const verify::Snapshot& snapshot) {
  const auto uses = verify::UseByNode(snapshot);
  std::vector<NodeLine> lines;
  for (const verify::NodeRow& row : snapshot.nodes) {
    const auto use = uses.find({row.pool, row.node.name()});
    // Nodes that are gone are remembered for a while; they matter only while something is held
    // there.
    if (!row.present && use == uses.end()) continue;
    lines.push_back({row.node.name(),
                     row.pool,
                     UpOrWhyNot(row),
                     ToMap(row.node.allocatable()),
                     ToMap(row.node.foreign()),
                     use == uses.end() ? verify::NodeUse{} : use->second});
  }
  return lines;
}

int64_t At(const Amounts& amounts, const std::string& resource) {
  const auto found = amounts.find(resource);
  return found == amounts.end() ? 0 : found->second;
}

// "3+1/8": ours, others' (if any), and what there is.
std::string Share(const NodeLine& line, const std::string& resource) {
  const int64_t has = At(line.allocatable, resource);
  const int64_t ours = At(line.use.ours, resource);
  const int64_t foreign = At(line.foreign, resource);
  if (has == 0 && ours == 0 && foreign == 0) return "-";
  std::string text = ShortAmount(resource, ours);
  if (foreign != 0) text += "+" + ShortAmount(resource, foreign);
  return text + "/" + ShortAmount(resource, has);
}

std::vector<std::string> Resources(const std::vector<NodeLine>& lines) {
  std::set<std::string> others;
  for (const NodeLine& line : lines) {
    for (const auto& [resource, amount] : line.allocatable) others.insert(resource);
  }
  std::vector<std::string> resources = {"cpu", "memory", "pods"};
  for (const std::string& first : resources) others.erase(first);
  // Nobody asks for what every node has in abundance and nobody uses.
  std::erase_if(others, [&](const std::string& resource) {
    return resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  });
  resources.insert(resources.end(), others.begin(), others.end());
  return resources;
}

json ToJson(const std::vector<NodeLine>& lines) {
  json result = json::array();
  for (const NodeLine& line : lines) {
    result.push_back({{"node", line.name},
                      {"pool", line.pool},
                      {"up", line.up == "up"},
                      {"state", line.up},
                      {"allocatable", line.allocatable},
                      {"held", line.use.ours},
                      {"foreign", line.foreign},
                      {"jobs", line.use.jobs}});
  }
  return result;
}

absl::StatusOr<int> Run(const Context& context) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Connection connection(PostgresOptions(config.dsn));
  verify::Snapshot snapshot;
  RETURN_IF_ERROR(ReadGraph(connection, &snapshot));
  const std::vector<NodeLine> lines = Lines(snapshot);
  if (context.json()) {
    fmt::print("{}\n", ToJson(lines).dump(2));
    return 0;
  }
  if (lines.empty()) {
    fmt::print("no nodes: cleanup tells of them when it has listed the cluster\n");
    return 0;
  }
  const std::vector<std::string> resources = Resources(lines);
  std::vector<std::string> header = {"NODE", "POOL", "STATE", "JOBS"};
  for (const std::string& resource : resources) {
    header.push_back(resource == "cpu"      ? "CPU"
                     : resource == "memory" ? "MEMORY"
                     : resource == "pods"   ? "PODS"
                                            : resource);
  }
  Table table(std::move(header));
  for (const NodeLine& line : lines) {
    std::vector<Cell> row = {line.name,
                             line.pool,
                             {line.up, line.up == "up" ? Colour::kGreen : Colour::kYellow},
                             fmt::format("{}", line.use.jobs.size())};
    for (const std::string& resource : resources) row.emplace_back(Share(line, resource));
    table.Add(std::move(row));
  }
  fmt::print("{}(held by our jobs + used by others / allocatable)\n", table.Render(context.colour));
  return 0;
}

}  // namespace

void RegisterNodes(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand(
      "nodes", "List the nodes: what they have, what our jobs hold, what others use");
  sub->callback([&context] { context.command = [&context] { return Run(context); }; });
}

}  // namespace fluxqueue::cli
