// The rows of what is held that a batch changed. Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "libs/graph/types.h"
#include "libs/matcher_core/rows.h"

namespace fluxqueue::matcher_core {

class AllocationRows {
 public:
  // What the key holds by now. Returns the placement's hash.
  uint64_t Write(const AllocationKey& key, const graph::Placement& held);
  // It holds nothing any more.
  void Release(const AllocationKey& key);

  void Describe(Changes* changes) const;

 private:
  std::map<AllocationKey, AllocationRow> written_;
  std::set<AllocationKey> released_;  // those that were not written in the batch
};

}  // namespace fluxqueue::matcher_core
