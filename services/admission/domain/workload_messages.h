// What a workload's messages and row are made of. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/kubernetes/jobspec.h"
#include "libs/kubernetes/labels.h"
#include "services/admission/domain/tracker.h"

namespace fluxqueue::admission {

// The same in every build: kept in rows.
uint64_t Hash(std::string_view text);
uint64_t DemandHash(const kubernetes::PodDemand& demand,
                    const events::v1::PartSpec& spec,
                    const kubernetes::Topology& topology);

std::optional<int64_t> DurationOf(const events::v1::JobSubmitted& submission);

events::v1::Envelope ForPool(const std::string& pool);

// The row's next revision: what it is, with slots that ask for this.
events::v1::PartSpec NextSpec(const kubernetes::PodDemand& demand, WorkloadRow* row);

}  // namespace fluxqueue::admission
