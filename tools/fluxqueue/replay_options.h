// What `fluxqueue replay` was asked, and what it then reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/fluxqueue/archive_store.h"
#include "tools/fluxqueue/context.h"
#include "tools/fluxqueue/event_source.h"
#include "tools/fluxqueue/pool_replay.h"

namespace fluxqueue::cli {

struct ReplayOptions {
  std::string pool{};
  std::string library{};
  std::string file{};
  std::string from_snapshot{};
  std::string from{};
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

// How a mode reads a log.
struct Reading {
  // Where it begins in an archive, if neither --from nor --from-snapshot says so.
  enum class Begin {
    kLog,   // at its beginning
    kJob,   // at the snapshot before the job was submitted
    kPool,  // at the last snapshot: only what becomes of the pool is wanted
  };
  Begin begin = Begin::kLog;
  bool facts = false;
  std::string written{};  // a file that the command writes, if any
};

struct ReplayInput {
  std::unique_ptr<EventSource> source;
  PoolReplay::Options bounds;
  // --from, as the snapshot may be of before.
  int64_t first_offset = 0;
  int64_t first_ms = 0;

  bool Shows(const verify::EventLine& line) const {
    return line.offset >= first_offset && line.time.count() >= first_ms;
  }
};

// Of the file, of the archive or of the system.
absl::StatusOr<ReplayInput> OpenReplay(const Context& context,
                                       const ReplayOptions& options,
                                       const Reading& reading);

// Null: `path` is a file.
absl::StatusOr<std::shared_ptr<ArchiveStore>> ArchiveAt(const std::string& path);

}  // namespace fluxqueue::cli
