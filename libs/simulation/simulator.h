// Runs one setting: the queue's and the matcher's cores in virtual time, with a world around them.
//
//   script ──► the log ──┬─► QueueCore   ──┬─► facts ──► the world: starts and ends jobs
//     ▲                  └─► MatcherCore   │                │
//   ends ◄───────────────── the log ◄──────┴────────────────┘
//
// The log is what it is in the live system: one order of records, each with its append time, read
// by both cores from front to back; what they say is appended. Messages go by move, none is
// serialised.
//
// Time stands still until the log has been read to its end; then it jumps to the next end of a job,
// message of the script or deadline of the queue. Of what is due at one moment the ends are
// appended first, then the script's messages in their order. So a cycle finds all that was freed
// and all that has arrived in that second: "at each arrival or end" of the literature.
//
// The world binds and starts at once what is allocated (JobStarted; JobBound is implied by it),
// lets it run for as long as the script says (JobEnded), and stops at once what is to be stopped.
//
// Pure and deterministic: the same script gives the same outcomes. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/queue_core/queue_core.h"
#include "libs/simulation/outcome.h"
#include "libs/simulation/script.h"
#include "libs/simulation/witness.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::simulation {

class Simulator {
 public:
  // Called now and then with the number of jobs that are over.
  using Progress = std::function<void(size_t)>;

  // `jobs`: the ids of the workload's jobs, in its order, each once. `nodes`: the names of the
  // machine's nodes that outcomes are to name; none: outcomes have no places.
  Simulator(std::string pool,
            std::vector<std::string> jobs,
            const std::vector<std::string>& nodes,
            Script& script);

  // Once. What a core refuses as impossible is a dead letter, as in the live system. An error: a
  // core cannot go on.
  absl::StatusOr<std::vector<Outcome>> Run(const Progress& progress);

 private:
  struct End {
    Millis time;
    uint64_t order;  // in which the jobs were started
    size_t job;
    uint32_t attempt;

    friend bool operator>(const End& a, const End& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  std::optional<Millis> NextTime();
  void AppendDue();
  // A job is handed in again that was rejected in the script's history, and was not here.
  bool IsHandedInForNothing(const events::v1::Envelope& message) const;
  absl::Status ReadLog();
  void React(size_t job, const events::v1::JobFact& fact);
  void Start(size_t job, const events::v1::JobFact& fact);
  std::vector<Place> PlacesOf(const events::v1::JobFact& fact) const;
  events::v1::Envelope& Append();

  const std::string pool_;
  const std::vector<std::string> ids_;  // by job
  Script& script_;
  std::unordered_map<std::string, uint32_t> nodes_;

  queue_core::QueueCore queue_;
  matcher_core::MatcherCore matcher_;
  queue_core::Outputs said_by_queue_;
  std::vector<events::v1::Envelope> said_by_matcher_;

  Millis now_{0};
  std::deque<events::v1::Envelope> log_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  uint64_t starts_ = 0;
  std::vector<uint32_t> attempts_;  // by job, that runs; 0: none
  Witness witness_;
  uint64_t idle_ticks_ = 0;
};

}  // namespace fluxqueue::simulation
