// The queue's own section of the configuration.
#pragma once

#include "libs/config/section.h"
#include "services/queue/domain/flux_job_planner.h"

namespace fluxqueue::queue {

struct QueueConfig {
  // When FluxJob objects are written.
  FluxJobTimes flux_jobs;
  // Threads that write them.
  int flux_job_writers = 4;
};

// `config` must outlive the section.
config::Section Describe(QueueConfig* config);

}  // namespace fluxqueue::queue
