// How many gpus a policy leaves unused on a full cluster: the experiment of "Beware of
// Fragmentation" (Weng et al., USENIX ATC 2023) with the traces of openb.
//
// Pods drawn at random from a list, each as often as it is drawn, come to an empty cluster and
// stay. One that does not fit is dropped. It is over when the gpus that were asked for would be
// more than those that exist; what counts is how many of those are not allocated then. The nodes'
// order, which their ids follow, is drawn too. `packed` is told how often each kind of pod is in
// the list.
//
// Pure: the same seed gives the same draw on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/packing.h"
#include "libs/graph/request.h"
#include "libs/trace/trace.h"

#include "absl/status/status.h"

namespace fluxqueue::simulation {

// Of pods by the gpus that they ask for.
inline constexpr std::array<std::string_view, 5> kFillClasses = {
    "no gpu", "share", "one gpu", "several", "whole node"};

// A pod that may be drawn.
struct FillPod {
  int64_t gpu = 0;       // thousandths
  size_t pod_class = 0;  // of kFillClasses
  graph::JobRequest request{};
  graph::WorkloadShape shape{};
};

std::vector<FillPod> FillPods(const std::vector<trace::TraceJob>& jobs);

// Of one policy; adds up over the seeds.
struct FillResult {
  std::string policy{};
  std::vector<double> left{};  // gpus, by seed
  std::array<int64_t, kFillClasses.size()> drawn{};
  std::array<int64_t, kFillClasses.size()> dropped{};

  double MeanLeft() const;
  // The share of the pods of a class that did not fit, 0 to 1.
  double Dropped(size_t pod_class) const;
};

// Fills the cluster once. InvalidArgument: there is no such policy. REQUIRES: `pods` not empty.
absl::Status Fill(const std::vector<trace::TraceNode>& nodes,
                  const std::vector<FillPod>& pods,
                  uint64_t seed,
                  FillResult* result);

}  // namespace fluxqueue::simulation
