#include "tools/fluxqueue/event_archive.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <utility>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/gzip_file.h"

namespace fluxqueue::cli {
namespace {

using verify::EventFileHeader;
using verify::EventLine;
using verify::EventReach;

constexpr std::string_view kSuffix = ".gz";

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
                     const std::string& records,
                     const std::string& path) {
  const std::string whole = path + ".part";
  ASSIGN_OR_RETURN(GzipWriter writer, GzipWriter::Open(whole));
  writer.Write(FormatEventFileHeader(header));
  RETURN_IF_ERROR(writer.Close());
  std::ofstream to(whole, std::ios::binary | std::ios::app);
  std::ifstream from(records, std::ios::binary);
  to << from.rdbuf();
  to.close();
  if (!from || !to) return InvalidArgument("{}: cannot be written", whole);
  std::error_code error;
  std::filesystem::rename(whole, path, error);
  if (error) return InvalidArgument("{}: cannot be written: {}", path, error.message());
  return absl::OkStatus();
}

// Files are numbered, and named with where they begin.
std::string NextName(const std::vector<std::string>& files, int64_t begin) {
  uint64_t number = 0;
  if (!files.empty()) {
    const std::string last = std::filesystem::path(files.back()).filename().string();
    std::from_chars(last.data(), last.data() + last.size(), number);
  }
  return fmt::format("{:08}-{}{}", number + 1, begin, kSuffix);
}

// In the folder, for what is new.
absl::StatusOr<std::string> MakeRecordsFile(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return InvalidArgument("{}: cannot be made: {}", folder, error.message());
  return folder + "/records.part";
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
                         const std::string& folder) {
  if (log.to.log >= before.log) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "{}: it reaches to offset {}, and the log does not: the log was lost and "
                    "began again; take another folder for it",
                    folder,
                    before.log);
}

absl::StatusOr<EventReach> ReachOf(const std::vector<std::string>& files) {
  if (files.empty()) return EventReach();
  ASSIGN_OR_RETURN(const EventFileHeader last, ReadArchiveHeader(files.back()));
  return last.to;
}

}  // namespace

std::vector<std::string> ArchiveFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().string().ends_with(kSuffix)) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<EventFileHeader> ReadArchiveHeader(const std::string& file) {
  verify::EventFileReader reader(file);
  const absl::Status status = ReadGzipLines(file, [&](std::string_view line) -> absl::Status {
    RETURN_IF_ERROR(reader.Read(line).status());
    return absl::CancelledError();
  });
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  const EventFileHeader& header = reader.header();
  if (header.archived) return header;
  return InvalidArgument("{}: it is no file of `fluxqueue events archive`", file);
}

absl::StatusOr<Archived> AddToArchive(EventSource& source, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string records, MakeRecordsFile(folder));
  const std::vector<std::string> files = ArchiveFiles(folder);
  ASSIGN_OR_RETURN(EventReach before, ReachOf(files));
  ASSIGN_OR_RETURN(const Addition addition, Collect(source, before, records));
  EventFileHeader header = source.header();
  RETURN_IF_ERROR(CheckGoesOn(header, before, folder));
  const int64_t first = header.from.log;
  const Archived archived{addition.records(), !files.empty() && first > before.log};
  EventReach reach = addition.reach();
  reach.log = header.to.log;  // with what was of other pools
  if (reach != before) {
    if (files.empty() || archived.hole) before.log = first;
    header.whole = header.whole && files.empty();
    header.from = before;
    header.to = std::move(reach);
    RETURN_IF_ERROR(Publish(header, records, folder + "/" + NextName(files, before.log)));
  }
  std::error_code ignored;
  std::filesystem::remove(records, ignored);
  return archived;
}

}  // namespace fluxqueue::cli
