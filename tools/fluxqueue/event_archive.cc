#include "tools/fluxqueue/event_archive.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <utility>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/gzip_file.h"

namespace fluxqueue::cli {
namespace {

using verify::EventFileHeader;
using verify::EventLine;
using verify::EventReach;

constexpr std::string_view kSuffix = ".gz";
// Has the header, which is packed by itself.
constexpr size_t kHeaderBytes = size_t{1} << 16;

// The records of a source that an archive does not have yet, into a file.
class Addition {
 public:
  Addition(EventReach before, GzipWriter file)
      : reach_(std::move(before)), file_(std::move(file)) {}

  void Take(const EventLine& line) {
    int64_t& reached = line.message.has_job_fact() ? reach_.facts[line.partition] : reach_.log;
    if (line.offset < reached) return;
    reached = line.offset + 1;
    file_.Write(FormatEventLine(line));
    ++records_;
  }
  absl::Status Close() { return file_.Close(); }

  uint64_t records() const { return records_; }
  const EventReach& reach() const { return reach_; }

 private:
  EventReach reach_;
  GzipWriter file_;
  uint64_t records_ = 0;
};

// The header alone, then the records: a gzipped file may have several parts.
absl::Status Publish(const EventFileHeader& header,
                     const LocalFile& records,
                     ArchiveStore& store,
                     const std::string& name) {
  ASSIGN_OR_RETURN(const LocalFile whole, store.Scratch("whole"));
  ASSIGN_OR_RETURN(GzipWriter writer, GzipWriter::Open(whole.path()));
  writer.Write(FormatEventFileHeader(header));
  RETURN_IF_ERROR(writer.Close());
  std::ofstream to(whole.path(), std::ios::binary | std::ios::app);
  std::ifstream from(records.path(), std::ios::binary);
  to << from.rdbuf();
  to.close();
  if (!from || !to) return InvalidArgument("{}: cannot be written", whole.path());
  return store.Put(whole, name);
}

// "00000002-5120.gz": 2 and 5120.
std::pair<uint64_t, int64_t> PlaceOf(const std::string& file) {
  uint64_t number = 0;
  int64_t begin = 0;
  const char* const end = file.data() + file.size();
  const auto [dash, error] = std::from_chars(file.data(), end, number);
  if (error == std::errc() && dash != end) std::from_chars(dash + 1, end, begin);
  return {number, begin};
}

std::string NextName(const std::vector<std::string>& files, int64_t begin) {
  const uint64_t last = files.empty() ? 0 : PlaceOf(files.back()).first;
  return fmt::format("{:08}-{}{}", last + 1, begin, kSuffix);
}

// What of the source is behind `before`, into a file.
absl::StatusOr<Addition> Collect(EventSource& source,
                                 const EventReach& before,
                                 const std::string& records) {
  ASSIGN_OR_RETURN(GzipWriter file, GzipWriter::Open(records));
  Addition addition(before, std::move(file));
  RETURN_IF_ERROR(source.Read([&](const EventLine& line) {
    addition.Take(line);
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(addition.Close());
  return addition;
}

absl::Status CheckGoesOn(const EventFileHeader& log,
                         const EventReach& before,
                         const ArchiveStore& store) {
  if (log.to.log >= before.log) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "{}: it reaches to offset {}, and the log does not: the log was lost and "
                    "began again; take another folder for it",
                    store.PathOf(""),
                    before.log);
}

absl::StatusOr<EventReach> ReachOf(ArchiveStore& store, const std::vector<std::string>& files) {
  if (files.empty()) return EventReach();
  ASSIGN_OR_RETURN(const EventFileHeader last, ReadArchiveHeader(store, files.back()));
  return last.to;
}

absl::StatusOr<std::vector<std::string>> ListFiles(ArchiveStore& store) {
  ASSIGN_OR_RETURN(std::vector<std::string> files, store.List(""));
  std::erase_if(files, [](const std::string& file) { return !file.ends_with(kSuffix); });
  return files;
}

// Each begins where the one before it ends.
class ArchiveEvents final : public EventSource {
 public:
  ArchiveEvents(std::shared_ptr<ArchiveStore> store, int64_t from, bool facts)
      : store_(std::move(store)), from_(from), facts_(facts) {}

  absl::Status Read(const Each& each) override {
    ASSIGN_OR_RETURN(const std::vector<std::string> files, Files());
    for (const bool facts : {true, false}) {
      if (facts && !facts_) continue;
      for (const std::string& file : files) RETURN_IF_ERROR(ReadPart(file, facts, each));
    }
    return absl::OkStatus();
  }
  const EventFileHeader& header() const override { return header_; }

 private:
  // From the last one on that begins no later than wanted.
  absl::StatusOr<std::vector<std::string>> Files() {
    ASSIGN_OR_RETURN(std::vector<std::string> files, ArchiveFiles(*store_));
    const auto later = std::find_if(files.begin() + 1, files.end(), [this](const auto& file) {
      return PlaceOf(file).second > from_;
    });
    files.erase(files.begin(), later - 1);
    ASSIGN_OR_RETURN(header_, ReadArchiveHeader(*store_, files.front()));
    int64_t end = header_.from.log;
    for (const std::string& file : files) {
      ASSIGN_OR_RETURN(const EventFileHeader header, ReadArchiveHeader(*store_, file));
      if (header.from.log != end) {
        return MakeStatus(absl::StatusCode::kFailedPrecondition,
                          "{}: it begins at offset {}, and the file before it ends at {}: what was "
                          "between is lost",
                          store_->PathOf(file),
                          header.from.log,
                          end);
      }
      end = header.to.log;
    }
    header_.to.log = end;
    return files;
  }

  absl::Status ReadPart(const std::string& name, bool facts, const Each& each) {
    ASSIGN_OR_RETURN(const LocalFile file, store_->Get(name));
    verify::EventFileReader reader(store_->PathOf(name));
    bool over = false;  // the facts are
    const absl::Status status =
        ReadGzipLines(file.path(), [&](std::string_view text) -> absl::Status {
          ASSIGN_OR_RETURN(const std::optional<EventLine> line, reader.Read(text));
          if (!line.has_value()) return absl::OkStatus();
          const bool is_fact = line->message.has_job_fact();
          over = facts && !is_fact;
          if (over) return absl::CancelledError();
          return is_fact == facts ? each(*line) : absl::OkStatus();
        });
    return over ? absl::OkStatus() : status;
  }

  const std::shared_ptr<ArchiveStore> store_;
  const int64_t from_;
  const bool facts_;
  EventFileHeader header_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ArchiveFiles(ArchiveStore& store) {
  ASSIGN_OR_RETURN(std::vector<std::string> files, ListFiles(store));
  if (!files.empty()) return files;
  return MakeStatus(absl::StatusCode::kNotFound,
                    "{}: there is no file of `fluxqueue events archive`",
                    store.PathOf(""));
}

absl::StatusOr<EventFileHeader> ReadArchiveHeader(ArchiveStore& store, const std::string& file) {
  ASSIGN_OR_RETURN(const LocalFile local, store.Get(file, kHeaderBytes));
  verify::EventFileReader reader(store.PathOf(file));
  const absl::Status status =
      ReadGzipLines(local.path(), [&](std::string_view line) -> absl::Status {
        RETURN_IF_ERROR(reader.Read(line).status());
        return absl::CancelledError();
      });
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  const EventFileHeader& header = reader.header();
  if (header.archived) return header;
  return InvalidArgument("{}: it is no file of `fluxqueue events archive`", store.PathOf(file));
}

absl::StatusOr<Archived> AddToArchive(EventSource& source, ArchiveStore& store) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(store));
  ASSIGN_OR_RETURN(EventReach before, ReachOf(store, files));
  ASSIGN_OR_RETURN(const LocalFile records, store.Scratch("records"));
  ASSIGN_OR_RETURN(const Addition addition, Collect(source, before, records.path()));
  EventFileHeader header = source.header();
  RETURN_IF_ERROR(CheckGoesOn(header, before, store));
  const int64_t first = header.from.log;
  const Archived archived{addition.records(), !files.empty() && first > before.log};
  EventReach reach = addition.reach();
  reach.log = header.to.log;  // with what was of other pools
  if (reach == before) return archived;
  if (files.empty() || archived.hole) before.log = first;
  header.whole = header.whole && files.empty();
  header.from = before;
  header.to = std::move(reach);
  RETURN_IF_ERROR(Publish(header, records, store, NextName(files, before.log)));
  return archived;
}

std::unique_ptr<EventSource> EventsOfArchive(std::shared_ptr<ArchiveStore> store,
                                             int64_t from,
                                             bool facts) {
  return std::make_unique<ArchiveEvents>(std::move(store), from, facts);
}

}  // namespace fluxqueue::cli
