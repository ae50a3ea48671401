#include <map>
#include <string>

#include <fmt/format.h>

#include "fluxqueue/events/v1/events.pb.h"

#include "tests/simulation/pool_world.h"

namespace fluxqueue::simulation {

void PoolWorld::Check() {
  CheckStates();
  CheckVersions();
  CheckRoom();
}

void PoolWorld::CheckStates() {
  for (const auto& [id, row] : database().Of<QueueTables>().jobs.rows()) {
    const model::JobState before = states_[id];
    if (before == row.job.state) continue;
    const std::string change =
        fmt::format("{} to {}", model::Name(before), model::Name(row.job.state));
    ++counts()[change];
    if (tells()) Say(fmt::format("{}: {}", id, change));
    if (model::IsTerminal(before) && before != model::JobState::kRejected) {
      Fail(fmt::format("{} leaves {}", id, model::Name(before)));
    }
    states_[id] = row.job.state;
    Changed(id, row.job.state);
  }
}

void PoolWorld::CheckVersions() {
  uint64_t version = 0;
  std::string of;
  for (const auto& [key, event] : database().Of<QueueTables>().events.rows()) {
    if (key.first != of) version = 0;
    of = key.first;
    if (key.second != ++version) return Fail(fmt::format("{} has no version {}", of, version));
  }
}

void PoolWorld::CheckReleased(const MatcherTables::Key& key) {
  const auto& [id, attempt, part] = key;
  if (Runs(id, attempt)) Fail(fmt::format("{} is released and runs", id));
}

void PoolWorld::CheckRoom() {
  std::map<std::string, int64_t> held;
  for (const auto& [key, row] : database().Of<MatcherTables>().allocations.rows()) {
    if (row.row.released) {
      CheckReleased(key);
      continue;
    }
    events::v1::Placement placement;
    placement.ParseFromString(row.row.placement);
    for (const auto& slot : placement.slots()) {
      if (!slot.released()) held[slot.node()] += jobs_.at(NameOf(std::get<0>(key))).cpu;
    }
  }
  for (const auto& [node, cpu] : held) {
    if (cpu > kCpu) Fail(fmt::format("{} holds {} of {}", node, cpu, kCpu));
  }
}

}  // namespace fluxqueue::simulation
