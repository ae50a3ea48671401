#include "libs/scheduling/victims.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::scheduling {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kNow = 1'000'000;

Resources Of(int64_t cpu, int64_t gpu = 0) {
  Resources amounts;
  amounts.Add("cpu", cpu);
  amounts.Add("gpu", gpu);
  return amounts;
}

struct JobOptions {
  std::string queue = "q";
  int32_t priority = 0;
  Resources amounts = Of(1000);
  int64_t start_ms = kNow - 1000;
  bool recreatable = true;
  bool stopping = false;
  std::string user = "ann";
  int64_t rank = -1;  // −1: the priority
};

class World {
 public:
  World() { Queue("q", {}); }

  void Queue(const std::string& name, QueueSpec spec) { tree_.Configure(name, std::move(spec), 1); }

  void Holds(const std::string& id, const JobOptions& options = {}) {
    const Job& job = jobs_.emplace_back(Job{id, options.amounts});
    Owner* owner = tree_.OwnerOf(options.queue, options.user, "team");
    tree_.Hold(owner, job.amounts, 1);
    holding_.push_back({.id = job.id,
                        .owner = owner,
                        .priority = options.priority,
                        .rank = options.rank == -1 ? options.priority : options.rank,
                        .amounts = &job.amounts,
                        .start_ms = options.start_ms,
                        .recreatable = options.recreatable,
                        .stopping = options.stopping});
  }

  // Comes before whoever asks next.
  void IsAhead(const std::string& queue, const Resources& amounts) {
    AddAhead(*tree_.OwnerOf(queue, "eve", "team"), amounts, &ahead_);
  }

