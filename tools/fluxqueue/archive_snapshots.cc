#include "tools/fluxqueue/archive_snapshots.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/base/clock.h"
#include "libs/base/status_macros.h"

#include "tools/fluxqueue/event_archive.h"
#include "tools/fluxqueue/job_story.h"
#include "tools/fluxqueue/pool_replay.h"
#include "tools/fluxqueue/snapshot_file.h"
#include "tools/fluxqueue/time_range.h"

namespace fluxqueue::cli {
namespace {

using replay::v1::Snapshot;
using verify::EventFileHeader;
using verify::EventLine;

constexpr std::string_view kFolder = "snapshots/";
constexpr std::string_view kSuffix = ".gz";
constexpr int64_t kDayMs = 86'400'000;
constexpr size_t kDayText = sizeof("2026-11-28") - 1;

// Which can be read, and is of the archive's log as the names and headers of its files have it.
absl::StatusOr<Snapshot> ReadChecked(ArchiveStore& store,
                                     const std::string& name,
                                     const EventFileHeader& first,
                                     const EventFileHeader& last) {
  const std::string path = store.PathOf(name);
  ASSIGN_OR_RETURN(const LocalFile file, store.Get(name));
  ASSIGN_OR_RETURN(Snapshot snapshot, ReadSnapshot(file.path(), path));
  if (snapshot.pool() != first.pool) {
    return InvalidArgument(
        "{}: it is of pool {}, and the archive of pool {}", path, snapshot.pool(), first.pool);
  }
  if (snapshot.next_offset() >= first.from.log && snapshot.next_offset() <= last.to.log) {
    return snapshot;
  }
  return InvalidArgument("{}: it goes on at offset {}, and the archive has those from {} to {}",
                         path,
                         snapshot.next_offset(),
                         first.from.log,
                         last.to.log);
}

// Times only rise, so a log that began again has later ones at the same offsets.
absl::Status CheckIsOfLog(const std::shared_ptr<ArchiveStore>& store,
                          const std::string& name,
                          const Snapshot& snapshot) {
  const int64_t end = snapshot.next_offset();
  const auto before = EventsOfArchive(store, std::max<int64_t>(end - 1, 0), /*facts=*/false);
  const absl::Status status = before->Read([&](const EventLine& line) -> absl::Status {
    if (line.offset >= end) return absl::CancelledError();
    if (line.time.count() <= snapshot.time_ms()) return absl::OkStatus();
    return InvalidArgument("{}: it is of a log that has begun again since", store->PathOf(name));
  });
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<std::string>> SnapshotsBefore(ArchiveStore& store,
                                                         const LogPlace& place) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, store.List(std::string(kFolder)));
  std::erase_if(names, [&place](const std::string& file) {
    const auto name = ParseSnapshotName(file);
    return !name.has_value() || name->next_offset > place.offset || name->end_ms > place.time_ms;
  });
  return names;
}

// Whether the job is submitted between the snapshot and the place, and not known to the snapshot.
absl::StatusOr<bool> IsSubmittedBehind(const std::shared_ptr<ArchiveStore>& store,
                                       const std::string& job,
                                       const Snapshot& snapshot,
                                       const LogPlace& place) {
  JobStory story(job, nullptr);
  const auto source = EventsOfArchive(store, snapshot.next_offset(), /*facts=*/false);
  const absl::Status status = source->Read([&](const EventLine& line) -> absl::Status {
    if (line.offset >= place.offset || line.time.count() >= place.time_ms) {
      return absl::CancelledError();
    }
    if (line.offset >= snapshot.next_offset()) story.Read(line);
    return absl::OkStatus();
  });
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  return !story.id().empty() && !snapshot.queue().jobs().contains(story.id());
}

// Keeps a snapshot in front of each record that is of a later day than the one before it.
class Keeper {
 public:
  Keeper(ArchiveStore& store, const Snapshot* from) : store_(store) {
    if (from != nullptr) last_ms_ = from->time_ms();
  }

  void Before(const PoolReplay& replay, const EventLine& line) {
    const int64_t time_ms = line.time.count();
    if (folded_ && time_ms / kDayMs > last_ms_ / kDayMs) {
      status_.Update(Keep(replay.replayer().Save(replay.pool())));
    }
    folded_ = true;
    last_ms_ = std::max(last_ms_, time_ms);
  }

  const absl::Status& status() const { return status_; }
  size_t added() const { return added_; }

