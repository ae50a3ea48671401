// The lists of pods and nodes of Alibaba's GPU cluster (clusterdata, cluster-trace-gpu-v2023): CSV
// with a line of column names, which may stand in any order; other columns are not looked at.
#pragma once

#include <string_view>
#include <vector>

#include "libs/trace/trace.h"

#include "absl/status/statusor.h"

namespace fluxqueue::trace {

// Columns name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec ("T4|P100"), creation_time,
// deletion_time, scheduled_time. A pod is a job of one slot that is submitted when it was created
// and runs from when it was scheduled (never scheduled: created) to its deletion; left out, and
// counted, is one for which that is nothing. It asks num_gpu × gpu_milli thousandths of a GPU.
absl::StatusOr<Trace> ParseOpenbPods(std::string_view text, const Source& source);

// Columns sn, cpu_milli, memory_mib, gpu (how many), model.
absl::StatusOr<std::vector<TraceNode>> ParseOpenbNodes(std::string_view text, const Source& source);

}  // namespace fluxqueue::trace
