// A pool's snapshot (Replayer::Save) as the text of a file: a line that says what it is, then the
// message. `fluxqueue replay --save` writes it, gzipped:
//
//   {"fluxqueue_snapshot":1,"build":"1.4.0","rules":14}
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "fluxqueue/replay/v1/snapshot.pb.h"

#include "absl/status/statusor.h"

namespace fluxqueue::verify {

inline constexpr int kSnapshotFileVersion = 1;

// `build`: of this program.
std::string FormatSnapshot(const replay::v1::Snapshot& snapshot, std::string_view build);
// InvalidArgument names `file`, and what is wrong with it: it is none, or of a release that knows
// more than this one.
absl::StatusOr<replay::v1::Snapshot> ParseSnapshot(std::string_view text, std::string_view file);

}  // namespace fluxqueue::verify