 private:
  absl::Status Keep(const Snapshot& snapshot) {
    ASSIGN_OR_RETURN(const LocalFile file, store_.Scratch("snapshot"));
    RETURN_IF_ERROR(WriteSnapshot(snapshot, file.path()));
    const std::string name = FormatSnapshotName(snapshot.next_offset(), snapshot.time_ms());
    RETURN_IF_ERROR(store_.Put(file, name));
    ++added_;
    return absl::OkStatus();
  }

  ArchiveStore& store_;
  int64_t last_ms_ = 0;
  bool folded_ = false;  // something that is not in the snapshot that it began with
  absl::Status status_;
  size_t added_ = 0;
};

}  // namespace

std::string FormatSnapshotName(int64_t next_offset, int64_t time_ms) {
  return fmt::format("{}{:019}-{}{}",
                     kFolder,
                     next_offset,
                     FormatTime(Millis(time_ms)).substr(0, kDayText),
                     kSuffix);
}

std::optional<SnapshotName> ParseSnapshotName(const std::string& name) {
  const size_t end = name.size() - std::min(name.size(), kSuffix.size());
  if (!name.starts_with(kFolder) || !name.ends_with(kSuffix) || end < kFolder.size()) {
    return std::nullopt;
  }
  SnapshotName result;
  const auto [dash, error] =
      std::from_chars(name.data() + kFolder.size(), name.data() + end, result.next_offset);
  const size_t day = static_cast<size_t>(dash - name.data()) + 1;
  if (error != std::errc() || *dash != '-' || end != day + kDayText) return std::nullopt;
  const auto begin = ParseMoment("", name.substr(day, kDayText), 0);
  if (!begin.ok()) return std::nullopt;
  result.end_ms = *begin + kDayMs;
  return result;
}

absl::StatusOr<std::optional<Snapshot>> NearestSnapshot(const std::shared_ptr<ArchiveStore>& store,
                                                        const LogPlace& place) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, SnapshotsBefore(*store, place));
  if (names.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ArchiveFiles(*store));
  ASSIGN_OR_RETURN(const EventFileHeader first, ReadArchiveHeader(*store, files.front()));
  ASSIGN_OR_RETURN(const EventFileHeader last, ReadArchiveHeader(*store, files.back()));
  for (; !names.empty(); names.pop_back()) {
    absl::StatusOr<Snapshot> snapshot = ReadChecked(*store, names.back(), first, last);
    const absl::Status status =
        snapshot.ok() ? CheckIsOfLog(store, names.back(), *snapshot) : snapshot.status();
    if (status.ok()) return std::optional(*std::move(snapshot));
    if (!absl::IsInvalidArgument(status)) return status;
    fmt::print(stderr, "passed over: {}\n", Message(status));
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Snapshot>> SnapshotBeforeJob(
    const std::shared_ptr<ArchiveStore>& store, const std::string& job, LogPlace place) {
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Snapshot> snapshot, NearestSnapshot(store, place));
    if (!snapshot.has_value()) return snapshot;
    ASSIGN_OR_RETURN(const bool found, IsSubmittedBehind(store, job, *snapshot, place));
    if (found) return snapshot;
    place.offset = snapshot->next_offset() - 1;
  }
}

absl::StatusOr<SnapshotsKept> KeepSnapshots(const std::shared_ptr<ArchiveStore>& store,
                                            const std::string& library) {
  auto nearest = NearestSnapshot(store, {});
  if (IsPoison(nearest.status())) return SnapshotsKept{.stopped = nearest.status()};
  ASSIGN_OR_RETURN(std::optional<Snapshot> from, std::move(nearest));
  Keeper keeper(*store, from.has_value() ? &*from : nullptr);
  const auto source =
      EventsOfArchive(store, from.has_value() ? from->next_offset() : 0, /*facts=*/false);
  const PoolReplay* running = nullptr;
  PoolReplay replay(*source,
                    {.library = library, .from = std::move(from), .keeps_rows = true},
                    {.before = [&](const EventLine& line) { keeper.Before(*running, line); },
                     .after = [&keeper] { return keeper.status(); }});
  running = &replay;
  const absl::Status status = replay.Run();
  RETURN_IF_ERROR(keeper.status());
  if (!status.ok() && !IsPoison(status)) return status;
  return SnapshotsKept{keeper.added(), status};
}

}  // namespace fluxqueue::cli
