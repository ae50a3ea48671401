// A pool's log as it was kept (libs/verify/event_line.h), as something to simulate. Pure.
//
// As it was: the log through the cores again, by libs/verify's Replayer, which compares each
// decision with the recorded one.
//
// As it might have been: what came from outside of the cores (submissions, updates, commands,
// configuration, nodes) comes at its time again, with another strategy or policy. What the cluster
// said of jobs follows from what is decided now: a job starts when it is allocated, and ends after
// the time that it was seen to run. Jobs that the log does not show to have held anything have no
// such time and are left out; those that still ran at its end do not end. What was said of a job
// after its end (the clearing away of its workload) is left out, too.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/simulation/machine.h"
#include "libs/simulation/run.h"
#include "libs/simulation/script.h"
#include "libs/simulation/workload.h"
#include "libs/verify/replay.h"

#include "absl/status/statusor.h"

namespace fluxqueue::simulation {

struct History {
  std::string pool{};
  std::vector<verify::EventLine> log{};    // the pool topic's
  std::vector<verify::EventLine> facts{};  // the jobs topic's
  // Every node that there ever was, as it was last.
  Machine machine{};
  // Jobs that have held something, by their submission; without_run_time counts the others. A job's
  // requests are those of its last jobspec.
  Workload workload{};
  std::vector<std::optional<Millis>> run_times{};  // of these; unset: not seen to end
  std::map<std::string, size_t> jobs{};            // by id
};

// InvalidArgument names `file`, line and what is wrong: no such line, lines of several pools, or no
// job that ran.
absl::StatusOr<History> ReadHistory(std::string_view text, std::string_view file);
// Of records of one pool, in their order; `name`: what they are called in errors.
absl::StatusOr<History> MakeHistory(std::vector<verify::EventLine> lines, std::string_view name);

struct Recorded {
  Result result{};
  verify::PoolReplay replay{};
};
// As it was. An error: a core is broken.
absl::StatusOr<Recorded> ReplayHistory(const History& history);

// What a what-if changes; unset: as in the log.
struct Override {
  std::optional<std::string> strategy{};
  std::optional<std::string> policy{};
  std::optional<uint32_t> queue_depth{};
  std::optional<uint32_t> reservation_depth{};
  // From the beginning on: copies of those of the log, in turn.
  uint32_t more_nodes = 0;

  std::string Name() const;  // "easy, policy as recorded"
};

absl::StatusOr<Result> WhatIf(const History& history,
                              const Override& change,
                              const Simulator::Progress& progress);

}  // namespace fluxqueue::simulation
