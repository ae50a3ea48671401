// Which of several kinds of slot to make of what there is, so that most slots are made: the
// `flexible` traverser, to which slots that stand beside each other are alternatives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libs/graph/request.h"

namespace fluxqueue::graph {

// What one slot of a kind takes.
struct SlotPart {
  size_t type = 0;  // index into `counts`
  CountRange count;
};
using SlotKind = std::vector<SlotPart>;

// The kinds of the slots to make, one after another; at most `most` when there is only one kind.
// Empty when none fits, or when there are more ways than may be looked at (100,000).
std::vector<size_t> ChooseSlots(const std::vector<SlotKind>& kinds,
                                const std::vector<uint64_t>& counts,
                                uint64_t most);

}  // namespace fluxqueue::graph
