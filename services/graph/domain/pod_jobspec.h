// Jobspecs in the words of Fluxion's users, for the pools' graphs: YAML or JSON, cores and gpus by
// Fluxion's names, memory in a unit, become what libs/graph/jobspec.h reads. Pure.
//
//   resources: [{type: node, count: 1, with: [{type: slot, count: 1, label: task, with: [
//       {type: core, count: 2}, {type: memory, count: 512, unit: MB}, {type: gpu, count: 1}]}]}]
//
// is one slot of 2000 millicores, 512 MiB and one nvidia.com/gpu. A jobspec in Kubernetes' words
// stays as it is.
#pragma once

#include <string>
#include <string_view>

#include "services/graph/domain/slot_units.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

// How pods' resources are named and counted.
SlotUnits PodUnits();

// JSON. InvalidArgument for what is no YAML, for units that are not known, and for several nodes at
// once, which slots over any nodes cannot say.
absl::StatusOr<std::string> ToPodJobspec(std::string_view text);

}  // namespace fluxqueue::graph_service
