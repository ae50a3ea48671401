#include "libs/matcher_core/pool_config.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {
namespace {

constexpr std::string_view kDefaultPolicy = "first";

}  // namespace

std::string_view PolicyOf(const events::v1::PoolConfigured& config) {
  if (config.policy() == "packed") {
    if (!model::HasRules(config.rules(), model::kSetsNodesAside)) return "packed-3";
    if (!model::HasRules(config.rules(), model::kForecastDecays)) return "packed-4";
  }
  return config.policy().empty() ? kDefaultPolicy : std::string_view(config.policy());
}

absl::Status Configure(const events::v1::PoolConfigured& config, graph::Engine* engine) {
  RETURN_IF_ERROR(engine->SetPolicy(PolicyOf(config)));
  engine->HeedPreferences(model::HasRules(config.rules(), model::kPrefersNodes));
  return absl::OkStatus();
}

graph::EngineKind KindOf(const events::v1::PoolConfigured& config) {
  graph::EngineKind kind;
  if (!config.engine().empty()) kind.name = config.engine();
  if (!config.shadow_of().empty()) kind.shadow = config.shadow_of();
  if (config.cpu_granule_milli() > 0) kind.cpu_granule = config.cpu_granule_milli();
  if (config.memory_granule_bytes() > 0) kind.bytes_granule = config.memory_granule_bytes();
  return kind;
}

std::vector<graph::Level> LevelsOf(const events::v1::PoolConfigured& config) {
  absl::StatusOr<std::vector<graph::Level>> levels =
      graph::ParseLevels({config.levels().begin(), config.levels().end()});
  CHECK(levels.ok(), "{}", Message(levels.status()));
  return *std::move(levels);
}

std::span<const graph::Level> LevelsTo(const std::vector<graph::Level>& levels,
                                       const std::string& last) {
  const auto at = std::find_if(
      levels.begin(), levels.end(), [&last](const auto& level) { return level.name == last; });
  if (at == levels.end()) return {};
  return {levels.begin(), std::next(at)};
}

}  // namespace fluxqueue::matcher_core
