#include "libs/trace/swf.h"

#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/trace/records.h"

namespace fluxqueue::trace {
namespace {

using internal::Record;

constexpr std::string_view kPrefix = "swf-";
constexpr size_t kFields = 18;
enum Field : size_t {
  kJob = 0,
  kSubmit = 1,
  kRunTime = 3,
  kUsed = 4,
  kAsked = 7,
  kTimeAsked = 8,
  kStatus = 10,
  kUser = 11,
  kQueue = 14
};

constexpr int64_t kUnknown = -1;
constexpr int64_t kFailed = 0;
constexpr int64_t kMaxProcessors = 1'000'000;
constexpr int64_t kMillicores = 1000;

// A number that names something; unknown is the empty text.
std::string Name(Record* record, Field field, std::string_view name) {
  const int64_t number =
      record->Integer(field, name, kUnknown, std::numeric_limits<int64_t>::max());
  return number == kUnknown ? std::string() : fmt::format("{}", number);
}

struct SwfJob {
  TraceJob job;
  bool runs = true;
  bool has_processors = true;
};

absl::StatusOr<SwfJob> ReadJob(Record record) {
  if (record.size() != kFields) {
    return record.Error(
        fmt::format("it has {} fields; a job in the Standard Workload Format has {}: is this an "
                    "SWF file?",
                    record.size(),
                    kFields));
  }
  SwfJob read;
  read.job.name = fmt::format(
      "{}{}", kPrefix, record.Integer(kJob, "1 (job)", 0, std::numeric_limits<int64_t>::max()));
  read.job.submit_s = record.Seconds(kSubmit, "2 (submit time)", 0);
  read.job.run_s = record.Seconds(kRunTime, "4 (run time)", kUnknown);
  read.job.slots = record.Integer(kUsed, "5 (processors used)", kUnknown, kMaxProcessors);
  if (read.job.slots <= 0) {
    read.job.slots = record.Integer(kAsked, "8 (processors asked)", kUnknown, kMaxProcessors);
  }
  read.job.requested_s = record.Seconds(kTimeAsked, "9 (time asked)", kUnknown);
  read.job.failed =
      record.Integer(kStatus, "11 (status)", kUnknown, std::numeric_limits<int64_t>::max()) ==
      kFailed;
  read.job.user = Name(&record, kUser, "12 (user)");
  read.job.queue = Name(&record, kQueue, "15 (queue)");
  if (!record.status().ok()) return record.status();
  read.job.line = record.line();
  read.job.requests = {{"cpu", kMillicores}};
  read.runs = read.job.run_s >= 0;
  read.has_processors = read.job.slots > 0;
  return read;
}

}  // namespace

absl::StatusOr<Trace> ParseSwf(std::string_view text, const Source& source) {
  Trace trace;
  std::unordered_set<std::string> names;
  size_t number = 0;
  while (source.limit == 0 || names.size() < source.limit) {
    const std::optional<std::string_view> line = internal::NextLine(&text);
    if (!line.has_value()) break;
    ++number;
    std::vector<std::string_view> words = internal::SplitWords(*line);
    if (words.empty() || words.front().front() == ';') continue;
    Record record(source.file, number, std::move(words));
    ASSIGN_OR_RETURN(SwfJob read, ReadJob(record));
    if (!names.insert(read.job.name).second) {
      return record.Error(fmt::format("{} is here for the second time", read.job.name));
    }
    if (!read.runs) {
      ++trace.without_run_time;
    } else if (!read.has_processors) {
      ++trace.without_processors;
    } else {
      trace.jobs.push_back(std::move(read.job));
    }
  }
  internal::Arrange(&trace);
  return trace;
}

std::string FormatSwf(const std::vector<TraceJob>& jobs, std::string_view comment) {
  std::string text;
  while (!comment.empty()) text += fmt::format("; {}\n", *internal::NextLine(&comment));
  const auto seconds = [](double time) { return static_cast<int64_t>(time); };
  const auto number = [](const std::string& name) { return name.empty() ? "-1" : name.c_str(); };
  for (const TraceJob& job : jobs) {
    // Job, submit, wait, run, processors, cpu time, memory; processors, time and memory asked;
    // status, user, group, application, queue, partition, job before, think time.
    text += fmt::format("{} {} -1 {} {} -1 -1 {} {} -1 {} {} -1 -1 {} -1 -1 -1\n",
                        std::string_view(job.name).substr(kPrefix.size()),
                        seconds(job.submit_s),
                        seconds(job.run_s),
                        job.slots,
                        job.slots,
                        seconds(job.requested_s),
                        job.failed ? 0 : 1,
                        number(job.user),
                        number(job.queue));
  }
  return text;
}

}  // namespace fluxqueue::trace
