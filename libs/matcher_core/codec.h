// Between the graph's values and the messages and rows that carry them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/types.h"

#include "absl/status/status.h"

namespace fluxqueue::matcher_core {

// `host_ports`: those in the graph, sorted (libs/model/host_ports.h). It has one of each.
graph::NodeSpec ToNodeSpec(const events::v1::Node& node,
                           uint64_t ordinal,
                           const google::protobuf::RepeatedPtrField<std::string>& host_ports);
events::v1::Placement ToProto(const graph::Placement& placement);
graph::Placement FromProto(const events::v1::Placement& placement);
graph::AllocationKey FromProto(const events::v1::AllocationKey& key);
events::v1::AllocationKey ToProto(const graph::AllocationKey& key);

// A hash of where the slots are: 64-bit FNV-1a over the placement's bytes with no slot marked
// released, so that it stays the same for the life of the allocation. Never 0, which stands for
// "holds nothing" in a JobFact.
uint64_t PlacementHash(const events::v1::Placement& placement);

// Whether a message with the resourceVersion `said` is older than what is known. Versions that are
// not numbers cannot be compared, and are never older.
bool IsOlder(std::string_view said, std::string_view known);

}  // namespace fluxqueue::matcher_core
