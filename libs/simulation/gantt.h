// Who held what and when, as few rectangles as a page can bear, however many jobs there are. Pure.
//
// The machine is sampled in the middle of the cells of a grid: rows are processors or nodes,
// columns are moments. Equal neighbours in a row become one rectangle. So there are never more than
// kRows · kColumns of them, and a small run is drawn as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libs/simulation/machine.h"
#include "libs/simulation/outcome.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

struct Gantt {
  static constexpr size_t kRows = 64;
  static constexpr size_t kColumns = 400;

  // Of cells of the grid; `kind` says which colour.
  struct Bar {
    uint32_t row = 0;
    uint32_t rows = 1;
    uint32_t from = 0;
    uint32_t to = 0;
    uint8_t kind = 0;

    friend bool operator==(const Bar&, const Bar&) = default;
  };
  // Processors: a job that started in order, or was backfilled, in two shades each so that
  // neighbours differ: kinds 0 to 3. Nodes: how much of it is in use, in kLevels steps of kind.
  static constexpr uint8_t kBackfilled = 2;
  static constexpr uint8_t kLevels = 5;

  bool of_nodes = false;
  std::string rows_are{};  // "processors 0 to 255", "nodes, 64 of 1523; use of GPUs"
  size_t rows = 0;
  std::vector<Bar> bars{};  // by time, then row; what is idle has none
};

// REQUIRES: span_s > 0.
Gantt GanttOf(const Workload& workload,
              const Machine& machine,
              const std::vector<Outcome>& outcomes,
              double span_s);

}  // namespace fluxqueue::simulation
