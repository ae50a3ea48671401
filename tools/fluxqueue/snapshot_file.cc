#include "tools/fluxqueue/snapshot_file.h"

#include "libs/base/status_macros.h"
#include "libs/verify/snapshot_file.h"

#include "tools/fluxqueue/gzip_file.h"
#include "tools/fluxqueue/load/trace_file.h"

namespace fluxqueue::cli {

absl::StatusOr<replay::v1::Snapshot> ReadSnapshot(const std::string& path,
                                                  const std::string& name) {
  ASSIGN_OR_RETURN(const std::string text, load::ReadTraceFile(path));
  return verify::ParseSnapshot(text, name);
}

absl::Status WriteSnapshot(const replay::v1::Snapshot& snapshot, const std::string& path) {
  ASSIGN_OR_RETURN(GzipWriter file, GzipWriter::Open(path));
  file.Write(verify::FormatSnapshot(snapshot, FLUXQUEUE_VERSION));
  return file.Close();
}

}  // namespace fluxqueue::cli
