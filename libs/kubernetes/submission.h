// From a workload of ours to what the log says of it: JobSubmitted, ready but for the decision to
// send it. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/kubernetes/group.h"
#include "libs/kubernetes/jobspec.h"
#include "libs/kubernetes/requests.h"
#include "libs/kubernetes/views.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// A Job must be of the kinds that are supported: completions and parallelism at least 1, at most
// `kMaxSlots` slots. Its slots are min(parallelism, completions), or fewer and at least so many
// where min-slots and max-slots, or array, say so. InvalidArgument says what a person must change,
// as the webhook and the Event Refused show it. `demand`, when given, is filled with what one slot
// of the jobspec asks for.
inline constexpr int64_t kMaxSlots = 100'000;

absl::StatusOr<events::v1::JobSubmitted> SubmissionOf(const Job& job,
                                                      const TemplateContext& context,
                                                      uint32_t revision = 1,
                                                      PodDemand* demand = nullptr);
// A pod comes completed from the API server, to its webhooks too: nothing is filled in. One that
// has places (places.h) asks for a slot of its own, and one for each of them.
absl::StatusOr<events::v1::JobSubmitted> SubmissionOf(const Pod& pod,
                                                      uint32_t revision = 1,
                                                      PodDemand* demand = nullptr);

// What a pod brings into its group. InvalidArgument: as of a pod alone.
absl::StatusOr<GroupMember> MemberOf(const Pod& pod);
// The gang of the name, of members that are sorted (SortBySlot). What only one asks for is for all:
// the highest priority, the latest time to begin, a hold. InvalidArgument: as DemandOf.
absl::StatusOr<events::v1::JobSubmitted> SubmissionOf(
    const std::string& space,
    const std::string& name,
    const std::vector<const GroupMember*>& members,
    PodDemand* demand);

// What all slots ask for together.
void SetAmounts(const Amounts& slot, uint32_t slots, events::v1::PartSpec* spec);
void SetAmounts(const PodDemand& demand, uint32_t slots, events::v1::PartSpec* spec);

events::v1::Workload WorkloadOf(const Job& job);
events::v1::Workload WorkloadOf(const Pod& pod);

}  // namespace fluxqueue::kubernetes
