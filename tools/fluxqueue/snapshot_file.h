// Snapshots (libs/verify/snapshot_file.h) on disk, gzipped.
#pragma once

#include <string>

#include "fluxqueue/replay/v1/snapshot.pb.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cli {

// `name`: of the file, for people. InvalidArgument: it is no snapshot, or not for this release.
absl::StatusOr<replay::v1::Snapshot> ReadSnapshot(const std::string& path, const std::string& name);
// "-": to standard output. InvalidArgument: it cannot be written.
absl::Status WriteSnapshot(const replay::v1::Snapshot& snapshot, const std::string& path);

}  // namespace fluxqueue::cli
