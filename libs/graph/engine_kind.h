// Which engine a pool has, as its configuration says it, and the way to one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "libs/graph/engine.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph {

struct EngineKind {
  std::string name = "native";  // "native", "fluxion", "shadow"
  // Of "shadow": the engine that is asked in the background, "fluxion" or "native"; the other one
  // decides.
  std::string shadow = "fluxion";
  // What "fluxion" gives whole: millicores, and bytes of memory or storage.
  int64_t cpu_granule = 1000;
  int64_t bytes_granule = int64_t{1} << 30;

  friend bool operator==(const EngineKind&, const EngineKind&) = default;
};

// An engine without nodes. InvalidArgument: there is no such kind; Internal: not in this process,
// which cannot go on then, as another could.
using MakeEngine = std::function<absl::StatusOr<std::unique_ptr<Engine>>(const EngineKind& kind)>;

// Knows "native" alone.
absl::StatusOr<std::unique_ptr<Engine>> MakeNativeOnly(const EngineKind& kind);

// `to`, which is empty, gets the nodes of `from`, and all that is held there. What is wrong with it
// is what AddNode and Restore say.
absl::Status Copy(const Engine& from, Engine* to);

}  // namespace fluxqueue::graph
