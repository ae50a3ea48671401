#include "tools/fluxqueue/replay_options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/archive_snapshots.h"
#include "tools/fluxqueue/event_archive.h"
#include "tools/fluxqueue/s3_store.h"
#include "tools/fluxqueue/snapshot_file.h"
#include "tools/fluxqueue/time_range.h"

namespace fluxqueue::cli {
namespace {

using Snapshot = std::optional<replay::v1::Snapshot>;

std::optional<int64_t> ParseOffset(const std::string& text) {
  int64_t offset = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, offset);
  if (error != std::errc() || at != end || offset < 0) return std::nullopt;
  return offset;
}

absl::Status ReadBounds(const Context& context, const ReplayOptions& options, ReplayInput* input) {
  const int64_t now_ms = context.Now().count();
  if (const auto offset = ParseOffset(options.from)) {
    input->first_offset = *offset;
  } else if (!options.from.empty()) {
    ASSIGN_OR_RETURN(input->first_ms, ParseMoment("--from", options.from, now_ms));
  }
  if (const auto offset = ParseOffset(options.to)) {
    input->bounds.to_offset = *offset;
  } else if (!options.to.empty()) {
    ASSIGN_OR_RETURN(input->bounds.to_ms, ParseMoment("--to", options.to, now_ms));
  }
  return absl::OkStatus();
}

absl::StatusOr<Snapshot> SnapshotFor(const std::shared_ptr<ArchiveStore>& archive,
                                     const ReplayOptions& options,
                                     Reading::Begin begin,
                                     const ReplayInput& input) {
  const LogPlace end{input.bounds.to_offset, input.bounds.to_ms};
  if (!options.from.empty()) {
    LogPlace first = end;
    if (input.first_offset > 0) first.offset = std::min(first.offset, input.first_offset);
    if (input.first_ms > 0) first.time_ms = std::min(first.time_ms, input.first_ms);
    return NearestSnapshot(archive, first);
  }
  switch (begin) {
    case Reading::Begin::kJob:
      return SnapshotBeforeJob(archive, options.job, end);
    case Reading::Begin::kPool:
      return NearestSnapshot(archive, end);
    case Reading::Begin::kLog:
      return Snapshot();
  }
  return Snapshot();
}

}  // namespace

absl::StatusOr<ReplayInput> OpenReplay(const Context& context,
                                       const ReplayOptions& options,
                                       const Reading& reading) {
  ReplayInput input;
  input.bounds = {.library = options.library, .compares_facts = reading.facts};
  RETURN_IF_ERROR(ReadBounds(context, options, &input));
  ASSIGN_OR_RETURN(const std::shared_ptr<ArchiveStore> archive, ArchiveAt(options.file));
  if (archive == nullptr && !options.from.empty()) {
    return InvalidArgument(
        "--from {}: this is for an archive's snapshots, and {} is none: --from-snapshot FILE names "
        "one, and without it the log is replayed from its beginning",
        options.from,
        options.file);
  }
  Snapshot& from = input.bounds.from;
  if (!options.from_snapshot.empty()) {
    ASSIGN_OR_RETURN(from, ReadSnapshot(options.from_snapshot, options.from_snapshot));
  } else if (archive != nullptr) {
    ASSIGN_OR_RETURN(from, SnapshotFor(archive, options, reading.begin, input));
  }
  if (archive != nullptr) {
    const int64_t first = from.has_value() ? from->next_offset() : 0;
    input.source = EventsOfArchive(archive, first, reading.facts);
  } else if (!options.file.empty()) {
    input.source = EventsOfFile(options.file);
  } else {
    ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig(reading.written));
    ASSIGN_OR_RETURN(input.source, EventsOfPool(config, options.pool));
  }
  return input;
}

absl::StatusOr<std::shared_ptr<ArchiveStore>> ArchiveAt(const std::string& path) {
  std::error_code ignored;
  if (IsS3(path) || std::filesystem::is_directory(path, ignored)) return OpenArchive(path);
  return nullptr;
}

}  // namespace fluxqueue::cli
