// What the operating system says about this process, under Prometheus' usual names:
// process_resident_memory_bytes, process_virtual_memory_bytes, process_cpu_seconds_total,
// process_start_time_seconds, process_open_fds, process_max_fds, process_threads. Read from /proc
// at each scrape.
#pragma once

#include <cstdint>

#include "libs/metrics/metrics.h"

namespace fluxqueue::metrics {

struct ProcessUsage {
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  double cpu_seconds = 0;         // user and system
  double start_time_seconds = 0;  // since the Unix epoch
  int64_t open_fds = 0;
  int64_t max_fds = 0;
  int64_t threads = 0;
};

// Zeros for what cannot be read.
ProcessUsage ReadProcessUsage();

void ExportProcessMetrics(Registry& registry);

}  // namespace fluxqueue::metrics
