// What the soak does next: drawn from a deck of cards that a seed shuffles, so that each kind of
// action has its turn, and rare ones are rare. Pure; the same seed asks for the same where it sees
// the same.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/soak/world.h"

namespace fluxqueue::soak {

enum class What {
  kJob,
  kGangJob,
  kIndexedJob,
  kRoundsJob,  // more completions than pods at a time
  kElasticJob,
  kArrayJob,
  kTopologyJob,
  kGpuJob,
  kFailingJob,
  kLateJob,  // runs longer than it says
  kHeldJob,
  kUrgentJob,  // others are stopped for it
  kCronJob,
  kPod,
  kPodGang,
  kDeployment,
  kReplicaSet,
  kStatefulSet,
  kParallelStatefulSet,
  kJobSet,
  kMpiJob,
  kLeaderWorkerSet,
  kScale,
  kRollOut,
  kResizeJob,
  kSuspendJob,
  kResumeJob,
  kAnnotateHold,
  kTakeOffHold,
  kMoveJob,
  kDelete,
  kDeletePod,
  kEvictPod,
  kSweepEnded,
  kCancel,  // this and the next three: by the command line
  kHold,
  kRelease,
  kPriority,
  kCordon,
  kUncordon,
  kTaint,
  kUntaint,
  kDeleteNode,
  kMakeNode,
  kMoveNode,  // into another zone
  kKillService,
};

// The last one, and with it how many there are.
inline constexpr What kLastWhat = What::kKillService;

std::string_view Name(What what);
bool Makes(What what);  // an object

struct Action {
  What what = What::kJob;
  std::string kind{};  // of the object that it is about
  std::string name{};
  std::string value{};  // "NoExecute", a queue, a way to delete, …
  int pods = 0;
  int rounds = 1;  // completions for each pod
  std::string cpu{};
  std::string seconds{};  // that a pod runs
};

struct Limits {
  int load = 26;  // LiveLoad
  int serving = 5;
  int unwell = 4;                    // nodes that are away, closed or tainted
  std::vector<std::string> nodes{};  // all that there are to be
};

class Planner {
 public:
  Planner(uint64_t seed, Limits limits);

  // Nothing: there is nothing that could be done now.
  std::optional<Action> Next(const World& world);

 private:
  bool Possible(What what, const World& world) const;
  std::vector<std::string> NodesFor(What what, const World& world) const;
  int Unwell(const World& world) const;
  void FillDeck();

  Action Fill(What what, const World& world);
  void FillMade(Action* action);
  void FillObject(const World& world, Action* action);
  void FillNode(const World& world, Action* action);

  int Between(int least, int most);
  template <typename T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Between(0, static_cast<int>(choices.size()) - 1))];
  }

  const Limits limits_;
  std::mt19937_64 random_;
  std::vector<What> deck_;
  int made_ = 0;
};

}  // namespace fluxqueue::soak
