#include "libs/scheduling/stop_list.h"

#include <deque>
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
using testing::Optional;
using testing::UnorderedElementsAre;

constexpr int64_t kNow = 10'000'000;

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
  int64_t ran_ms = 10'000;  // 0: has not started
  bool recreatable = true;
  bool stopping = false;
};

class World {
 public:
  World() { Queue("q", {}); }

  void Queue(const std::string& name, QueueSpec spec) { tree_.Configure(name, std::move(spec), 1); }

  void Holds(const JobOptions& options = {}) {
    const Job& job = jobs_.emplace_back(Job{"j" + std::to_string(jobs_.size()), options.amounts});
    Owner* owner = tree_.OwnerOf(options.queue, "ann", "team");
    tree_.Hold(owner, job.amounts, 1);
    holding_.push_back({.id = job.id,
                        .owner = owner,
                        .priority = options.priority,
                        .rank = options.priority,
                        .amounts = &job.amounts,
                        .start_ms = options.ran_ms == 0 ? 0 : kNow - options.ran_ms,
                        .recreatable = options.recreatable,
                        .stopping = options.stopping});
  }

  Preemptor In(const std::string& queue, int32_t priority, const Resources& amounts) {
    const Job& job = jobs_.emplace_back(Job{"", amounts});
    return {.owner = tree_.OwnerOf(queue, "ann", "team"),
            .priority = priority,
            .rank = priority,
            .amounts = &job.amounts,
            .by_priority = true,
            .reclaim = true};
  }
  StopListMaker Maker() const { return {holding_, Of(1'000'000, 100), kNow}; }
  const std::vector<HoldingJob>& holding() const { return holding_; }
  const Ahead nobody_ahead;

 private:
  struct Job {
    std::string id;
    Resources amounts;
  };
  QueueTree tree_;
  std::deque<Job> jobs_;
  std::vector<HoldingJob> holding_;
};

QueueSpec Guaranteed(int64_t cpu, const std::string& parent = "") {
  QueueSpec spec;
  spec.guarantee = Of(cpu);
  spec.parent = parent;
  return spec;
}

std::vector<size_t> JobsOf(const StopList& list) {
  std::vector<size_t> jobs;
  for (const StopList::Stoppable& one : list.stoppable) jobs.push_back(one.job);
  return jobs;
}

TEST(StopListTest, NobodyMayBeStopped) {
  World world;
  world.Holds({.priority = 9});
  world.Holds({.recreatable = false});
  StopListMaker maker = world.Maker();
  EXPECT_FALSE(maker.Add(world.In("q", 5, Of(1000)), world.nobody_ahead));
  EXPECT_THAT(maker.Make(0).choices, IsEmpty());
}

