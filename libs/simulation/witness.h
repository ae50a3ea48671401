// Writes down what becomes of the jobs of a pool, from its job facts in the order in which they
// were decided. Pure; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/simulation/outcome.h"

namespace fluxqueue::simulation {

class Witness {
 public:
  // `jobs`: the ids of the workload's jobs, in its order, each once.
  explicit Witness(const std::vector<std::string>& jobs);

  // Unset: none of those.
  std::optional<size_t> Find(const std::string& job_id) const;
  // The fact of job `job`, decided at `now`.
  void Hear(size_t job, const events::v1::JobFact& fact, Millis now);

  void SetPlaces(size_t job, std::vector<Place> places) {
    outcomes_[job].places = std::move(places);
  }
  bool IsRejected(size_t job) const { return outcomes_[job].end == Outcome::End::kRejected; }
  // Jobs that have ended, or never will start.
  size_t over() const { return over_; }
  std::vector<Outcome> Take() { return std::move(outcomes_); }

 private:
  // Of what waits in a queue: who stands before whom.
  using Rank = std::pair<int64_t, size_t>;  // priority, the highest first; job
  struct Waiting {
    std::string queue{};  // empty: it does not wait
    Rank rank{};
  };

  void Wait(size_t job, const events::v1::JobFact& fact);
  void StopWaiting(size_t job);
  void Start(size_t job, Millis now);
  void Finish(size_t job, bool succeeded, Millis now);

  std::unordered_map<std::string, size_t> jobs_;
  std::vector<Waiting> waits_;  // by job
  std::map<std::string, std::set<Rank>> lines_;
  std::vector<Outcome> outcomes_;
  size_t over_ = 0;
};

}  // namespace fluxqueue::simulation
