// An archive: for each pool a folder, with what came of its log from time to time as files of
// `fluxqueue events dump`, each from where the one before it ends. So a log outlives its topic's
// retention.
//
//   00000001-0.gz  00000002-5120.gz  …     a number, and the first offset that the file may have
//   snapshots/                             archive_snapshots.h
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libs/verify/event_file.h"

#include "absl/status/statusor.h"
#include "tools/fluxqueue/archive_store.h"
#include "tools/fluxqueue/event_source.h"

namespace fluxqueue::cli {

// Its files, in their order. NotFound: there is none.
absl::StatusOr<std::vector<std::string>> ArchiveFiles(ArchiveStore& store);
// InvalidArgument: it is no file of an archive.
absl::StatusOr<verify::EventFileHeader> ReadArchiveHeader(ArchiveStore& store,
                                                          const std::string& file);

struct Archived {
  uint64_t records = 0;
  // The log was kept no longer from where the archive ended: what was between is lost.
  bool hole = false;
};

// Adds what is new in `source`, a pool's log, to the pool's archive. FailedPrecondition: the log
// ends before the archive does. REQUIRES: the source's header says from where to where it reaches.
absl::StatusOr<Archived> AddToArchive(EventSource& source, ArchiveStore& store);

// The archive as one log, from the file on that has the record at `from`. `facts`: those that may
// come of such records, or none.
std::unique_ptr<EventSource> EventsOfArchive(std::shared_ptr<ArchiveStore> store,
                                             int64_t from = 0,
                                             bool facts = true);

}  // namespace fluxqueue::cli
