// What queues with a guarantee can spare while the candidates of a cycle are answered: who is to be
// stopped for one of them counts for those behind it, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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
  // The same of a slot of it. REQUIRES: it holds `live` of them.
  void DescribeSlot(int stoppable, uint32_t live, StopProblem::Holder* holder) const;
  // Those that do not count for the candidate can spare anything.
  std::vector<StopProblem::Lender> For(const events::v1::Candidate& candidate) const;
  // It is to be stopped. The second time changes nothing.
  void Stop(int stoppable);
  // These slots of it are to be given back, of `live` that it holds.
  void Vacate(int stoppable, const std::vector<uint32_t>& slots, uint32_t live);
  // Those that are to be given back.
  std::set<uint32_t> Vacated(int stoppable) const;

 private:
  void Take(const StopProblem::Holder& holder, int64_t times);

  const events::v1::CycleRequested& request_;
  std::vector<StopProblem::Lender> lenders_;
  size_t resources_ = 0;
  std::set<int> stopped_;
  std::map<int, std::set<uint32_t>> vacated_;
};

// One more lender: a job that can spare this many of its slots. Its place.
size_t AddLenderOfSlots(uint32_t slots, StopProblem* problem);
// The holder is a slot of that job, and its lender so far is above the job.
void LendSlot(size_t job, StopProblem* problem, StopProblem::Holder* holder);

// Of Candidate.stoppable and Candidate.lenders.
bool HasBit(const std::string& bits, size_t place);

}  // namespace fluxqueue::matcher_core
