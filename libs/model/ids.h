// Names of things, as types of their own: a job cannot be passed where a pool is meant.
#pragma once

#include <compare>
#include <cstdint>

#include "libs/base/strong_type.h"

namespace fluxqueue::model {

// UID of the workload that the job is.
using JobId = StrongString<struct JobIdTag>;
using PoolName = StrongString<struct PoolNameTag>;
using QueueName = StrongString<struct QueueNameTag>;
using NodeName = StrongString<struct NodeNameTag>;

// What the matcher's holdings are keyed by: one part of one attempt of one job.
struct AllocationKey {
  JobId job;
  uint32_t attempt = 1;
  uint32_t part = 0;

  friend bool operator==(const AllocationKey&, const AllocationKey&) = default;
  friend auto operator<=>(const AllocationKey&, const AllocationKey&) = default;
};

}  // namespace fluxqueue::model

template <>
struct fmt::formatter<fluxqueue::model::AllocationKey> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const fluxqueue::model::AllocationKey& key, Context& context) const {
    return fmt::format_to(context.out(), "{}/{}.{}", key.job, key.attempt, key.part);
  }
};
