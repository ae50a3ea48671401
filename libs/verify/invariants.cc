#include "libs/verify/invariants.h"

#include <set>

#include <fmt/format.h>

namespace fluxqueue::verify {
namespace internal {

std::string JobName(const Snapshot& snapshot, const std::string& id) {
  const auto job = snapshot.jobs.find(id);
  if (job == snapshot.jobs.end()) return fmt::format("job {}", id);
  return fmt::format("job {}/{} ({})", job->second.space, job->second.name, id);
}

std::string KeyText(const AllocationKey& key) {
  return fmt::format("{}/{}.{}", key.job_id, key.attempt, key.part);
}

}  // namespace internal

std::vector<Check> CheckInvariants(const Snapshot& snapshot) {
  return {internal::Capacity(snapshot),
          internal::WholeParts(snapshot),
          internal::OneAllocation(snapshot),
          internal::PodsOnTheirNodes(snapshot),
          internal::EndedHoldNothing(snapshot),
          internal::NoneLost(snapshot),
          internal::Versions(snapshot)};
}

Check CheckReplay(const std::vector<PoolReplay>& pools) {
  Check check{.number = 8, .title = "replaying the log gives the same decisions"};
  Tally sum;
  for (const PoolReplay& pool : pools) {
    sum.decisions += pool.total.decisions;
    sum.identical += pool.total.identical;
    sum.in_flight += pool.total.in_flight;
    if (pool.total.different() == 0) continue;
    const std::string first =
        pool.differences.empty() ? "" : ", the first: " + pool.differences.front().what;
    check.findings.push_back({pool.pool,
                              fmt::format("pool {}: {} of {} decisions differ{} (fluxqueue replay "
                                          "--pool {} shows both sides)",
                                          pool.pool,
                                          pool.total.different(),
                                          pool.total.decisions,
                                          first,
                                          pool.pool)});
  }
  check.checked = fmt::format("{} decisions, {} identical", sum.decisions, sum.identical);
  if (sum.in_flight > 0) check.checked += fmt::format(", {} in flight", sum.in_flight);
  return check;
}

std::vector<Check> Persisting(const std::vector<Check>& first, std::vector<Check> second) {
  for (Check& check : second) {
    std::set<std::string> before;
    for (const Check& other : first) {
      if (other.number != check.number) continue;
      for (const Finding& finding : other.findings) before.insert(finding.key);
    }
    std::erase_if(check.findings,
                  [&](const Finding& finding) { return !before.contains(finding.key); });
  }
  return second;
}

bool AllOk(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    if (!check.ok()) return false;
  }
  return true;
}

}  // namespace fluxqueue::verify
