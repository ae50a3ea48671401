// Snapshots in an archive (event_archive.h), so that a replay need not begin where the log does:
//
//   snapshots/0000000000000005120-2026-11-28.gz    the first offset that is not in it, and its day
//
// There is one for each day of the log's time (UTC) on which something was said: the cores as they
// stood at the day's end, just before the first record of a later day. So it says the same however
// often the archive is added to. All are kept; each may be deleted, and then an older one does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "fluxqueue/replay/v1/snapshot.pb.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/fluxqueue/archive_store.h"

namespace fluxqueue::cli {

struct SnapshotName {
  int64_t next_offset = 0;
  int64_t end_ms = 0;  // of its day: nothing in it is of then or later
};
std::string FormatSnapshotName(int64_t next_offset, int64_t time_ms);
// Unset: it is no such name.
std::optional<SnapshotName> ParseSnapshotName(const std::string& name);

// A place in a log: what is before both.
struct LogPlace {
  int64_t offset = std::numeric_limits<int64_t>::max();
  int64_t time_ms = std::numeric_limits<int64_t>::max();
};

// The newest one that has nothing from `place` on; unset: there is none. One that cannot be used is
// passed over, and standard error says why.
absl::StatusOr<std::optional<replay::v1::Snapshot>> NearestSnapshot(
    const std::shared_ptr<ArchiveStore>& store, const LogPlace& place);

// The same, so that the job (as JobStory takes it) was submitted behind it for the last time before
// `place`.
absl::StatusOr<std::optional<replay::v1::Snapshot>> SnapshotBeforeJob(
    const std::shared_ptr<ArchiveStore>& store, const std::string& job, LogPlace place);

struct SnapshotsKept {
  size_t added = 0;
  // The log cannot be replayed, so that there are no more of them. OK: it can.
  absl::Status stopped;
};

// Adds those that the archive does not have yet: replays from its newest one to its end. `library`:
// Fluxion's.
absl::StatusOr<SnapshotsKept> KeepSnapshots(const std::shared_ptr<ArchiveStore>& store,
                                            const std::string& library);

}  // namespace fluxqueue::cli
