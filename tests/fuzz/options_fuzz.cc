#include <string_view>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/resource_set.h"
#include "libs/graph/synthetic_graphs.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

std::string_view TakeLine(std::string_view* text) {
  const size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end);
  *text = end == std::string_view::npos ? std::string_view() : text->substr(end + 1);
  return line;
}

}  // namespace

void FuzzOptions(std::string_view text) {
  static const graph::ResourceGraph cluster =
      graph::synthetic::MakeCluster({{2, 1, {8}}, {2, 0, {8}}});
  const std::string_view policy = TakeLine(&text);
  const std::string_view filters = TakeLine(&text);
  const std::string_view traverser = TakeLine(&text);
  graph::ParseSetFormat(text).status().IgnoreError();
  const auto engine = graph::GeneralEngine::Make(
      cluster, {.policy = policy, .prune_filters = filters, .traverser = traverser});
  if (engine.ok()) {
    CHECK(graph::MatchPolicy::Parse(policy).ok());
    CHECK((*engine)->Fingerprint() == (*engine)->Snapshot()->Fingerprint());
    return;
  }
  CHECK(absl::IsInvalidArgument(engine.status()), "{}", Message(engine.status()));
}

}  // namespace fluxqueue::fuzz
