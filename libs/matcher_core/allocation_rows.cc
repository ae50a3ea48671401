#include "libs/matcher_core/allocation_rows.h"

#include "libs/matcher_core/codec.h"

namespace fluxqueue::matcher_core {

uint64_t AllocationRows::Write(const AllocationKey& key, const graph::Placement& held) {
  const events::v1::Placement placement = ToProto(held);
  AllocationRow& row = written_[key];
  row = {key, placement.SerializeAsString(), PlacementHash(placement), false};
  return row.placement_hash;
}

void AllocationRows::Release(const AllocationKey& key) {
  const auto row = written_.find(key);
  if (row != written_.end()) {
    row->second.released = true;
  } else {
    released_.insert(key);
  }
}

void AllocationRows::Describe(Changes* changes) const {
  changes->released.assign(released_.begin(), released_.end());
  for (const auto& [key, row] : written_) changes->allocations.push_back(row);
}

}  // namespace fluxqueue::matcher_core
