// What `fluxqueue replay` was asked, and where it then reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"
#include "tools/fluxqueue/event_source.h"
#include "tools/fluxqueue/pool_replay.h"

namespace fluxqueue::cli {

struct ReplayOptions {
  std::string pool{};
  std::string library{};
  std::string file{};
  std::string from_snapshot{};
  std::string to{};
  bool verbose = false;
  // At most one of these; none: each decision is compared.
  bool inspect = false;
  std::string save{};
  std::string job{};
  bool step = false;
  std::vector<std::string> what_if{};
  std::string plot{};  // of a what-if
};

// The file's, or the system's. `written`: a file that the command writes, if any.
absl::StatusOr<std::unique_ptr<EventSource>> SourceOf(const Context& context,
                                                      const ReplayOptions& options,
                                                      const std::string& written = "");
// Of `replay --save`.
absl::StatusOr<replay::v1::Snapshot> ReadSnapshot(const std::string& file);
// From which snapshot, and until when.
absl::StatusOr<PoolReplay::Options> BoundsOf(const Context& context, const ReplayOptions& options);

}  // namespace fluxqueue::cli
