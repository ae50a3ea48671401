// What has to be true after a strike, of the jobs that were in flight and of the system. Each
// answer is a list of what is not, a line each, and is given the time that it takes.
//
// One thread.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "libs/testing/mini_system.h"
#include "tests/chaos/load.h"
#include "tests/chaos/sightings.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::chaos {

using Complaints = std::vector<std::string>;

// So long consumers that have lost their broker, or their group's, take at most to go on.
inline constexpr std::chrono::seconds kRejoin{45};

class Checks {
 public:
  // Both outlive this.
  Checks(testing::MiniSystem* system, const Sightings* sightings)
      : system_(system), sightings_(sightings) {}

  // One of `jobs` that is none of `but`.
  bool IsAnyBound(const std::vector<Made>& jobs, const std::vector<Made>& but) const;
  // Of all `jobs` the queue says that they have ended.
  absl::Status AwaitEnds(const std::vector<Made>& jobs, std::chrono::seconds deadline);
  // Each has one end, and its versions follow one another.
  Complaints EndedOnce(const std::vector<Made>& jobs);
  // As many pods were bound as it has completions.
  Complaints RanOnce(const Made& job) const;
  // No service holds anything for them any more; `late`: what lets go of it may come so late.
  Complaints NothingKept(const std::vector<Made>& jobs, std::chrono::seconds late);
  // What is to run has its pods.
  Complaints Serves();
  // `fluxqueue verify`. Where the log has lost something (`log_lost`), or the database was older
  // than the log, the versions in the log have gaps and repeat.
  Complaints Verify(bool log_lost);
  Complaints Replay();
  Complaints Ready();

 private:
  // Deployments.
  absl::StatusOr<std::set<std::string>> LackingPods();
  absl::StatusOr<int> EndedOf(const std::vector<Made>& jobs);
  std::set<std::string> Unknown(const std::vector<Made>& jobs);
  // ", job-1-x7f2p Running node-3" of each.
  std::string PodsOf(const std::string& job);
  std::string Unended(const std::vector<Made>& jobs);

  testing::MiniSystem* const system_;
  const Sightings* const sightings_;
};

}  // namespace fluxqueue::chaos
