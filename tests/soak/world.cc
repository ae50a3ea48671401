#include "tests/soak/world.h"

#include <array>

#include <absl/strings/str_split.h>

namespace fluxqueue::soak {
namespace {

constexpr size_t kColumns = 11;
constexpr std::string_view kNothing = "<none>";

bool HasEnded(const std::string& phase, const std::string& conditions) {
  if (phase == "Succeeded" || phase == "Failed") return true;
  for (const std::string& condition : std::vector<std::string>(absl::StrSplit(conditions, ','))) {
    if (condition == "Complete" || condition == "Failed") return true;
  }
  return false;
}

}  // namespace

bool Serves(std::string_view kind) {
  return kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet";
}

int LiveLoad(const World& world) {
  int load = 0;
  for (const Object& object : world.objects) {
    if (Serves(object.kind) && object.owner.empty()) load += 2;
    if (object.kind == "Job" && !object.ended) ++load;
    if (object.kind == "Pod" && object.owner.empty() && !object.ended) ++load;
  }
  return load;
}

int Serving(const World& world) {
  int serving = 0;
  for (const Object& object : world.objects) {
    serving += Serves(object.kind) && object.owner.empty() ? 1 : 0;
  }
  return serving;
}

std::string LookColumns() {
  return "K:.kind,N:.metadata.name,O:.metadata.ownerReferences[0].kind,"
         "D:.metadata.deletionTimestamp,W:.spec.nodeName,P:.status.phase,"
         "C:.status.conditions[?(@.status==\"True\")].type,S:.spec.suspend,"
         "L:.metadata.labels.soaksuspended,U:.spec.unschedulable,T:.spec.taints[*].key";
}

World ParseLook(std::string_view text) {
  World world;
  const std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    std::vector<std::string> columns = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (columns.size() != kColumns) continue;
    for (std::string& column : columns) {
      if (column == kNothing) column.clear();
    }
    if (!columns[3].empty()) continue;
    if (columns[0] == "Node") {
      world.nodes[columns[1]] = {.cordoned = columns[9] == "true",
                                 .tainted = columns[10].find(kTaintKey) != std::string::npos};
      continue;
    }
    world.objects.push_back({.kind = columns[0],
                             .name = columns[1],
                             .owner = columns[2],
                             .node = columns[4],
                             .ended = HasEnded(columns[5], columns[6]),
                             .suspended = columns[7] == "true",
                             .suspended_by_soak = !columns[8].empty()});
  }
  return world;
}

}  // namespace fluxqueue::soak
