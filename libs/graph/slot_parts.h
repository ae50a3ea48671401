// Slots made of what was found for their parts: whole vertices, taken as they come.
#pragma once

#include <cstdint>
#include <vector>

#include "libs/graph/candidates.h"
#include "libs/graph/resolved_request.h"

namespace fluxqueue::graph {

// How many shares of at least `per_share` whole vertices make up, taken as they come.
class ShareTally {
 public:
  explicit ShareTally(uint64_t per_share) : per_share_(per_share) {}

  void Add(uint64_t amount) {
    partial_ += amount;
    if (partial_ < per_share_) return;
    ++shares_;
    partial_ = 0;
  }
  uint64_t shares() const { return shares_; }

 private:
  uint64_t per_share_;
  uint64_t partial_ = 0;
  uint64_t shares_ = 0;
};

// As many slots as the scarcest part makes. `parts` are in the order in which they are taken.
std::vector<Candidate> MakeSlots(const RequestLevel& slot, const Candidates& parts);

// Of each type that some kind of slot has a part of, the part that wants most.
std::vector<RequestLevel> PartsOf(const std::vector<RequestLevel>& kinds);
// As many slots as can be made of whichever kinds; at most `most` when there is only one kind.
std::vector<Candidate> MakeSlotsOf(const std::vector<RequestLevel>& kinds,
                                   uint64_t most,
                                   const Candidates& parts);

}  // namespace fluxqueue::graph
