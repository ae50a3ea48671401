// What a FluxQueue must be and allow for a workload to enter it. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "services/admission/domain/cluster_facts.h"

namespace fluxqueue::admission {

// The sentence for a FluxQueue that is not there; names those that are.
std::string NoSuchQueue(std::string_view name,
                        const ClusterFacts::ByName<kubernetes::FluxQueue>& queues);

// Unset: the duration asked for (0: unlimited; unset: the queue's default) is allowed.
std::optional<std::string> DurationProblem(std::optional<int64_t> asked_ms,
                                           const kubernetes::FluxQueue& queue);

}  // namespace fluxqueue::admission
