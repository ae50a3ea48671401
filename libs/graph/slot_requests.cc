#include "libs/graph/slot_requests.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace fluxqueue::graph {
namespace {

ResourceRequest Ask(std::string_view type, uint64_t count) {
  ResourceRequest request;
  request.type = type;
  request.count = {.min = count, .max = count};
  return request;
}

ResourceRequest Above(ResourceRequest level, ResourceRequest below) {
  level.with.push_back(std::move(below));
  return level;
}

JobRequest RequestOf(const Jobspec& jobspec, size_t group, const std::optional<Level>& level) {
  ResourceRequest slot = Ask(kSlotType, jobspec.groups[group].slots);
  for (const Amount& amount : jobspec.groups[group].request) {
    slot.with.push_back(Ask(amount.resource, static_cast<uint64_t>(amount.amount)));
  }
  if (jobspec.one_per_node) {
    const uint64_t nodes = std::exchange(slot.count, {.min = 1, .max = 1}).max;
    slot = Above(Ask("node", nodes), std::move(slot));
  }
  if (level.has_value()) slot = Above(Ask(level->name, 1), std::move(slot));
  JobRequest request;
  request.resources.push_back(std::move(slot));
  request.levels_may_be_left_out = true;
  request.constrained = true;
  request.constraint = jobspec.constraint;
  request.tolerations = jobspec.tolerations;
  request.shape = fmt::format(
      "{} of {} within {}", group, jobspec.shape, level.has_value() ? level->label : "the cluster");
  return request;
}

SlotRequests Way(const Jobspec& jobspec, std::optional<Level> level) {
  SlotRequests way;
  for (size_t group = 0; group < jobspec.groups.size(); ++group) {
    way.requests.push_back(RequestOf(jobspec, group, level));
  }
  way.level = std::move(level);
  return way;
}

}  // namespace

size_t DepthOf(std::string_view name, std::span<const Level> levels) {
  const auto found = std::find_if(
      levels.begin(), levels.end(), [name](const Level& level) { return level.name == name; });
  return static_cast<size_t>(found - levels.begin());
}

std::vector<SlotRequests> WaysToMeet(const Jobspec& jobspec,
                                     std::span<const Level> levels,
                                     std::span<const Level> in_use) {
  std::vector<SlotRequests> ways;
  const bool required = !jobspec.required_level.empty();
  const size_t outermost = DepthOf(jobspec.required_level, levels);
  const size_t innermost = DepthOf(jobspec.preferred_level, levels);
  for (size_t i = in_use.size(); innermost < levels.size() && i-- > 0;) {
    const size_t depth = DepthOf(in_use[i].name, levels);
    if (depth <= innermost && (!required || depth > outermost)) {
      ways.push_back(Way(jobspec, in_use[i]));
    }
  }
  if (!required) {
    ways.push_back(Way(jobspec, std::nullopt));
    return ways;
  }
  const size_t at = DepthOf(jobspec.required_level, in_use);
  if (at == in_use.size()) return {};
  ways.push_back(Way(jobspec, in_use[at]));
  return ways;
}

std::vector<std::vector<uint32_t>> OrdersOf(const Jobspec& jobspec, const NodeTable& table) {
  // The largest part of any node's resource that one slot takes.
  std::vector<double> hardness;
  for (const SlotGroup& slots : jobspec.groups) {
    double part = 0;
    for (const Amount& amount : slots.request) {
      part = std::max(part,
                      static_cast<double>(amount.amount) / static_cast<double>(std::max<int64_t>(
                                                               1, table.Largest(amount.resource))));
    }
    hardness.push_back(part);
  }
  std::vector<uint32_t> order(jobspec.groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&hardness](uint32_t a, uint32_t b) {
    return hardness[a] > hardness[b];
  });
  std::vector<std::vector<uint32_t>> orders = {order};
  for (size_t i = 1; i < order.size(); ++i) {
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(i), order.end());
    orders.push_back(order);
    order = orders.front();
  }
  return orders;
}

JobRequest Constrained(const JobRequest& request, Constraint also, std::string_view name) {
  JobRequest constrained = request;
  constrained.constraint = Constraint::And({request.constraint, std::move(also)});
  constrained.shape += fmt::format(", {}", name);
  return constrained;
}

Constraint InGroupOf(const NodeSpec& node, std::span<const Level> levels) {
  std::vector<Constraint> all;
  for (const Level& level : levels) {
    const std::string* value = LabelOf(node, level.label);
    all.push_back(value != nullptr ? Constraint::HasLabel(level.label, *value)
                                   : Constraint::IsHost(node.name));
  }
  return Constraint::And(std::move(all));
}

Jobspec Beside(const NodeSpec& node, std::span<const Level> levels, const Jobspec& jobspec) {
  const std::string where = fmt::format(" in {} {}", levels.back().name, GroupOf(node, levels));
  Jobspec beside = jobspec;
  beside.constraint = Constraint::And({jobspec.constraint, InGroupOf(node, levels)});
  beside.constraint_signature += where;
  beside.shape += where;
  return beside;
}

}  // namespace fluxqueue::graph
