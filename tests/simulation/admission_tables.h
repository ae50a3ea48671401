// The schema `admission` in memory.
#pragma once

#include <set>
#include <string>

#include "services/admission/domain/catalog.h"
#include "services/admission/domain/tracker.h"
#include "tests/simulation/sim_database.h"

namespace fluxqueue::simulation {

struct AdmissionTables {
  explicit AdmissionTables(Undo& undo) : pools(undo), queues(undo), workloads(undo), heard(undo) {}

  Table<std::string, admission::PoolRow> pools;
  Table<std::string, admission::QueueRow> queues;
  Table<std::string, admission::WorkloadRow> workloads;  // by uid
  Table<std::string, bool> heard;                        // the queue has their jobs; likewise
};

}  // namespace fluxqueue::simulation
