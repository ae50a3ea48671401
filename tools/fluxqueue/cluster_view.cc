#include "tools/fluxqueue/cluster_view.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/status_macros.h"
#include "libs/graph/levels.h"
#include "libs/postgres/statement.h"
#include "libs/verify/snapshot.h"

#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

constexpr postgres::Statement kPoolConfigs{"cli_pool_configs",
                                           "SELECT pool, config FROM admission.pools"};
constexpr postgres::Statement kQueuesOfJobs{"cli_queues_of_jobs",
                                            "SELECT job_id, queue FROM queue.jobs WHERE live"};

struct Names {
  std::map<std::string, std::vector<graph::Level>> levels;  // by pool
  std::unordered_map<std::string, std::string> queues;      // by job id
};

absl::StatusOr<Names> ReadNames(postgres::Connection& connection) {
  Names names;
  RETURN_IF_ERROR(connection.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    for (const pqxx::row& row : postgres::Exec(tx, kPoolConfigs)) {
      events::v1::PoolConfigured config;
      config.ParseFromString(pqxx::binarystring(row[1]).str());
      ASSIGN_OR_RETURN(names.levels[row[0].as<std::string>()],
                       graph::ParseLevels({config.levels().begin(), config.levels().end()}));
    }
    for (const pqxx::row& row : postgres::Exec(tx, kQueuesOfJobs)) {
      names.queues[row[0].as<std::string>()] = row[1].as<std::string>();
    }
    return absl::OkStatus();
  }));
  return names;
}

Amounts ToMap(const google::protobuf::RepeatedPtrField<events::v1::Amount>& amounts) {
  Amounts result;
  for (const events::v1::Amount& amount : amounts) result[amount.resource()] += amount.amount();
  return result;
}

std::string StateOf(const verify::NodeRow& row) {
  if (!row.present) return "gone";
  if (!row.node.ready()) return "not ready";
  if (row.node.unschedulable()) return "cordoned";
  return "up";
}

std::vector<std::string> PlaceOf(const events::v1::Node& node,
                                 const std::vector<graph::Level>& levels) {
  std::vector<std::string> place;
  for (const graph::Level& level : levels) {
    for (const events::v1::Label& label : node.labels()) {
      if (label.key() == level.label) place.push_back(level.name + " " + label.value());
    }
  }
  return place;
}

std::string MainQueue(const std::map<std::string, uint32_t>& jobs, const Names& names) {
  std::map<std::string, uint32_t> slots;
  for (const auto& [job, count] : jobs) {
    if (const auto it = names.queues.find(job); it != names.queues.end())
      slots[it->second] += count;
  }
  const auto most = std::max_element(
      slots.begin(), slots.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == slots.end() ? "" : most->first;
}

int64_t At(const Amounts& amounts, const std::string& resource) {
  const auto found = amounts.find(resource);
  return found == amounts.end() ? 0 : found->second;
}

// What every node has in abundance says nothing of how full it is.
bool IsMinor(const std::string& resource) {
  return resource == "ephemeral-storage" || resource.starts_with("hugepages-");
}

}  // namespace

double NodeView::Use() const {
  double most = 0;
  for (const auto& [resource, has] : allocatable) {
    if (has == 0 || IsMinor(resource)) continue;
    const auto used = static_cast<double>(At(ours, resource) + At(foreign, resource));
    most = std::max(most, used / static_cast<double>(has));
  }
  return most;
}

absl::StatusOr<std::vector<NodeView>> ReadClusterView(postgres::Connection& connection) {
  verify::Snapshot snapshot;
  RETURN_IF_ERROR(ReadGraph(connection, &snapshot));
  ASSIGN_OR_RETURN(Names names, ReadNames(connection));
  auto uses = verify::UseByNode(snapshot);
  std::vector<NodeView> nodes;
  for (const verify::NodeRow& row : snapshot.nodes) {
    const auto found = uses.find({row.pool, row.node.name()});
    if (!row.present && found == uses.end()) continue;
    verify::NodeUse use = found == uses.end() ? verify::NodeUse{} : std::move(found->second);
    std::string queue = MainQueue(use.jobs, names);
    nodes.push_back({.name = row.node.name(),
                     .pool = row.pool,
                     .state = StateOf(row),
                     .allocatable = ToMap(row.node.allocatable()),
                     .ours = std::move(use.ours),
                     .foreign = ToMap(row.node.foreign()),
                     .jobs = std::move(use.jobs),
                     .queue = std::move(queue),
                     .place = PlaceOf(row.node, names.levels[row.pool])});
  }
  return nodes;
}

std::vector<std::string> ResourcesOf(const std::vector<NodeView>& nodes) {
  std::set<std::string> others;
  for (const NodeView& node : nodes) {
    for (const auto& [resource, amount] : node.allocatable) {
      if (!IsMinor(resource)) others.insert(resource);
    }
  }
  std::vector<std::string> resources = {"cpu", "memory", "pods"};
  for (const std::string& first : resources) others.erase(first);
  resources.insert(resources.end(), others.begin(), others.end());
  return resources;
}

std::string ShareText(const NodeView& node, const std::string& resource) {
  const int64_t has = At(node.allocatable, resource);
  const int64_t ours = At(node.ours, resource);
  const int64_t foreign = At(node.foreign, resource);
  if (has == 0 && ours == 0 && foreign == 0) return "-";
  std::string text = ShortAmount(resource, ours);
  if (foreign != 0) text += "+" + ShortAmount(resource, foreign);
  return text + "/" + ShortAmount(resource, has);
}

}  // namespace fluxqueue::cli
