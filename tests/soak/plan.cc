#include "tests/soak/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include <absl/strings/match.h>
#include <fmt/format.h>

namespace fluxqueue::soak {
namespace {

struct Card {
  std::string_view name{};
  int times = 1;            // in a deck
  std::string_view made{};  // the kind of object that it makes
};

// In the order of What.
constexpr std::array<Card, static_cast<size_t>(kLastWhat) + 1> kCards = {{
    {"job", 4, "Job"},
    {"gang-job", 3, "Job"},
    {"indexed-job", 3, "Job"},
    {"rounds-job", 2, "Job"},
    {"elastic-job", 2, "Job"},
    {"array-job", 1, "Job"},
    {"topology-job", 2, "Job"},
    {"gpu-job", 2, "Job"},
    {"failing-job", 1, "Job"},
    {"late-job", 1, "Job"},
    {"held-job", 1, "Job"},
    {"urgent-job", 2, "Job"},
    {"cronjob", 1, "CronJob"},
    {"pod", 3, "Pod"},
    {"pod-gang", 2, "Pod"},
    {"deployment", 2, "Deployment"},
    {"replicaset", 1, "ReplicaSet"},
    {"statefulset", 1, "StatefulSet"},
    {"parallel-set", 1, "StatefulSet"},
    {"jobset", 2, "JobSet"},
    {"mpijob", 2, "MPIJob"},
    {"lws", 1, "StatefulSet"},
    {"scale", 4},
    {"roll-out", 2},
    {"resize-job", 2},
    {"suspend-job", 2},
    {"resume-job", 2},
    {"annotate-hold", 1},
    {"take-off-hold", 1},
    {"move-job", 1},
    {"delete", 6},
    {"delete-pod", 2},
    {"evict-pod", 5},
    {"sweep-ended", 1},
    {"cancel", 2},
    {"hold", 1},
    {"release", 1},
    {"priority", 1},
    {"cordon", 2},
    {"uncordon", 2},
    {"taint", 3},
    {"untaint", 3},
    {"delete-node", 2},
    {"make-node", 2},
    {"move-node", 1},
    {"kill-service", 1},
}};

const Card& CardOf(What what) {
  return kCards[static_cast<size_t>(what)];
}

bool IsLws(const Object& object) {
  return absl::StartsWith(object.name, "lws-");
}

// Of these no more fit than there are made.
bool IsGpuJob(const Object& object) {
  return absl::StartsWith(object.name, "gpu-job-");
}

// What an action may be about. The pods of a gang of another controller are not changed: that is
// for that controller.
bool Suits(What what, const Object& object) {
  const bool job = object.kind == "Job" && object.owner != "CronJob";
  const bool own_job = object.kind == "Job" && object.owner.empty();
  const bool live_pod = object.kind == "Pod" && !object.ended;
  switch (what) {
    case What::kScale:
      return Serves(object.kind) && object.owner.empty() && !IsLws(object);
    case What::kRollOut:
      return (object.kind == "Deployment" || object.kind == "StatefulSet") && !IsLws(object);
    case What::kResizeJob:
      return own_job && !object.ended && !IsGpuJob(object);
    case What::kAnnotateHold:
    case What::kMoveJob:
      return own_job && !object.ended;
    case What::kTakeOffHold:
      return own_job && !object.ended && object.suspended;
    case What::kSuspendJob:
      return own_job && !object.ended && !object.suspended;
    case What::kResumeJob:
      return own_job && !object.ended && object.suspended_by_soak;
    case What::kDelete:
      return object.kind != "Pod" && (object.owner.empty() || job);
    case What::kDeletePod:
      return live_pod;
    case What::kEvictPod:
      return live_pod && !object.node.empty();
    case What::kCancel:
    case What::kHold:
    case What::kRelease:
    case What::kPriority:
      return (own_job || live_pod) && !object.ended && object.owner.empty();
    default:
      return false;
  }
}

std::vector<const Object*> Suiting(What what, const World& world) {
  std::vector<const Object*> suiting;
  for (const Object& object : world.objects) {
    if (Suits(what, object)) suiting.push_back(&object);
  }
  return suiting;
}

}  // namespace

std::string_view Name(What what) {
  return CardOf(what).name;
}

bool Makes(What what) {
  return !CardOf(what).made.empty();
}

Planner::Planner(uint64_t seed, Limits limits) : limits_(std::move(limits)), random_(seed) {}

std::optional<Action> Planner::Next(const World& world) {
  // Where nothing that is left of a deck is possible now, a fresh one follows.
  for (int decks = 0; decks < 2; ++decks) {
    for (size_t at = deck_.size(); at-- > 0;) {
      if (!Possible(deck_[at], world)) continue;
      const What what = deck_[at];
      deck_.erase(deck_.begin() + static_cast<std::ptrdiff_t>(at));
      return Fill(what, world);
    }
    FillDeck();
  }
  return std::nullopt;
}

void Planner::FillDeck() {
  std::vector<What> fresh;
  for (size_t what = 0; what < kCards.size(); ++what) {
    fresh.insert(fresh.end(), static_cast<size_t>(kCards[what].times), static_cast<What>(what));
  }
  std::shuffle(fresh.begin(), fresh.end(), random_);
  deck_ = std::move(fresh);
}

int Planner::Unwell(const World& world) const {
  int unwell = static_cast<int>(limits_.nodes.size() - world.nodes.size());
  for (const auto& [name, node] : world.nodes) unwell += node.cordoned || node.tainted ? 1 : 0;
  return unwell;
}

std::vector<std::string> Planner::NodesFor(What what, const World& world) const {
  std::vector<std::string> names;
  for (const std::string& name : limits_.nodes) {
    const auto found = world.nodes.find(name);
    const bool there = found != world.nodes.end();
    const Node node = there ? found->second : Node{};
    const bool well = there && !node.cordoned && !node.tainted;
    const bool suits =
        (what == What::kUncordon && node.cordoned) || (what == What::kUntaint && node.tainted) ||
        (what == What::kMakeNode && !there) || (what == What::kMoveNode && there) ||
        (well && (what == What::kCordon || what == What::kTaint || what == What::kDeleteNode));
    if (suits) names.push_back(name);
  }
  return names;
}

bool Planner::Possible(What what, const World& world) const {
  if (Makes(what)) {
    const bool serves = Serves(CardOf(what).made);
    return LiveLoad(world) < limits_.load && (!serves || Serving(world) < limits_.serving);
  }
  switch (what) {
    case What::kSweepEnded:
    case What::kKillService:
      return true;
    case What::kCordon:
    case What::kTaint:
    case What::kDeleteNode:
      return Unwell(world) < limits_.unwell && !NodesFor(what, world).empty();
    case What::kUncordon:
    case What::kUntaint:
    case What::kMakeNode:
    case What::kMoveNode:
      return !NodesFor(what, world).empty();
    default:
      return !Suiting(what, world).empty();
  }
}

Action Planner::Fill(What what, const World& world) {
  Action action{.what = what, .kind = std::string(CardOf(what).made)};
  if (Makes(what)) {
    FillMade(&action);
  } else if (what == What::kKillService) {
    action.value =
        OneOf<std::string>({"admission", "queue", "matcher", "binder", "cleanup", "visibility"});
  } else if (what >= What::kCordon) {
    FillNode(world, &action);
  } else if (what != What::kSweepEnded) {
    FillObject(world, &action);
  }
  return action;
}

void Planner::FillMade(Action* action) {
  action->name = fmt::format("{}-{}", Name(action->what), ++made_);
  action->pods = action->what == What::kJob ? 1 : Between(2, 5);
  action->rounds = Between(2, 3);
  action->cpu = std::to_string(Between(1, 3));
  action->seconds = std::to_string(Between(1, 12));
  // Most in the queue of all; "" names none.
  action->value = OneOf<std::string>({"", "", "patient"});
}

void Planner::FillObject(const World& world, Action* action) {
  const Object& object = *OneOf(Suiting(action->what, world));
  action->kind = object.kind;
  action->name = object.name;
  action->pods = Between(action->what == What::kScale ? 0 : 1, 6);
  switch (action->what) {
    case What::kDelete:
      action->value = OneOf<std::string>({"background", "background", "foreground", "orphan"});
      break;
    case What::kMoveJob:
      action->value = OneOf<std::string>({"default", "patient"});
      break;
    case What::kPriority:
      action->value = std::to_string(Between(0, 9));
      break;
    case What::kRollOut:
      action->value = std::to_string(++made_);
      break;
    default:
      break;
  }
}

void Planner::FillNode(const World& world, Action* action) {
  action->kind = "Node";
  action->name = OneOf(NodesFor(action->what, world));
  if (action->what == What::kTaint) {
    action->value = OneOf<std::string>({"NoSchedule", "NoExecute"});
  } else if (action->what == What::kMoveNode) {
    action->value = fmt::format("zone-{}", Between(0, 2));
  }
}

int Planner::Between(int least, int most) {
  // std::uniform_int_distribution is another one in each library.
  const auto span = static_cast<uint64_t>(most) - static_cast<uint64_t>(least) + 1;
  return least + static_cast<int>(random_() % span);
}

}  // namespace fluxqueue::soak
