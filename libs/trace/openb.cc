#include "libs/trace/openb.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/trace/records.h"

namespace fluxqueue::trace {
namespace {

using internal::Record;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kWholeGpu = 1000;  // thousandths
// Far above what exists, and far below what overflows.
constexpr int64_t kMaxMilli = 1'000'000'000;
constexpr int64_t kMaxMiB = int64_t{1} << 40;
constexpr int64_t kMaxGpus = 1000;

// The columns that are read, in the order of an enum of the caller.
template <size_t N>
using Columns = std::array<std::string_view, N>;

enum PodColumn : size_t {
  kName,
  kCpu,
  kMemory,
  kGpus,
  kGpuPart,
  kGpuSpec,
  kCreated,
  kDeleted,
  kScheduled,
  kPodColumns
};
constexpr Columns<kPodColumns> kPodNames = {"name",
                                            "cpu_milli",
                                            "memory_mib",
                                            "num_gpu",
                                            "gpu_milli",
                                            "gpu_spec",
                                            "creation_time",
                                            "deletion_time",
                                            "scheduled_time"};

enum NodeColumn : size_t { kNodeName, kNodeCpu, kNodeMemory, kNodeGpus, kModel, kNodeColumns };
constexpr Columns<kNodeColumns> kNodeNames = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};

// The lines of a CSV as records whose fields are in the order of `Names`.
template <size_t N>
class Table {
 public:
  Table(std::string_view text, std::string_view file, const Columns<N>& names)
      : rest_(text), file_(file), names_(names) {}

  absl::Status ReadHeader() {
    const std::vector<std::string_view> header =
        internal::SplitAt(internal::NextLine(&rest_).value_or(""), ',');
    width_ = header.size();
    for (size_t i = 0; i < N; ++i) {
      const auto found = std::find(header.begin(), header.end(), names_[i]);
      if (found == header.end()) {
        return InvalidArgument("{}:1: there is no column \"{}\"; wanted are {}",
                               file_,
                               names_[i],
                               fmt::join(names_, ", "));
      }
      places_[i] = static_cast<size_t>(found - header.begin());
    }
    return absl::OkStatus();
  }

  // Unset at the end.
  absl::StatusOr<std::optional<Record>> Next() {
    while (const std::optional<std::string_view> line = internal::NextLine(&rest_)) {
      ++line_;
      if (line->empty()) continue;
      const std::vector<std::string_view> all = internal::SplitAt(*line, ',');
      if (all.size() != width_) {
        return InvalidArgument(
            "{}:{}: it has {} fields and the first line has {}", file_, line_, all.size(), width_);
      }
      std::vector<std::string_view> ours(N);
      for (size_t i = 0; i < N; ++i) ours[i] = all[places_[i]];
      return Record(file_, line_, std::move(ours));
    }
    return std::optional<Record>();
  }

 private:
  std::string_view rest_;
  const std::string_view file_;
  const Columns<N>& names_;
  std::array<size_t, N> places_{};
  size_t width_ = 0;
  size_t line_ = 1;
};

std::vector<std::string> Models(std::string_view spec) {
  std::vector<std::string> models;
  if (spec.empty()) return models;
  for (const std::string_view model : internal::SplitAt(spec, '|')) {
    if (!model.empty() && std::find(models.begin(), models.end(), model) == models.end()) {
      models.emplace_back(model);
    }
  }
  return models;
}

void SetUnlessZero(Amounts* amounts, std::string_view resource, int64_t amount) {
  if (amount != 0) amounts->emplace(resource, amount);
}

double RunTime(Record* record, double created) {
  if (record->Empty(kDeleted)) return 0;
  const double begin =
      record->Empty(kScheduled) ? created : record->Seconds(kScheduled, kPodNames[kScheduled], 0);
  return record->Seconds(kDeleted, kPodNames[kDeleted], 0) - begin;
}

absl::StatusOr<TraceJob> ReadPod(Record record) {
  TraceJob job;
  job.name = record.Text(kName, kPodNames[kName]);
  job.submit_s = record.Seconds(kCreated, kPodNames[kCreated], 0);
  job.run_s = RunTime(&record, job.submit_s);
  SetUnlessZero(&job.requests, "cpu", record.Integer(kCpu, kPodNames[kCpu], 0, kMaxMilli));
  SetUnlessZero(
      &job.requests, "memory", record.Integer(kMemory, kPodNames[kMemory], 0, kMaxMiB) * kMiB);
  SetUnlessZero(&job.requests,
                kGpuMilli,
                record.Integer(kGpus, kPodNames[kGpus], 0, kMaxGpus) *
                    record.Integer(kGpuPart, kPodNames[kGpuPart], 0, kWholeGpu));
  if (!record.Empty(kGpuSpec)) job.gpu_models = Models(record.Text(kGpuSpec, kPodNames[kGpuSpec]));
  RETURN_IF_ERROR(record.status());
  job.line = record.line();
  return job;
}

absl::StatusOr<TraceNode> ReadNode(Record record) {
  TraceNode node;
  node.name = record.Text(kNodeName, kNodeNames[kNodeName]);
  SetUnlessZero(&node.offers, "cpu", record.Integer(kNodeCpu, kNodeNames[kNodeCpu], 0, kMaxMilli));
  SetUnlessZero(&node.offers,
                "memory",
                record.Integer(kNodeMemory, kNodeNames[kNodeMemory], 0, kMaxMiB) * kMiB);
  const int64_t gpus = record.Integer(kNodeGpus, kNodeNames[kNodeGpus], 0, kMaxGpus);
  SetUnlessZero(&node.offers, kGpuMilli, gpus * kWholeGpu);
  if (gpus != 0) node.gpu_model = record.Text(kModel, kNodeNames[kModel]);
  RETURN_IF_ERROR(record.status());
  return node;
}

}  // namespace

absl::StatusOr<Trace> ParseOpenbPods(std::string_view text, const Source& source) {
  Table<kPodColumns> table(text, source.file, kPodNames);
  RETURN_IF_ERROR(table.ReadHeader());
  Trace trace;
  std::unordered_set<std::string> names;
  while (source.limit == 0 || names.size() < source.limit) {
    ASSIGN_OR_RETURN(const std::optional<Record> record, table.Next());
    if (!record.has_value()) break;
    ASSIGN_OR_RETURN(TraceJob job, ReadPod(*record));
    if (!names.insert(job.name).second) {
      return record->Error(fmt::format("pod {} is here for the second time", job.name));
    }
    if (job.run_s > 0) {
      trace.jobs.push_back(std::move(job));
    } else {
      ++trace.without_run_time;
    }
  }
  internal::Arrange(&trace);
  return trace;
}

absl::StatusOr<std::vector<TraceNode>> ParseOpenbNodes(std::string_view text,
                                                       const Source& source) {
  Table<kNodeColumns> table(text, source.file, kNodeNames);
  RETURN_IF_ERROR(table.ReadHeader());
  std::vector<TraceNode> nodes;
  std::unordered_set<std::string> names;
  while (source.limit == 0 || nodes.size() < source.limit) {
    ASSIGN_OR_RETURN(const std::optional<Record> record, table.Next());
    if (!record.has_value()) break;
    ASSIGN_OR_RETURN(TraceNode node, ReadNode(*record));
    if (!names.insert(node.name).second) {
      return record->Error(fmt::format("node {} is here for the second time", node.name));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace fluxqueue::trace
