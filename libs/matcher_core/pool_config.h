// What a pool's configuration asks for, or what is taken when it says nothing. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/engine_kind.h"
#include "libs/graph/levels.h"

#include "absl/status/status.h"

namespace fluxqueue::matcher_core {

std::string_view PolicyOf(const events::v1::PoolConfigured& config);
// The engine decides as it says from now on. InvalidArgument: see Engine::SetPolicy.
absl::Status Configure(const events::v1::PoolConfigured& config, graph::Engine* engine);
graph::EngineKind KindOf(const events::v1::PoolConfigured& config);
// REQUIRES: they parse, as those of a pool that was accepted do.
std::vector<graph::Level> LevelsOf(const events::v1::PoolConfigured& config);
// Those down to the one of that name; none: there is none.
std::span<const graph::Level> LevelsTo(const std::vector<graph::Level>& levels,
                                       const std::string& last);

}  // namespace fluxqueue::matcher_core
