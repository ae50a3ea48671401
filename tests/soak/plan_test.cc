#include "tests/soak/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "tests/soak/commands.h"
#include "tests/soak/objects.h"
#include "tests/soak/world.h"

namespace fluxqueue::soak {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One of each kind, and nodes in each state.
World BusyWorld() {
  return {
      .objects = {{.kind = "Job", .name = "runs"},
                  {.kind = "Job", .name = "waits", .suspended = true},
                  {.kind = "Job", .name = "paused", .suspended = true, .suspended_by_soak = true},
                  {.kind = "Deployment", .name = "web"},
                  {.kind = "ReplicaSet", .name = "web-1", .owner = "Deployment"},
                  {.kind = "Pod", .name = "web-1-a", .owner = "ReplicaSet", .node = "n1"},
                  {.kind = "Pod", .name = "alone", .node = "n2"}},
      .nodes = {{"n1", {}}, {"n2", {.cordoned = true}}, {"n3", {.tainted = true}}}};
}

Limits LimitsOf(int unwell = 9) {
  return {.load = 100, .serving = 50, .unwell = unwell, .nodes = {"n1", "n2", "n3", "n4"}};
}

std::vector<Action> Actions(Planner planner, const World& world, int count) {
  std::vector<Action> actions;
  for (int i = 0; i < count; ++i) actions.push_back(planner.Next(world).value());
  return actions;
}

std::string Text(const Action& action) {
  std::string text;
  for (const Command& command : CommandsFor(action)) {
    for (const std::string& word : command.words) text += word + " ";
    text += command.input + "\n";
  }
  return text;
}

TEST(PlannerTest, TheSameSeedAsksForTheSameInTheSameWorld) {
  const std::vector<Action> one = Actions(Planner(7, LimitsOf()), BusyWorld(), 200);
  const std::vector<Action> again = Actions(Planner(7, LimitsOf()), BusyWorld(), 200);
  const std::vector<Action> other = Actions(Planner(8, LimitsOf()), BusyWorld(), 200);
  const auto same = [](const Action& a, const Action& b) { return Text(a) == Text(b); };
  EXPECT_TRUE(std::equal(one.begin(), one.end(), again.begin(), same));
  EXPECT_FALSE(std::equal(one.begin(), one.end(), other.begin(), same));
}

TEST(PlannerTest, EachKindOfActionHasItsTurnInEachDeck) {
  std::set<What> seen;
  for (const Action& action : Actions(Planner(1, LimitsOf()), BusyWorld(), 100)) {
    seen.insert(action.what);
  }
  for (int what = 0; what <= static_cast<int>(kLastWhat); ++what) {
    EXPECT_THAT(seen, Contains(static_cast<What>(what))) << Name(static_cast<What>(what));
  }
}

TEST(PlannerTest, WhatIsChangedIsThereAndSuits) {
  for (const Action& action : Actions(Planner(3, LimitsOf()), BusyWorld(), 500)) {
    const std::string name(Name(action.what));
    if (action.what == What::kResumeJob) {
      EXPECT_EQ(action.name, "paused");
    }
    if (action.what == What::kSuspendJob) {
      EXPECT_EQ(action.name, "runs");
    }
    if (action.what == What::kScale) {
      EXPECT_EQ(action.name, "web");
    }
    if (action.what == What::kUncordon) {
      EXPECT_EQ(action.name, "n2");
    }
    if (action.what == What::kUntaint) {
      EXPECT_EQ(action.name, "n3");
    }
    if (action.what == What::kMakeNode) {
      EXPECT_EQ(action.name, "n4");
    }
    if (action.what == What::kDeleteNode) {
      EXPECT_EQ(action.name, "n1") << "the only one that is well";
    }
    if (action.what == What::kEvictPod) {
      EXPECT_THAT(action.name, testing::AnyOf("web-1-a", "alone"));
    }
    if (action.what == What::kDelete) {
      EXPECT_NE(action.name, "web-1") << "its Deployment's";
    }
  }
}

TEST(PlannerTest, NothingIsMadeBeyondTheBound) {
  World world = BusyWorld();
  Limits limits = LimitsOf();
  limits.load = LiveLoad(world);
  for (const Action& action : Actions(Planner(5, limits), world, 200)) {
    EXPECT_FALSE(Makes(action.what)) << Name(action.what);
  }
  limits.load = 100;
  limits.serving = Serving(world);
  bool made = false;
  for (const Action& action : Actions(Planner(5, limits), world, 200)) {
    made = made || Makes(action.what);
    EXPECT_FALSE(Makes(action.what) && Serves(action.kind)) << Name(action.what);
  }
  EXPECT_TRUE(made);
}

TEST(PlannerTest, NoMoreNodesAreTakenThanMayBeUnwell) {
  for (const Action& action : Actions(Planner(5, LimitsOf(3)), BusyWorld(), 200)) {
    EXPECT_THAT(action.what,
                testing::Not(testing::AnyOf(What::kCordon, What::kTaint, What::kDeleteNode)));
  }
}

TEST(PlannerTest, ThereIsNothingToDoWithoutAnything) {
  const World empty{.nodes = {{"n1", {}}, {"n2", {}}, {"n3", {}}, {"n4", {}}}};
  Limits limits = LimitsOf(0);
  limits.load = 0;
  for (const Action& action : Actions(Planner(5, limits), empty, 20)) {
    EXPECT_THAT(action.what,
                testing::AnyOf(What::kSweepEnded, What::kKillService, What::kMoveNode));
  }
}

TEST(CommandsTest, WhatIsMadeIsYamlWithItsNameAndKind) {
  int made = 0;
  for (const Action& action : Actions(Planner(2, LimitsOf()), BusyWorld(), 200)) {
    if (!Makes(action.what)) continue;
    ++made;
    for (const Command& command : CommandsFor(action)) {
      for (const YAML::Node& object : YAML::LoadAll(command.input)) {
        if (object.IsNull()) continue;
        EXPECT_THAT(object["metadata"]["name"].as<std::string>(), HasSubstr(action.name));
        EXPECT_EQ(object["metadata"]["namespace"].as<std::string>(), kNamespace);
      }
    }
    EXPECT_EQ(YAML::LoadAll(ObjectYaml(action)).at(0)["kind"].as<std::string>(), action.kind);
  }
  EXPECT_GT(made, 50);
}

TEST(CommandsTest, TheJobsOfAJobSetAreItsOwn) {
  const std::vector<Command> commands = CommandsFor({.what = What::kJobSet,
                                                     .kind = "JobSet",
                                                     .name = "set",
                                                     .pods = 3,
                                                     .cpu = "1",
                                                     .seconds = "1"});
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_THAT(commands[1].words, Contains("jsonpath={.metadata.uid}"));
  const auto jobs = YAML::LoadAll(commands[2].input);
  ASSERT_GE(jobs.size(), 3u);
  EXPECT_EQ(jobs[2]["metadata"]["name"].as<std::string>(), "set-workers-1");
  EXPECT_EQ(jobs[2]["metadata"]["ownerReferences"][0]["uid"].as<std::string>(), kOutputBefore);
  EXPECT_EQ(jobs[2]["spec"]["parallelism"].as<int>(), 3);
}

TEST(CommandsTest, DeletionSaysWhatBecomesOfWhatItHasMade) {
  const Command command = CommandsFor(
      {.what = What::kDelete, .kind = "Deployment", .name = "web", .value = "orphan"})[0];
  EXPECT_THAT(
      command.words,
      ElementsAre("delete", "deployment", "web", "-n", "e2e", "--wait=false", "--cascade=orphan"));
}

TEST(WorldTest, ALookIsRead) {
  const World world = ParseLook(
      "Node   n1   <none> <none> <none> <none> Ready <none> <none> true   <none>\n"
      "Node   n2   <none> <none> <none> <none> Ready <none> <none> <none> node.x/y,soak\n"
      "Job    j    JobSet <none> <none> <none> Suspended true yes <none> <none>\n"
      "Job    over <none> <none> <none> <none> SuccessCriteriaMet,Complete false <none> <none> "
      "<none>\n"
      "Pod    p    ReplicaSet <none> n1 Running Ready <none> <none> <none> <none>\n"
      "Pod    q    <none> 2026-11-27T10:00:00Z n1 Running Ready <none> <none> <none> <none>\n");
  EXPECT_TRUE(world.nodes.at("n1").cordoned);
  EXPECT_FALSE(world.nodes.at("n1").tainted);
  EXPECT_TRUE(world.nodes.at("n2").tainted);
  ASSERT_EQ(world.objects.size(), 3u) << "one is going";
  EXPECT_EQ(world.objects[0].owner, "JobSet");
  EXPECT_TRUE(world.objects[0].suspended);
  EXPECT_TRUE(world.objects[0].suspended_by_soak);
  EXPECT_FALSE(world.objects[0].ended);
  EXPECT_TRUE(world.objects[1].ended);
  EXPECT_EQ(world.objects[2].node, "n1");
  EXPECT_EQ(LiveLoad(world), 1) << "the Job that has not ended; the pod is a ReplicaSet's";
}

}  // namespace
}  // namespace fluxqueue::soak
