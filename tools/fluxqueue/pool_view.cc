#include "tools/fluxqueue/pool_view.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/model/job_state.h"

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

PoolView::Waiting WaitingOf(const queue_core::QueueCore& queue, const queue_core::Job& job) {
  return {.id = job.id,
          .name = queue_core::FullName(job),
          .queue = job.queue,
          .position = queue.Position(job.id),
          .state = std::string(model::Name(job.state)),
          .reason = job.reason,
          .message = job.message,
          .slots = job.slots,
          .priority = job.priority,
          .submitted_ms = job.submitted_ms,
          .promised_ms = queue_core::IsPromised(job) ? job.start_ms : 0,
          .firm = job.firm};
}

PoolView::Allocation AllocationOf(const queue_core::QueueCore& queue,
                                  const graph::AllocationKey& key,
                                  const graph::Placement& placement,
                                  int64_t beginning_ms) {
  PoolView::Allocation held{.id = key.job_id, .attempt = key.attempt};
  held.since_ms = beginning_ms + placement.start_s * 1000;
  if (placement.duration_s != 0) held.until_ms = held.since_ms + placement.duration_s * 1000;
  held.nodes = SlotsByNode(placement);
  if (const queue_core::Job* job = queue.Find(key.job_id); job != nullptr) {
    held.name = queue_core::FullName(*job);
    held.queue = job->queue;
    held.state = model::Name(job->state);
  }
  return held;
}

json ToJson(const PoolView::Waiting& job) {
  return {{"id", job.id},
          {"name", job.name},
          {"queue", job.queue},
          {"position", job.position},
          {"state", job.state},
          {"reason", job.reason},
          {"message", job.message},
          {"slots", job.slots},
          {"priority", job.priority},
          {"submittedMs", job.submitted_ms},
          {"promisedMs", job.promised_ms},
          {"firm", job.firm}};
}

json ToJson(const PoolView::Allocation& held) {
  json nodes = json::array();
  for (const auto& [node, slots] : held.nodes) nodes.push_back({{"node", node}, {"slots", slots}});
  return {{"id", held.id},
          {"attempt", held.attempt},
          {"name", held.name},
          {"queue", held.queue},
          {"state", held.state},
          {"sinceMs", held.since_ms},
          {"untilMs", held.until_ms},
          {"nodes", std::move(nodes)}};
}

json ToJson(const std::vector<graph::ResourceUsage>& usage) {
  json resources = json::object();
  for (const graph::ResourceUsage& use : usage) {
    resources[use.resource] = {
        {"total", use.total}, {"held", use.held}, {"foreign", use.foreign}, {"free", use.free}};
  }
  return resources;
}

std::string WaitingText(const PoolView& view, bool colour) {
  Table table({"QUEUE", "PLACE", "JOB", "SLOTS", "SUBMITTED", "PROMISED", "REASON", "MESSAGE"});
  for (const PoolView::Waiting& job : view.waiting) {
    table.Add({job.queue,
               job.position == 0 ? "-" : fmt::format("{}", job.position),
               job.name,
               fmt::format("{}", job.slots),
               ShortTime(job.submitted_ms, view.time_ms),
               ShortTime(job.promised_ms, view.time_ms) + (job.firm ? " (firm)" : ""),
               job.reason.empty() ? job.state : job.reason,
               job.message});
  }
  return table.Render(colour);
}

std::string AllocationsText(const PoolView& view, bool colour) {
  Table table({"JOB", "QUEUE", "STATE", "SINCE", "UNTIL", "NODES"});
  for (const PoolView::Allocation& held : view.allocations) {
    table.Add({held.name.empty() ? held.id : held.name,
               held.queue,
               {held.state, StateColour(held.state)},
               ShortTime(held.since_ms, view.time_ms),
               ShortTime(held.until_ms, view.time_ms),
               NodesText(held.nodes)});
  }
  return table.Render(colour);
}

