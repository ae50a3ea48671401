#include "tools/fluxqueue/replay_options.h"

#include "libs/base/status_macros.h"
#include "libs/verify/snapshot_file.h"

#include "tools/fluxqueue/load/trace_file.h"
#include "tools/fluxqueue/time_range.h"

namespace fluxqueue::cli {

absl::StatusOr<std::unique_ptr<EventSource>> SourceOf(const Context& context,
                                                      const ReplayOptions& options,
                                                      const std::string& written) {
  if (!options.file.empty()) return EventsOfFile(options.file);
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig(written));
  return EventsOfPool(config, options.pool);
}

absl::StatusOr<replay::v1::Snapshot> ReadSnapshot(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, load::ReadTraceFile(file));
  return verify::ParseSnapshot(text, file);
}

absl::StatusOr<PoolReplay::Options> BoundsOf(const Context& context, const ReplayOptions& options) {
  PoolReplay::Options bounds{.library = options.library};
  if (!options.to.empty()) {
    ASSIGN_OR_RETURN(bounds.to_ms, ParseMoment("--to", options.to, context.Now().count()));
  }
  if (options.from_snapshot.empty()) return bounds;
  ASSIGN_OR_RETURN(bounds.from, ReadSnapshot(options.from_snapshot));
  return bounds;
}

}  // namespace fluxqueue::cli
