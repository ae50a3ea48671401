// How many gpus a policy leaves unused on a full cluster: the experiment of "Beware of
// Fragmentation" (Weng et al., USENIX ATC 2023) with the traces of openb.
//
// Pods drawn at random from a list, each as often as it is drawn, come to an empty cluster. One
// that does not fit is dropped. The nodes' order, which their ids follow, is drawn too. `packed` is
// told how often each kind of pod comes at first, and never anything else; or it forecasts
// (forecast.h): it has seen kSeenBefore pods of the mix, and sees each that comes, of kUsers users
// in turn.
//
// Without churn pods stay. It is over when the gpus that were asked for would be more than those
// that exist; what counts is how many of those are not allocated then.
//
// With churn, pods end at random so that those that are there, with those that were dropped and
// would be, ask for `load` of the gpus; which ones does not depend on the policy. The cluster is
// filled and all of its gpus are asked for once more before anything counts, then they are asked
// for `kCountedTurns` times. What counts is how many of the gpus that are asked for are not
// allocated, in the mean over the pods that come.
//
// Pure: the same seed gives the same draw on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libs/simulation/fill_pods.h"
#include "libs/trace/trace.h"

#include "absl/status/status.h"

namespace fluxqueue::simulation {

inline constexpr int64_t kCountedTurns = 3;
inline constexpr int kSeenBefore = 8192;
inline constexpr int kUsers = 8;

struct FillSetting {
  PodDraw pods;
  std::optional<PodDraw> later{};  // from the half of what counts on; nothing: it does not change
  std::optional<double> load{};    // with churn: of the gpus, above 0
  bool forecasts = false;
};

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

// One seed. InvalidArgument: there is no such policy. REQUIRES: `pods` not empty; the setting draws
// from them.
absl::Status Fill(const std::vector<trace::TraceNode>& nodes,
                  const std::vector<FillPod>& pods,
                  const FillSetting& setting,
                  uint64_t seed,
                  FillResult* result);

}  // namespace fluxqueue::simulation
