// The schema `binder` in memory.
#pragma once

#include <string>
#include <tuple>

#include "services/binder/domain/bind_job.h"
#include "tests/simulation/sim_database.h"

namespace fluxqueue::simulation {

struct BinderTables {
  explicit BinderTables(Undo& undo) : jobs(undo), slots(undo) {}

  using SlotKey = std::tuple<std::string, uint32_t, int>;  // job, attempt, slot
  Table<std::string, binder::JobRow> jobs;
  Table<SlotKey, binder::SlotRow> slots;
  bool rows_late = false;  // a safety that is taken out: slots are written when they are bound
};

}  // namespace fluxqueue::simulation
