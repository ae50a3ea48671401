// The invariants of the architecture, checked on what a system has written and shows.
//
// One look at a system at work sees what is on its way: a job that has ended a moment ago still
// holds its nodes. So a difference is a defect only if a second look, some seconds later, sees the
// very same one: Persisting(). Findings carry a key for that purpose, which contains whatever
// changes when there is progress.
//
// Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "libs/verify/replay.h"
#include "libs/verify/snapshot.h"

namespace fluxqueue::verify {

struct Finding {
  std::string key{};
  std::string text{};  // names the thing, what it is, and what it should be
};

struct Check {
  int number = 0;
  std::string title{};
  std::string checked{};  // "12 nodes, 40 allocations"
  std::vector<Finding> findings{};
  std::string not_checked{};  // why (a part of) it was not looked at; empty: all was

  bool ok() const { return findings.empty(); }
};

// 1 … 7, in their order.
std::vector<Check> CheckInvariants(const Snapshot& snapshot);

// 8.
Check CheckReplay(const std::vector<PoolReplay>& pools);

// `second` with those findings only that `first` has too.
std::vector<Check> Persisting(const std::vector<Check>& first, std::vector<Check> second);

bool AllOk(const std::vector<Check>& checks);

namespace internal {  // one each; CheckInvariants lists them

Check Capacity(const Snapshot& snapshot);
Check WholeParts(const Snapshot& snapshot);
Check OneAllocation(const Snapshot& snapshot);
Check PodsOnTheirNodes(const Snapshot& snapshot);
Check EndedHoldNothing(const Snapshot& snapshot);
Check NoneLost(const Snapshot& snapshot);
Check Versions(const Snapshot& snapshot);

// "default/sim (uid)", or the id alone of a job that has no row.
std::string JobName(const Snapshot& snapshot, const std::string& id);
std::string KeyText(const AllocationKey& key);

}  // namespace internal
}  // namespace fluxqueue::verify
