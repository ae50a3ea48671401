// What queues with a guarantee can spare while the candidates of a cycle are answered: who is to be
// stopped for one of them counts for those behind it, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/matcher_core/stop_search.h"

namespace fluxqueue::matcher_core {

class Lenders {
 public:
  // The request must outlive them.
  explicit Lenders(const events::v1::CycleRequested& request);

  // Who lends for one of the request's stoppable, and what.
  void Describe(int stoppable, StopProblem::Holder* holder) const;
  // Those that do not count for the candidate can spare anything.
  std::vector<StopProblem::Lender> For(const events::v1::Candidate& candidate) const;
  // It is to be stopped. The second time changes nothing.
  void Stop(int stoppable);

 private:
  const events::v1::CycleRequested& request_;
  std::vector<StopProblem::Lender> lenders_;
  size_t resources_ = 0;
  std::set<int> stopped_;
};

// Of Candidate.stoppable and Candidate.lenders.
bool HasBit(const std::string& bits, size_t place);

}  // namespace fluxqueue::matcher_core
