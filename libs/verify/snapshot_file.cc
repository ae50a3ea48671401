#include "libs/verify/snapshot_file.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/model/rules.h"

namespace fluxqueue::verify {

using nlohmann::json;

std::string FormatSnapshot(const replay::v1::Snapshot& snapshot, std::string_view build) {
  const json head = {{"fluxqueue_snapshot", kSnapshotFileVersion},
                     {"build", build},
                     {"rules", model::kLatestRules}};
  return head.dump() + "\n" + snapshot.SerializeAsString();
}

absl::StatusOr<replay::v1::Snapshot> ParseSnapshot(std::string_view text, std::string_view file) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const json head = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!head.is_object() || !head.contains("fluxqueue_snapshot")) {
    return InvalidArgument("{}: it is no snapshot, as `fluxqueue replay --save` writes it", file);
  }
  if (head.value("fluxqueue_snapshot", 0) != kSnapshotFileVersion ||
      head.value("rules", 0U) > model::kLatestRules) {
    return InvalidArgument(
        "{}: a snapshot of version {} and rules {}, which release {} made; this program reads "
        "version {} and rules up to {}",
        file,
        head.value("fluxqueue_snapshot", 0),
        head.value("rules", 0U),
        head.value("build", ""),
        kSnapshotFileVersion,
        model::kLatestRules);
  }
  replay::v1::Snapshot snapshot;
  const std::string_view bytes = text.substr(std::min(line.size() + 1, text.size()));
  if (!snapshot.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("{}: the snapshot is damaged", file);
  }
  return snapshot;
}

}  // namespace fluxqueue::verify
