// What a policy makes of candidates: which score a vertex has, and which candidates are taken.
#pragma once

#include <cstdint>
#include <vector>

#include "libs/graph/candidates.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/resolved_request.h"
#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

// What a node adds to the scores of all that is below it.
int64_t NodeScore(const MatchPolicy& policy, const Vertex& node);
// Of a vertex that fits; `nodes_above`: the sum of NodeScore of the nodes that it is in.
int64_t VertexScore(const MatchPolicy& policy, const Vertex& vertex, int64_t nodes_above);

// Takes the best of the list that make up `count`. False, and nothing is taken, when there are
// fewer, or when the count is 0.
bool TakeBest(const MatchPolicy& policy, uint64_t count, CandidateList* list);
// Puts what a slot is made of into the order in which it is taken.
void OrderSlotParts(const MatchPolicy& policy, Candidates* parts);
// Takes what the request asks for at its top. False when there is too little of something.
bool TakeAtRoot(const MatchPolicy& policy,
                const std::vector<RequestLevel>& levels,
                Candidates* found);

}  // namespace fluxqueue::graph
