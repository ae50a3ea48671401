#include <string>

#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/alternatives.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/request.h"
#include "libs/graph/synthetic_graphs.h"
#include "libs/graph/yaml_tree.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

using graph::GeneralEngine;
using graph::JobRequest;
using nlohmann::json;

constexpr graph::YamlRules kRules = {.max_depth = graph::kMaxRequestDepth,
                                     .max_values = graph::kMaxRequestValues,
                                     .quoted_lists = {}};

// The tree of a YAML text is that of the JSON that is made of it.
void CheckTree(std::string_view text) {
  const auto tree = graph::ReadYaml(text, kRules);
  if (!tree.ok()) return;
  const std::string written = tree->dump();
  const auto again = graph::ReadYaml(written, kRules);
  CHECK(again.ok(), "{}: {}", Message(again.status()), written);
  CHECK(*again == *tree, "{} is read as {}", written, again->dump());
}

json ToJson(const std::vector<graph::ResourceRequest>& resources) {
  json list = json::array();
  for (const graph::ResourceRequest& resource : resources) {
    const graph::CountRange& count = resource.count;
    json entry = {{"type", resource.type},
                  {"count",
                   {{"min", count.min},
                    {"max", count.max},
                    {"operator", std::string(1, count.op)},
                    {"operand", count.operand}}},
                  {"unit", resource.unit},
                  {"label", resource.label},
                  {"id", resource.id}};
    if (resource.exclusivity != graph::Exclusivity::kUnsaid) {
      entry["exclusive"] = resource.exclusivity == graph::Exclusivity::kExclusive;
    }
    if (!resource.with.empty()) entry["with"] = ToJson(resource.with);
    list.push_back(std::move(entry));
  }
  return list;
}

json ToJson(const JobRequest& request) {
  json tasks = json::array();
  for (const std::string& slot : request.task_slots) {
    tasks.push_back({{"command", {"app"}}, {"slot", slot}});
  }
  return {
      {"version", 1},
      {"resources", ToJson(request.resources)},
      {"tasks", std::move(tasks)},
      {"attributes", {{"system", {{"duration", request.duration_s}, {"queue", request.queue}}}}}};
}

// Written in full, a request may have more values than are allowed.
void CheckWritten(const JobRequest& request) {
  const json written = ToJson(request);
  const auto again = graph::ParseJobRequest(written.dump());
  if (!again.ok()) {
    CHECK(Message(again.status()).find("more than") != std::string::npos,
          "{}: {}",
          Message(again.status()),
          written.dump());
    return;
  }
  CHECK(ToJson(*again) == written, "{}", written.dump());
}

void CheckMatch(const JobRequest& request) {
  static const graph::ResourceGraph cluster =
      graph::synthetic::MakeCluster({{4, 1, {8}}, {4, 0, {8, 8}}, {2, 0, {4}}}, /*per_rack=*/2);
  for (const std::string_view traverser : {"simple", "flexible"}) {
    auto engine = GeneralEngine::Make(cluster, {.traverser = traverser});
    CHECK(engine.ok(), "{}", Message(engine.status()));
    const uint64_t before = (*engine)->Fingerprint();
    const auto answer =
        (*engine)->Match(graph::MatchOperation::kAllocateWithSatisfiability, 1, request);
    if (answer.ok()) (*engine)->Cancel(1);
    CHECK((*engine)->Fingerprint() == before);
  }
}

}  // namespace

void FuzzRequest(std::string_view text) {
  CheckTree(text);
  const auto request = graph::ParseJobRequest(text);
  if (!request.ok()) {
    CHECK(absl::IsInvalidArgument(request.status()), "{}", Message(request.status()));
    return;
  }
  CheckWritten(*request);
  const auto alternatives = graph::SplitAlternatives(request->resources);
  if (alternatives.ok()) CHECK(!alternatives->empty());
  CheckMatch(*request);
}

}  // namespace fluxqueue::fuzz