// It runs as many cpus as it is guaranteed, and more gpus.
TEST(StopListTest, WhatExceedsAGuaranteeInOneResource) {
  World world;
  QueueSpec mine;
  mine.guarantee = Of(0, 8);
  world.Queue("mine", mine);
  QueueSpec lent;
  lent.guarantee = Of(64'000, 8);
  world.Queue("lent", lent);
  world.Holds({.queue = "lent", .amounts = Of(32'000)});
  for (int i = 0; i < 4; ++i) world.Holds({.queue = "lent", .amounts = Of(8000, 4)});
  Preemptor preemptor = world.In("mine", 0, Of(8000, 4));
  preemptor.by_priority = false;
  EXPECT_FALSE(world.Maker().Add(preemptor, world.nobody_ahead));
  preemptor.by_resource = true;
  StopListMaker maker = world.Maker();
  ASSERT_TRUE(maker.Add(preemptor, world.nobody_ahead));
  // For another that asks for cpus alone it keeps those.
  QueueSpec cpus;
  cpus.guarantee = Of(8000);
  world.Queue("cpus", cpus);
  Preemptor other = world.In("cpus", 0, Of(8000));
  other.by_resource = true;
  EXPECT_FALSE(maker.Add(other, world.nobody_ahead));
  const StopList list = maker.Make(0);
  // The job of cpus is no use to it, and its queue keeps it.
  EXPECT_THAT(JobsOf(list), UnorderedElementsAre(1, 2, 3, 4));
  ASSERT_EQ(list.lenders.size(), 1u);
  EXPECT_THAT(list.lenders[0].spare,
              ElementsAre(VictimRules::kNoGuarantee, VictimRules::kNoGuarantee, 8000));
}

Resources Tpus(int64_t cpu, int64_t tpus) {
  Resources amounts = Of(cpu);
  amounts.Add("google.com/tpu", tpus);
  return amounts;
}

TEST(StopListTest, WhatExceedsAGuaranteeOfAnyResource) {
  World world;
  QueueSpec mine;
  mine.guarantee = Tpus(0, 8);
  world.Queue("mine", mine);
  QueueSpec lent;
  lent.guarantee = Tpus(64'000, 4);
  lent.guarantee.Add("example.com/made-up", 7);
  world.Queue("lent", lent);
  world.Holds({.queue = "lent", .amounts = Of(32'000)});
  for (int i = 0; i < 3; ++i) world.Holds({.queue = "lent", .amounts = Tpus(1000, 4)});
  world.Holds({.queue = "lent", .amounts = Tpus(0, 2), .recreatable = false, .stopping = true});
  Preemptor preemptor = world.In("mine", 0, Tpus(8000, 4));
  preemptor.by_priority = false;
  preemptor.by_resource = true;
  EXPECT_THAT(JobsOf([&] {
                StopListMaker maker = world.Maker();
                maker.Add(preemptor, world.nobody_ahead);
                return maker.Make(0);
              }()),
              ElementsAre(4));
  preemptor.every_resource = true;
  StopListMaker maker = world.Maker();
  ASSERT_TRUE(maker.Add(preemptor, world.nobody_ahead));
  const StopList list = maker.Make(0);
  EXPECT_THAT(JobsOf(list), UnorderedElementsAre(1, 2, 3, 4));
  EXPECT_THAT(list.others, ElementsAre("google.com/tpu"));
  EXPECT_THAT(list.HoldsOf(Tpus(1000, 4)), ElementsAre(1000, 0, 0, 4));
  ASSERT_EQ(list.lenders.size(), 1u);
  // 14 are held, 2 of them are going.
  EXPECT_THAT(
      list.lenders[0].spare,
      ElementsAre(
          VictimRules::kNoGuarantee, VictimRules::kNoGuarantee, VictimRules::kNoGuarantee, 8));
}

// A job goes before others for what it asks for alone, so it does not take its room again.
TEST(StopListTest, AQueueBelowAGuaranteeLendsJobsThatHoldNothingOfIt) {
  World world;
  world.Queue("mine", Guaranteed(8000));
  for (const auto& [name, guarantee] :
       {std::pair("gpus", Of(0, 8)), std::pair("tpus", Tpus(0, 8))}) {
    QueueSpec spec;
    spec.guarantee = guarantee;
    world.Queue(name, spec);
    world.Holds({.queue = name, .amounts = Of(4000)});
  }
  world.Holds({.queue = "gpus", .amounts = Of(2000, 4)});
  world.Holds({.queue = "tpus", .amounts = Tpus(2000, 4)});
  Preemptor preemptor = world.In("mine", 0, Of(4000));
  preemptor.by_priority = false;
  preemptor.by_resource = true;
  preemptor.every_resource = true;
  StopListMaker maker = world.Maker();
  ASSERT_TRUE(maker.Add(preemptor, world.nobody_ahead));
  const StopList list = maker.Make(0);
  EXPECT_THAT(JobsOf(list), UnorderedElementsAre(0, 1));
  // The matcher compares all that a job holds: no more than nothing is to be spared.
  ASSERT_EQ(list.lenders.size(), 2u);
  EXPECT_THAT(list.lenders[0].spare,
              ElementsAre(VictimRules::kNoGuarantee, VictimRules::kNoGuarantee, 0));
  EXPECT_THAT(list.others, IsEmpty());
}

// Each preemptor counts what it asks for, of one queue; what is taken is taken of both.
TEST(StopListTest, AQueueLendsToEachWhatThatAsksFor) {
  World world;
  for (const auto& [name, guarantee] : {std::pair("gpus", Of(0, 8)), std::pair("cpus", Of(8000))}) {
    QueueSpec spec;
    spec.guarantee = guarantee;
    world.Queue(name, spec);
  }
  QueueSpec lent;
  lent.guarantee = Of(10'000, 8);
  world.Queue("lent", lent);
  for (int i = 0; i < 3; ++i) world.Holds({.queue = "lent", .amounts = Of(4000, 4)});
  StopListMaker maker = world.Maker();
  for (const auto& [name, amounts] :
       {std::pair("gpus", Of(1000, 4)), std::pair("cpus", Of(1000))}) {
    Preemptor preemptor = world.In(name, 0, amounts);
    preemptor.by_resource = true;
    maker.Add(preemptor, world.nobody_ahead);
  }
  const StopList list = maker.Make(0);
  // Of its 12 cpus it could lend 2 and a job of them holds 4; of its 12 gpus it can lend 4.
  ASSERT_EQ(list.choices.size(), 1u);
  EXPECT_THAT(list.choices[0].stoppable, ElementsAre(0, 1, 2));
  ASSERT_EQ(list.lenders.size(), 1u);
  EXPECT_EQ(list.lenders[0].spare[kGpu], 4000);
}

TEST(StopListTest, ThoseThatStopThenByWhatIsLost) {
  World world;
  world.Holds({.ran_ms = 30'000});
  world.Holds({.amounts = Of(4000)});     // 10 s × 4
  world.Holds({.amounts = Of(1000, 1)});  // 10 s × 10: a gpu of 100
  world.Holds({.ran_ms = 0});
  world.Holds({.recreatable = false, .stopping = true});
  world.Holds({.priority = 7});
  StopListMaker maker = world.Maker();
  ASSERT_TRUE(maker.Add(world.In("q", 9, Of(1000)), world.nobody_ahead));
  ASSERT_TRUE(maker.Add(world.In("q", 5, Of(1000)), world.nobody_ahead));
  const StopList list = maker.Make(0);
  EXPECT_THAT(JobsOf(list), ElementsAre(4, 3, 5, 0, 1, 2));
  // 2^30 / 1000 of the pool, for 30 s.
  EXPECT_EQ(list.stoppable[3].lost, 30 * (int64_t{1 << 30} / 1000));
  EXPECT_THAT(list.choices[0].stoppable, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(list.choices[1].stoppable, ElementsAre(0, 1, 3, 4, 5));
  EXPECT_THAT(list.lenders, IsEmpty());
}

TEST(StopListTest, MoreThanAListHasRoomForTakeTurns) {
  World world;
  for (int i = 0; i < 40; ++i) world.Holds({.priority = i < 30 ? 0 : 6, .ran_ms = 1000 * (1 + i)});
  StopListMaker maker = world.Maker();
  maker.Add(world.In("q", 5, Of(1000)), world.nobody_ahead);
  std::set<size_t> seen;
  for (uint64_t turn = 0; turn < 13; ++turn) {
    const StopList list = maker.Make(turn, 5);
    ASSERT_EQ(list.stoppable.size(), 5U);
    // Those that lose least are in each of them.
    EXPECT_THAT(JobsOf(list), testing::IsSupersetOf({0, 1, 2}));
    for (const size_t job : JobsOf(list)) seen.insert(job);
  }
  EXPECT_EQ(seen.size(), 29U);
  for (uint64_t turn = 13; turn < 27; ++turn) {
    for (const size_t job : JobsOf(maker.Make(turn, 5))) seen.insert(job);
  }
  EXPECT_EQ(seen.size(), 30U);
  // What one leaves is another's.
  maker.Add(world.In("q", 9, Of(1000)), world.nobody_ahead);
  EXPECT_EQ(maker.Make(0, 36).stoppable.size(), 36U);
  EXPECT_EQ(maker.Make(0, 40).stoppable.size(), 40U);
}

TEST(StopListTest, WhoMayComeBackAheadIsAwaited) {
  World world;
  world.Queue("a", Guaranteed(9000));
  world.Queue("b", Guaranteed(1000));
  world.Holds({.queue = "b", .amounts = Of(3000)});
  world.Holds({.queue = "b", .amounts = Of(1000), .stopping = true});
  StopListMaker maker = world.Maker();
  // It waits again in a moment, and may take what another gives up.
  ASSERT_TRUE(maker.Add(world.In("a", 5, Of(1000)), world.nobody_ahead));
  EXPECT_THAT(JobsOf(maker.Make(0)), ElementsAre(1));
}

TEST(StopListTest, LendersAreThoseBelowTheMeetingOfTheWays) {
  World world;
  world.Queue("a", Guaranteed(9000));
  world.Queue("a1", Guaranteed(4000, "a"));
  world.Queue("a2", Guaranteed(1000, "a"));
  world.Queue("b", Guaranteed(1000));
  world.Queue("b1", Guaranteed(0, "b"));
  world.Holds({.queue = "a2", .amounts = Of(3000)});
  world.Holds({.queue = "b1", .amounts = Of(3000)});
  world.Holds({.queue = "b1", .amounts = Of(1000), .recreatable = false, .stopping = true});
  world.Holds({.queue = "b1", .amounts = Of(2000)});
  StopListMaker maker = world.Maker();
  ASSERT_TRUE(maker.Add(world.In("a1", 5, Of(1000)), world.nobody_ahead));
  const StopList list = maker.Make(0);
  // a2 would have nothing of its guarantee without its job, which cannot be spared.
  EXPECT_THAT(JobsOf(list), ElementsAre(2, 3, 1));
  ASSERT_EQ(list.lenders.size(), 1U);
  EXPECT_EQ(list.lenders[0].queue->name, "b");
  // 6000 are held, 1000 of them are going.
  EXPECT_EQ(list.lenders[0].spare[kCpu], 4000);
  EXPECT_THAT(list.stoppable[1].lender, Optional(0));
  EXPECT_THAT(list.choices[0].lenders, ElementsAre(0));
}

// Three queues and a fourth below the first, which hold this and that.
struct RandomWorld {
  RandomWorld() {
    for (const std::string& name : names) {
      QueueSpec spec = Guaranteed(*rc::gen::inRange(0, 5) * 1000, name == "a1" ? "a" : "");
      spec.guarantee.Add("google.com/tpu", *rc::gen::inRange(0, 5));
      spec.guarantee.Add("nvidia.com/mig-1g.5gb", *rc::gen::inRange(0, 3));
      spec.priority = *rc::gen::inRange(0, 2);
      world.Queue(name, spec);
    }
    const int count = *rc::gen::inRange(0, 20);
    for (int i = 0; i < count; ++i) {
      JobOptions options{.queue = *rc::gen::elementOf(names),
                         .priority = *rc::gen::inRange(0, 4),
                         .amounts = AnyAmounts(),
                         .ran_ms = *rc::gen::inRange<int64_t>(0, 100'000),
                         .recreatable = *rc::gen::inRange(0, 4) != 0};
      options.stopping = *rc::gen::inRange(0, 5) == 0;
      world.Holds(options);
    }
  }
  static Resources AnyAmounts() {
    Resources amounts = Tpus(*rc::gen::inRange(1, 5) * 500, *rc::gen::inRange(0, 3));
    amounts.Add("nvidia.com/mig-1g.5gb", *rc::gen::inRange(0, 2));
    return amounts;
  }

  const std::vector<std::string> names = {"a", "a1", "b", "c"};
  World world;
};

// What a matcher may choose is what the queue's rules allow, whichever it is and in which order:
// nothing is chosen, refused and chosen again.
RC_GTEST_PROP(StopListProperty, WhatLendersCanSpareIsAllowed, ()) {
  RandomWorld random;
  Preemptor preemptor = random.world.In(
      *rc::gen::elementOf(random.names), *rc::gen::inRange(0, 4), RandomWorld::AnyAmounts());
  preemptor.by_resource = *rc::gen::arbitrary<bool>();
  preemptor.every_resource = preemptor.by_resource && *rc::gen::arbitrary<bool>();
  StopListMaker maker = random.world.Maker();
  if (!maker.Add(preemptor, random.world.nobody_ahead)) return;
  const StopList list = maker.Make(0);
  std::vector<size_t> choice = list.choices[0].stoppable;
  for (size_t i = choice.size(); i > 1; --i) {
    std::swap(choice[i - 1],
              choice[static_cast<size_t>(*rc::gen::inRange<int>(0, static_cast<int>(i)))]);
  }
  VictimRules rules(preemptor, random.world.nobody_ahead);
  for (const HoldingJob& job : random.world.holding()) {
    if (job.stopping) rules.Take(job);
  }
  std::vector<StopList::Lender> lenders = list.lenders;
  const auto counts = [&](size_t lender) {
    const auto& counting = list.choices[0].lenders;
    return std::find(counting.begin(), counting.end(), lender) != counting.end();
  };
  for (const size_t place : choice) {
    const HoldingJob& job = random.world.holding()[list.stoppable[place].job];
    if (job.stopping) continue;
    const std::vector<int64_t> holds = list.HoldsOf(*job.amounts);
    bool spared = true;
    for (auto at = list.stoppable[place].lender; at; at = lenders[*at].above) {
      if (!counts(*at)) continue;
      for (size_t i = 0; i < holds.size(); ++i)
        spared = spared && holds[i] <= lenders[*at].spare[i];
    }
    RC_ASSERT(spared == rules.MayStop(job).has_value());
    if (!spared) continue;
    rules.Take(job);
    for (auto at = list.stoppable[place].lender; at; at = lenders[*at].above) {
      for (size_t i = 0; i < holds.size(); ++i) lenders[*at].spare[i] -= holds[i];
    }
  }
}

}  // namespace
}  // namespace fluxqueue::scheduling
