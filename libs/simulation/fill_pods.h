// The pods of a list that may be drawn, by class, and how often each is drawn.
//
// A mix names what share of the pods is of a class: "share=0.6,model=0.1". Within a class, and
// among the pods of no class that is named, pods keep the proportions of the list.
//
// Pure: the same random numbers draw the same pods on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "libs/graph/packing.h"
#include "libs/graph/request.h"
#include "libs/trace/trace.h"

#include "absl/status/statusor.h"

namespace fluxqueue::simulation {

// Of pods by the gpus that they ask for; those that name a model of gpus are counted once more.
inline constexpr std::array<std::string_view, 6> kFillClasses = {
    "no gpu", "share", "one gpu", "several", "whole node", "model"};

// A pod that may be drawn.
struct FillPod {
  int64_t gpu = 0;       // thousandths
  size_t pod_class = 0;  // of kFillClasses, by its gpus
  bool names_model = false;
  graph::JobRequest request{};
  graph::WorkloadShape shape{};
};

std::vector<FillPod> FillPods(const std::vector<trace::TraceJob>& jobs);

struct MixPart {
  size_t pod_class = 0;  // of kFillClasses
  double share = 0;      // of all pods
};
using Mix = std::vector<MixPart>;

// "share=0.6,one=0.2"; the classes are share, one, several, whole and model. Empty text: the mix of
// the list. InvalidArgument: no such class, one named twice, a share that is not between 0 and 1,
// or shares of classes that exclude each other beyond 1.
absl::StatusOr<Mix> ParseMix(std::string_view text);

class PodDraw {
 public:
  // InvalidArgument: the list has no pods that could make up the mix. REQUIRES: `pods` not empty.
  static absl::StatusOr<PodDraw> Make(const std::vector<FillPod>& pods, const Mix& mix);

  // The place of a pod in the list.
  size_t Next(std::mt19937_64* random) const;
  // How often each kind of pod comes.
  graph::Workload Shapes(const std::vector<FillPod>& pods) const;

 private:
  uint64_t WeightOf(size_t pod) const;

  std::vector<uint64_t> sums_;  // of the weights up to each pod
};

}  // namespace fluxqueue::simulation
