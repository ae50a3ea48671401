// An archive: a folder for each pool, with what came of its log from time to time as files of
// `fluxqueue events dump`, each from where the one before it ends. So a log outlives its topic's
// retention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libs/verify/event_file.h"

#include "absl/status/statusor.h"
#include "tools/fluxqueue/event_source.h"

namespace fluxqueue::cli {

// The paths of its files, in their order.
std::vector<std::string> ArchiveFiles(const std::string& folder);
// InvalidArgument: it is no file of an archive.
absl::StatusOr<verify::EventFileHeader> ReadArchiveHeader(const std::string& file);

struct Archived {
  uint64_t records = 0;
  // The log was kept no longer from where the archive ended: what was between is lost.
  bool hole = false;
};

// Adds what is new in `source`, a pool's log, to the folder of the pool, which is made if there is
// none; a file is there as a whole or not at all. FailedPrecondition: the log ends before the
// archive does. REQUIRES: the source's header says from where to where it reaches.
absl::StatusOr<Archived> AddToArchive(EventSource& source, const std::string& folder);

}  // namespace fluxqueue::cli
