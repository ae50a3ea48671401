#include "libs/graph/engine_kind.h"

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {

absl::StatusOr<std::unique_ptr<Engine>> MakeNativeOnly(const EngineKind& kind) {
  if (kind.name == "native") return MakeNativeEngine();
  if (kind.name != "fluxion" && kind.name != "shadow") {
    return InvalidArgument("the engine \"{}\" does not exist; there are native, fluxion and shadow",
                           kind.name);
  }
  return MakeStatus(absl::StatusCode::kInternal,
                    "the engine \"{}\" needs Fluxion's library, and none is configured here",
                    kind.name);
}

absl::Status Copy(const Engine& from, Engine* to) {
  for (NodeSpec& node : from.Nodes()) RETURN_IF_ERROR(to->AddNode(std::move(node)));
  for (const AllocationKey& key : from.Keys()) RETURN_IF_ERROR(to->Restore(key, *from.Find(key)));
  return absl::OkStatus();
}

}  // namespace fluxqueue::graph
