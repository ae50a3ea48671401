// Which slots with GPUs are known of, queued or running: the workload that `packed` keeps GPUs of
// use for (packing.h). It follows from the jobs that there are, and not from the order in which
// they came.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "libs/graph/jobspec.h"
#include "libs/graph/packing.h"

namespace fluxqueue::graph {

class ExpectedWork {
 public:
  // So many jobs more, or fewer. REQUIRES: not fewer than none.
  void Add(const Jobspec& jobspec, int64_t jobs);

  // Whether Shapes() may be another than at the last call of Shapes().
  bool changed() const { return changed_; }
  // At most 64: those that come most often.
  Workload Shapes();

  // Of all that is known.
  uint64_t Fingerprint() const;

 private:
  // By what a slot asks for and where it may go.
  std::map<std::string, WorkloadShape> shapes_;
  bool changed_ = false;
};

}  // namespace fluxqueue::graph