  std::vector<Victim> Choose(const JobOptions& options, bool by_priority, bool reclaim) {
    const Preemptor preemptor{.owner = tree_.OwnerOf(options.queue, options.user, "team"),
                              .priority = options.priority,
                              .rank = options.rank == -1 ? options.priority : options.rank,
                              .amounts = &options.amounts,
                              .by_priority = by_priority,
                              .reclaim = reclaim};
    return ChooseVictims(preemptor, holding_, ahead_, Of(100'000, 100), kNow, most);
  }
  std::vector<std::string> Names(const std::vector<Victim>& victims) const {
    std::vector<std::string> names;
    for (const Victim& victim : victims) names.emplace_back(holding_[victim.job].id);
    return names;
  }
  std::vector<std::string> ByPriority(const JobOptions& options) {
    return Names(Choose(options, true, false));
  }
  std::vector<std::string> Reclaims(const JobOptions& options) {
    return Names(Choose(options, false, true));
  }

  const std::vector<HoldingJob>& holding() const { return holding_; }
  size_t most = kMostVictims;

 private:
  struct Job {
    std::string id;
    Resources amounts;
  };
  QueueTree tree_;
  std::deque<Job> jobs_;
  std::vector<HoldingJob> holding_;
  Ahead ahead_;
};

QueueSpec Guaranteed(int64_t cpu, const std::string& parent = "") {
  QueueSpec spec;
  spec.guarantee = Of(cpu);
  spec.parent = parent;
  return spec;
}

QueueSpec OfPriority(int32_t priority) {
  QueueSpec spec;
  spec.priority = priority;
  return spec;
}

TEST(VictimsTest, NobodyUnlessTheQueueSaysSo) {
  World world;
  world.Holds("low");
  EXPECT_THAT(world.Choose({.priority = 9}, false, false), IsEmpty());
}

TEST(VictimsTest, OfLowerPriorityThatAControllerMakesAgain) {
  World world;
  world.Queue("other", {});
  world.Holds("low", {.priority = 1});
  world.Holds("equal", {.priority = 5});
  world.Holds("higher", {.priority = 6});
  world.Holds("bare", {.priority = 1, .recreatable = false});
  world.Holds("elsewhere", {.queue = "other", .priority = 1});
  EXPECT_THAT(world.ByPriority({.priority = 5}), ElementsAre("low"));
}

TEST(VictimsTest, NotOneThatWouldStandAheadOfItAgain) {
  World world;
  // It has waited long: its rank by age is above that of the one that comes.
  world.Holds("aged", {.priority = 1, .rank = 100});
  world.Holds("young", {.priority = 1, .rank = 10});
  EXPECT_THAT(world.ByPriority({.priority = 5, .rank = 50}), ElementsAre("young"));
}

TEST(VictimsTest, AmongUsersWhoShareFairlyOnlyOnesOwn) {
  World world;
  QueueSpec fair;
  fair.order = JobOrder::kFairShare;
  world.Queue("q", fair);
  world.Holds("mine", {.user = "ann"});
  world.Holds("his", {.user = "bob"});
  EXPECT_THAT(world.ByPriority({.priority = 5, .user = "ann"}), ElementsAre("mine"));
}

TEST(VictimsTest, BelowABranchOfLowerPriority) {
  World world;
  world.Queue("urgent", OfPriority(10));
  world.Queue("batch", OfPriority(1));
  QueueSpec night = OfPriority(99);
  night.parent = "batch";
  world.Queue("night", night);
  world.Holds("b", {.queue = "batch", .priority = 100});
  world.Holds("n", {.queue = "night"});  // its own priority counts only in its branch
  EXPECT_THAT(world.ByPriority({.queue = "urgent"}), ElementsAre("b", "n"));
  world.Holds("u", {.queue = "urgent"});
  EXPECT_THAT(world.ByPriority({.queue = "night", .priority = 100}), ElementsAre("n"));
}

TEST(VictimsTest, LeastWorkLostFirst) {
  World world;
  world.Holds("long", {.start_ms = kNow - 9000});
  world.Holds("wide", {.amounts = Of(5000), .start_ms = kNow - 2000});
  world.Holds("gpu", {.amounts = Of(1000, 1), .start_ms = kNow - 1000});
  world.Holds("idle", {.start_ms = 0});
  world.Holds("b", {.start_ms = kNow - 500});
  world.Holds("a", {.start_ms = kNow - 500});
  // The same loss as a and b, started later.
  world.Holds("late", {.amounts = Of(2000), .start_ms = kNow - 250});
  // gpu: 1 of 100 is as much as 1000m of 100000m, and more than nothing else.
  EXPECT_THAT(world.ByPriority({.priority = 1}),
              ElementsAre("idle", "late", "a", "b", "gpu", "long", "wide"));
  world.most = 2;
  EXPECT_THAT(world.ByPriority({.priority = 1}), ElementsAre("idle", "late"));
}

TEST(VictimsTest, WhatStopsAlreadyComesFirstWhoeverItIs) {
  World world;
  world.Holds("low", {.start_ms = 0});
  world.Holds("going", {.priority = 9, .recreatable = false, .stopping = true});
  EXPECT_THAT(world.Choose({.priority = 5}, true, false),
              ElementsAre(Victim{1, Victim::Why::kStopping}, Victim{0, Victim::Why::kPriority}));
}

TEST(VictimsTest, BorrowedShareIsReclaimedDownToTheGuarantee) {
  World world;
  world.Queue("mine", Guaranteed(4000));
  world.Queue("theirs", Guaranteed(2000));
  for (const char* id : {"t1", "t2", "t3", "t4"}) world.Holds(id, {.queue = "theirs"});
  const JobOptions job{.queue = "mine", .amounts = Of(3000)};
  EXPECT_THAT(world.Reclaims(job), ElementsAre("t1", "t2"));
  EXPECT_THAT(world.ByPriority(job), IsEmpty());
  // Beyond its own guarantee it has no right to anything.
  EXPECT_THAT(world.Reclaims({.queue = "mine", .amounts = Of(4001)}), IsEmpty());
  // Nor with what is tried before it.
  world.IsAhead("mine", Of(1500));
  EXPECT_THAT(world.Reclaims(job), IsEmpty());
  EXPECT_THAT(world.Reclaims({.queue = "mine", .amounts = Of(2500)}), ElementsAre("t1", "t2"));
}

// A queue below its guarantee in anything is served before those that are not: it would take the
// room of its job again, and again.
TEST(VictimsTest, NotFromAQueueThatIsOwedSomethingElse) {
  World world;
  world.Queue("mine", Guaranteed(4000));
  QueueSpec owed;
  owed.guarantee = Of(0, 4);
  world.Queue("theirs", owed);
  world.Holds("t1", {.queue = "theirs"});
  EXPECT_THAT(world.Reclaims({.queue = "mine"}), IsEmpty());
  world.Holds("gpus", {.queue = "theirs", .amounts = Of(0, 4)});
  EXPECT_THAT(world.Reclaims({.queue = "mine"}), ElementsAre("t1"));
}

TEST(VictimsTest, WhatStopsAlreadyIsNotTakenTwice) {
  World world;
  world.Queue("mine", Guaranteed(4000));
  world.Queue("theirs", Guaranteed(2000));
  world.Holds("going", {.queue = "theirs", .stopping = true});
  for (const char* id : {"t1", "t2", "t3"}) world.Holds(id, {.queue = "theirs"});
  EXPECT_THAT(world.Reclaims({.queue = "mine", .amounts = Of(3000)}), ElementsAre("going", "t1"));
}

TEST(VictimsTest, NotFromABranchOfAHigherPriorityNorWithoutAGuarantee) {
  World world;
  world.Queue("mine", Guaranteed(4000));
  world.Queue("urgent", OfPriority(5));
  world.Queue("equal", {});
  world.Holds("u", {.queue = "urgent"});
  world.Holds("e", {.queue = "equal"});
  EXPECT_THAT(world.Reclaims({.queue = "mine"}), ElementsAre("e"));
  EXPECT_THAT(world.Reclaims({.queue = "q"}), IsEmpty());
  // What is asked for is not what is guaranteed.
  EXPECT_THAT(world.Reclaims({.queue = "mine", .amounts = Of(0, 1)}), IsEmpty());
}

TEST(VictimsTest, GuaranteesOfInnerQueuesHoldOnBothSides) {
  World world;
  world.Queue("a", Guaranteed(4000));
  world.Queue("a1", Guaranteed(0, "a"));
  world.Queue("b", Guaranteed(1000));
  world.Queue("b1", Guaranteed(1000, "b"));
  world.Queue("b2", Guaranteed(0, "b"));
  world.Holds("one", {.queue = "b1"});
  world.Holds("two", {.queue = "b2"});
  world.Holds("three", {.queue = "b2"});
  // b1 has no more than its own, and b keeps its guarantee with it.
  EXPECT_THAT(world.Reclaims({.queue = "a1"}), ElementsAre("three", "two"));
  // Within a branch it is its children's guarantees that count, and a1 has none.
  world.Queue("a2", Guaranteed(0, "a"));
  world.Holds("cousin", {.queue = "a2"});
  EXPECT_THAT(world.Reclaims({.queue = "a1"}), ElementsAre("three", "two"));
}

// Three queues that hold this and that.
struct RandomWorld {
  RandomWorld() {
    for (const std::string& name : names) {
      QueueSpec spec = Guaranteed(*rc::gen::inRange(0, 5) * 1000);
      spec.priority = *rc::gen::inRange(0, 2);
      guarantees[name] = spec.guarantee[kCpu];
      world.Queue(name, spec);
    }
    const int count = *rc::gen::inRange(0, 20);
    for (int i = 0; i < count; ++i) {
      JobOptions options = Job();
      options.start_ms = *rc::gen::inRange<int64_t>(0, kNow);
      options.recreatable = *rc::gen::inRange(0, 4) != 0;
      options.stopping = *rc::gen::inRange(0, 5) == 0;
      world.Holds("j" + std::to_string(i), options);
      if (!options.stopping) held[options.queue] += options.amounts[kCpu];
    }
    world.most = static_cast<size_t>(*rc::gen::inRange(1, 12));
  }
  JobOptions Job() const {
    return {.queue = *rc::gen::elementOf(names),
            .priority = *rc::gen::inRange(0, 4),
            .amounts = Of(*rc::gen::inRange(1, 5) * 500)};
  }

  const std::vector<std::string> names = {"a", "b", "c"};
  World world;
  std::map<std::string, int64_t> guarantees;
  std::map<std::string, int64_t> held;  // without what stops
};

// Whatever holds what: nobody is named who must not be, guarantees stand when all are stopped, and
// the order is that of the loss.
RC_GTEST_PROP(VictimsProperty, NobodyIsNamedWhoMustNotBe, ()) {
  RandomWorld random;
  const JobOptions options = random.Job();
  const bool by_priority = *rc::gen::arbitrary<bool>();
  const std::vector<Victim> victims = random.world.Choose(options, by_priority, true);
  RC_ASSERT(victims.size() <= random.world.most);
  std::set<size_t> seen;
  double lost = 0;
  for (const Victim& victim : victims) {
    const HoldingJob& job = random.world.holding()[victim.job];
    RC_ASSERT(seen.insert(victim.job).second);
    RC_ASSERT(job.stopping == (victim.why == Victim::Why::kStopping));
    if (job.stopping) continue;
    RC_ASSERT(job.recreatable);
    const double loss = static_cast<double>((kNow - job.start_ms) * (*job.amounts)[kCpu]);
    RC_ASSERT(job.start_ms == 0 || loss >= lost);
    if (job.start_ms != 0) lost = loss;
    const std::string& name = job.owner->queue->name;
    random.held[name] -= (*job.amounts)[kCpu];
    if (victim.why == Victim::Why::kPriority) {
      RC_ASSERT(by_priority);
      RC_ASSERT(name != options.queue || job.priority < options.priority);
    } else {
      RC_ASSERT(name != options.queue);
      RC_ASSERT(random.held[name] >= random.guarantees[name]);
    }
  }
}

}  // namespace
}  // namespace fluxqueue::scheduling
