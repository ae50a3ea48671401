#include "libs/fluxion/engines.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/fluxion/child_context.h"
#include "libs/fluxion/placer.h"
#include "libs/graph/booked_engine.h"

namespace fluxqueue::fluxion {
namespace {

using graph::Engine;
using graph::EngineKind;

constexpr std::string_view kHost = "fluxqueue-fluxion-host";

std::string HostOf(const EngineOptions& options) {
  if (!options.host.empty()) return options.host;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (error ? std::filesystem::path(kHost) : self.parent_path() / kHost).string();
}

absl::StatusOr<std::unique_ptr<Context>> OpenContext(const EngineOptions& options,
                                                     bool in_process,
                                                     const std::string& jgf,
                                                     const Context::Settings& settings) {
  if (in_process) {
    ASSIGN_OR_RETURN(auto library, Library::Open(options.library));
    return MakeContext(std::move(library), jgf, settings);
  }
  return MakeChildContext({.host = HostOf(options),
                           .library = options.library,
                           .call_timeout = options.call_timeout,
                           .load_timeout = options.load_timeout},
                          jgf,
                          settings);
}

std::unique_ptr<Engine> MakeFluxion(
    const EngineOptions& options,
    bool in_process,
    const Granules& granules,
    std::function<void(const absl::Status&)> failed,
    std::function<bool()> abandoned = [] { return false; }) {
  PlacerOptions placer;
  placer.open = [options, in_process](const std::string& jgf, const Context::Settings& settings) {
    return OpenContext(options, in_process, jgf, settings);
  };
  placer.granules = granules;
  placer.lost = [restarted = options.restarted](const absl::Status&) { restarted(); };
  placer.failed = std::move(failed);
  placer.abandoned = std::move(abandoned);
  return std::make_unique<graph::BookedEngine>(
      [placer](graph::NodeTable* table, graph::ExpectedWork*) {
        return std::make_unique<FluxionPlacer>(table, placer);
      });
}

[[noreturn]] void EndProcess(const absl::Status& why) {
  CHECK(false, "the fluxion engine: {}", Message(why));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeShadowed(const EngineOptions& options,
                                                     const EngineKind& kind,
                                                     const Granules& granules) {
  if (kind.shadow != "fluxion" && kind.shadow != "native") {
    return InvalidArgument("shadow_of \"{}\": must be fluxion or native", kind.shadow);
  }
  ShadowOptions shadow;
  shadow.pool = options.pool;
  shadow.compared = options.compared;
  if (kind.shadow == "native") {
    shadow.make = [](const auto& /*failed*/, const auto& /*abandoned*/) {
      return graph::MakeNativeEngine();
    };
    return std::make_unique<ShadowEngine>(
        MakeFluxion(options, options.in_process, granules, EndProcess), std::move(shadow));
  }
  shadow.make = [options, granules](std::function<void(const absl::Status&)> failed,
                                    std::function<bool()> abandoned) {
    return MakeFluxion(
        options, /*in_process=*/false, granules, std::move(failed), std::move(abandoned));
  };
  return std::make_unique<ShadowEngine>(graph::MakeNativeEngine(), std::move(shadow));
}

}  // namespace

absl::Status CheckLibrary(const EngineOptions& options) {
  constexpr char kGraph[] =
      R"({"graph": {"nodes": [{"id": "0", "metadata": {"type": "cluster", "id": 0, "rank": -1,
          "paths": {"containment": "/cluster0"}}}, {"id": "1", "metadata": {"type": "core",
          "id": 0, "rank": 0, "paths": {"containment": "/cluster0/core0"}}}],
          "edges": [{"source": "0", "target": "1"}]}})";
  return OpenContext(options, options.in_process, kGraph, {}).status();
}

graph::MakeEngine MakeEngines(EngineOptions options) {
  return [options = std::move(options)](
             const EngineKind& kind) -> absl::StatusOr<std::unique_ptr<Engine>> {
    const Granules granules{.cpu = kind.cpu_granule, .bytes = kind.bytes_granule};
    const bool known = kind.name == "fluxion" || kind.name == "shadow";
    if (!known || options.library.empty()) return graph::MakeNativeOnly(kind);
    if (kind.name == "shadow") return MakeShadowed(options, kind, granules);
    return MakeFluxion(options, options.in_process, granules, EndProcess);
  };
}

graph::MakeEngine MakeDecidingEngines(EngineOptions options) {
  return [make = MakeEngines(std::move(options))](EngineKind kind) {
    if (kind.name == "shadow") kind.name = kind.shadow == "native" ? "fluxion" : "native";
    return make(kind);
  };
}

}  // namespace fluxqueue::fluxion