std::string UsageText(const PoolView& view, bool colour) {
  Table table({"RESOURCE", "TOTAL", "HELD", "OTHERS", "FREE"});
  for (const graph::ResourceUsage& use : view.usage) {
    table.Add({use.resource,
               ShortAmount(use.resource, use.total),
               ShortAmount(use.resource, use.held),
               ShortAmount(use.resource, use.foreign),
               ShortAmount(use.resource, use.free)});
  }
  return table.Render(colour);
}

// What is free on each, of what the pool has.
std::string NodesTable(const PoolView& view, bool colour) {
  Table table({"NODE", "UP", "SLOTS", "FREE"});
  for (const graph::NodeUsage& node : view.nodes) {
    std::string free;
    for (const graph::ResourceUsage& use : node.resources) {
      if (use.total == 0) continue;
      free += fmt::format("{}{} {}/{}",
                          free.empty() ? "" : ", ",
                          use.resource,
                          ShortAmount(use.resource, use.free),
                          ShortAmount(use.resource, use.total));
    }
    table.Add({node.name, node.schedulable ? "yes" : "no", fmt::format("{}", node.slots), free});
  }
  return table.Render(colour);
}

}  // namespace

std::vector<std::pair<std::string, uint32_t>> SlotsByNode(const graph::Placement& placement) {
  std::vector<std::pair<std::string, uint32_t>> nodes;
  for (const graph::PlacedSlot& slot : placement.slots) {
    if (slot.released) continue;
    const auto known = std::find_if(
        nodes.begin(), nodes.end(), [&](const auto& node) { return node.first == slot.node; });
    if (known == nodes.end()) {
      nodes.emplace_back(slot.node, 1);
    } else {
      ++known->second;
    }
  }
  return nodes;
}

std::string NodesText(const std::vector<std::pair<std::string, uint32_t>>& nodes) {
  std::string text;
  for (const auto& [node, slots] : nodes) {
    text += fmt::format(
        "{}{}{}", text.empty() ? "" : ", ", node, slots == 1 ? "" : fmt::format(" x{}", slots));
  }
  return text;
}

PoolView Look(const queue_core::QueueCore& queue,
              const matcher_core::MatcherCore& matcher,
              Millis now) {
  PoolView view{.pool = queue.pool(), .time_ms = now.count()};
  const graph::Engine& engine = matcher.engine();
  for (const std::string& id : queue.Front(std::numeric_limits<size_t>::max())) {
    const queue_core::Job& job = *queue.Find(id);
    const bool waits =
        job.state == model::JobState::kPending || job.state == model::JobState::kSubmitted;
    if (waits) view.waiting.push_back(WaitingOf(queue, job));
  }
  for (const graph::AllocationKey& key : engine.Keys()) {
    view.allocations.push_back(
        AllocationOf(queue, key, *engine.Find(key), matcher.beginning().count()));
  }
  view.usage = engine.Usage();
  view.nodes = engine.UsageByNode();
  return view;
}

json ToJson(const PoolView& view) {
  json object = {{"pool", view.pool},
                 {"timeMs", view.time_ms},
                 {"waiting", json::array()},
                 {"allocations", json::array()},
                 {"usage", ToJson(view.usage)},
                 {"nodes", json::array()}};
  for (const PoolView::Waiting& job : view.waiting) object["waiting"].push_back(ToJson(job));
  for (const PoolView::Allocation& held : view.allocations) {
    object["allocations"].push_back(ToJson(held));
  }
  for (const graph::NodeUsage& node : view.nodes) {
    object["nodes"].push_back({{"node", node.name},
                               {"schedulable", node.schedulable},
                               {"slots", node.slots},
                               {"resources", ToJson(node.resources)}});
  }
  return object;
}

std::string FormatView(const PoolView& view, int64_t now_ms, bool colour) {
  return fmt::format(
      "pool {} at {}: {} waiting, {} held, {} nodes\n\nWaiting\n{}\nHeld\n{}\nUse\n{}\n{}",
      view.pool,
      ShortTime(view.time_ms, now_ms),
      view.waiting.size(),
      view.allocations.size(),
      view.nodes.size(),
      WaitingText(view, colour),
      AllocationsText(view, colour),
      UsageText(view, colour),
      NodesTable(view, colour));
}

}  // namespace fluxqueue::cli
