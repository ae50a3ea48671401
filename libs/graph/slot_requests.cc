#include "libs/graph/slot_requests.h"

#include <algorithm>
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

JobRequest RequestOf(const Jobspec& jobspec, size_t group, const std::optional<Level>& level) {
  ResourceRequest slot = Ask(kSlotType, jobspec.groups[group].slots);
  for (const Amount& amount : jobspec.groups[group].request) {
    slot.with.push_back(Ask(amount.resource, static_cast<uint64_t>(amount.amount)));
  }
  JobRequest request;
  if (level.has_value()) {
    request.resources.push_back(Ask(level->name, 1));
    request.resources.front().with.push_back(std::move(slot));
  } else {
    request.resources.push_back(std::move(slot));
  }
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

// Behind the last one when there is none.
size_t DepthOf(std::string_view name, std::span<const Level> levels) {
  const auto found = std::find_if(
      levels.begin(), levels.end(), [name](const Level& level) { return level.name == name; });
  return static_cast<size_t>(found - levels.begin());
}

}  // namespace

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

}  // namespace fluxqueue::graph
