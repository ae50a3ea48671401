#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/jgf.h"
#include "libs/graph/resource_set.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

using graph::GeneralEngine;
using graph::JobRequest;
using graph::VertexId;

// One of the vertex that was named last, in a slot: most often a leaf.
JobRequest OneOf(const std::string& type) {
  JobRequest request;
  request.duration_s = 60;
  request.shape = type;
  graph::ResourceRequest slot;
  slot.type = std::string(graph::kSlotType);
  slot.label = "task";
  slot.with.emplace_back().type = type;
  request.resources.push_back(std::move(slot));
  return request;
}

std::vector<std::string> PathsOf(const graph::ResourceGraph& graph,
                                 const std::vector<VertexId>& vertices) {
  std::vector<std::string> paths;
  for (const VertexId v : vertices) paths.emplace_back(graph.PathOf(v));
  std::sort(paths.begin(), paths.end());
  return paths;
}

// What is held can be given back as it was written, where no amount is a part of a vertex.
void CheckWritten(const GeneralEngine& engine, const graph::Holding& holding) {
  std::vector<VertexId> held;
  for (const graph::HeldVertex& vertex : holding.vertices) {
    if (vertex.amount != engine.graph().vertex(vertex.vertex).size) return;
    held.push_back(vertex.vertex);
  }
  const std::string text = WriteResourceSet(engine.graph(), holding, graph::SetFormat::kJgf);
  const auto found = graph::FindJgfVertices(text, engine.graph());
  CHECK(found.ok(), "{}: {}", Message(found.status()), text);
  CHECK(PathsOf(engine.graph(), *found) == PathsOf(engine.graph(), held), "{}", text);
  for (const auto format :
       {graph::SetFormat::kRv1, graph::SetFormat::kRv1NoSched, graph::SetFormat::kRlite}) {
    CHECK(!WriteResourceSet(engine.graph(), holding, format).empty());
  }
}

}  // namespace

void FuzzJgf(std::string_view text) {
  auto graph = graph::ParseJgf(text);
  if (!graph.ok()) {
    CHECK(absl::IsInvalidArgument(graph.status()), "{}", Message(graph.status()));
    return;
  }
  const absl::Status check = graph->Check();
  CHECK(check.ok(), "{}", Message(check));
  const auto all = graph::FindJgfVertices(text, *graph);
  if (all.ok()) CHECK(all->size() == graph->vertices().size());
  const std::string type = graph->TypeName(static_cast<VertexId>(graph->vertices().size() - 1));
  for (const std::string_view policy : {"first", "low"}) {
    auto engine = GeneralEngine::Make(*graph, {.policy = policy, .prune_filters = "ALL:core"});
    CHECK(engine.ok(), "{}", Message(engine.status()));
    const uint64_t before = (*engine)->Fingerprint();
    const auto answer =
        (*engine)->Match(graph::MatchOperation::kAllocateOrElseReserve, 1, OneOf(type));
    if (!answer.ok()) continue;
    CheckWritten(**engine, answer->holding);
    (*engine)->Cancel(1);
    CHECK((*engine)->Fingerprint() == before);
  }
}

}  // namespace fluxqueue::fuzz
