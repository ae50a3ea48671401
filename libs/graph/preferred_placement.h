// Where a job goes that would rather have some nodes than others.
//
// All of it is placed at once, as ever, or not at all: what it prefers decides only among the
// places that there are now. A level that is required, or the best one that is preferred and can be
// had, comes first; then as few tiers are used as have room for all of its slots, and of those each
// as far as it goes, the best first; among nodes of the same worth the policy decides. Slots stand
// in the order of the tiers. What is reserved for later is placed when it starts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "libs/graph/jobspec.h"
#include "libs/graph/node_table.h"
#include "libs/graph/placer.h"
#include "libs/graph/preferred_nodes.h"

namespace fluxqueue::graph {

struct PlacingRequest {
  // As for Placer::Match. Jobs from `first` + groups on hold nothing, before and afterwards.
  JobNumber first = 0;
  const Jobspec& jobspec;
  Placer::When when;
  std::span<const std::vector<Need>> needs;  // of a slot, by group
};

std::optional<Placer::Place> PlaceByPreference(const PlacingRequest& request,
                                               PreferenceTiers* tiers,
                                               const NodeTable& table,
                                               Placer* placer);

}  // namespace fluxqueue::graph
