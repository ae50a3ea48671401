#include "libs/scheduling/fair_share.h"

#include <deque>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::scheduling {
namespace {

using testing::ElementsAre;

constexpr int64_t kHour = 3'600'000;

Resources Of(int64_t cpu, int64_t memory = 0, int64_t gpu = 0) {
  Resources amounts;
  amounts.Add("cpu", cpu);
  amounts.Add("memory", memory);
  amounts.Add("gpu", gpu);
  return amounts;
}

struct Job : WaitingJob {
  std::string name;
  Resources asks;
  Owner* owner = nullptr;
};

class World {
 public:
  World() { options.capacity = Of(100'000, 100'000, 100); }

  void Queue(const std::string& name, QueueSpec spec) { tree.Configure(name, std::move(spec), 1); }
  void Submit(const std::string& name,
              const std::string& queue,
              const std::string& user,
              const Resources& asks,
              int64_t rank = 0,
              const std::string& space = "team") {
    Job& job = jobs.emplace_back();
    job.name = name;
    job.asks = asks;
    job.amounts = &job.asks;
    job.line_key = {rank, jobs.size()};
    job.owner = tree.OwnerOf(queue, user, space);
    tree.Wait(job.owner, job.line_key, &job);
  }
  std::vector<std::string> Order(size_t most = 1000) {
    Pass pass(&tree, options);
    std::vector<std::string> names;
    while (names.size() < most) {
      WaitingJob* next = pass.Next();
      if (next == nullptr) break;
      names.push_back(static_cast<Job*>(next)->name);
    }
    held.clear();
    for (const HeldJob& job : pass.held()) {
      held.push_back(static_cast<const Job*>(job.job)->name + ": " + job.Sentence());
    }
    due_ms = pass.due_ms();
    return names;
  }

  QueueTree tree;
  PassOptions options{.now_ms = 1, .beginning_ms = 1, .capacity = {}};
  std::deque<Job> jobs;
  std::vector<std::string> held;
  std::optional<int64_t> due_ms;
};

QueueSpec FairShare(int64_t half_life_ms = kHour) {
  QueueSpec spec;
  spec.order = JobOrder::kFairShare;
  spec.half_life_ms = half_life_ms;
  return spec;
}

TEST(PassTest, PriorityIsRankThenSubmissionWhoeverSubmits) {
  World world;
  world.Queue("q", QueueSpec());
  world.Submit("a1", "q", "ann", Of(1000));
  world.Submit("b1", "q", "bob", Of(1000));
  world.Submit("a2", "q", "ann", Of(1000), /*rank=*/5);
  world.Submit("b2", "q", "bob", Of(1000), /*rank=*/5, "other");
  EXPECT_THAT(world.Order(), ElementsAre("a2", "b2", "a1", "b1"));
}

TEST(PassTest, FairShareTakesTurnsByWhatWasTaken) {
  World world;
  world.Queue("q", FairShare());
  for (int i = 1; i <= 4; ++i) world.Submit(fmt::format("a{}", i), "q", "ann", Of(1000));
  world.Submit("b1", "q", "bob", Of(2000));
  world.Submit("b2", "q", "bob", Of(2000));
  // Equal shares: the job that was submitted first.
  EXPECT_THAT(world.Order(), ElementsAre("a1", "b1", "a2", "a3", "b2", "a4"));
  // Who holds something, or did, comes later.
  world.tree.Hold(world.tree.OwnerOf("q", "ann", "team"), Of(3000), 1);
  EXPECT_THAT(world.Order(3), ElementsAre("b1", "b2", "a1"));
  world.options.now_ms = 1 + kHour;
  world.tree.GiveBack(world.tree.OwnerOf("q", "ann", "team"), Of(3000), world.options.now_ms);
  EXPECT_THAT(world.Order(3), ElementsAre("b1", "a1", "b2"));
  // What is long past only decides between equals.
  world.options.now_ms += 100 * kHour;
  EXPECT_THAT(world.Order(3), ElementsAre("b1", "a1", "a2"));
}

TEST(PassTest, TheDominantShareCounts) {
  World world;  // of DRF's paper: 9 cpus and 18 GB
  world.options.capacity = Of(9, 18);
  world.Queue("q", FairShare());
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("a{}", i), "q", "ann", Of(1, 4));
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("b{}", i), "q", "bob", Of(3, 1));
  EXPECT_THAT(world.Order(5), ElementsAre("a1", "b1", "a2", "b2", "a3"));
}

TEST(PassTest, WeightsOfQueues) {
  World world;
  QueueSpec heavy;
  heavy.weight = 3;
  world.Queue("heavy", heavy);
  world.Queue("light", QueueSpec());
  for (int i = 1; i <= 8; ++i) {
    world.Submit(fmt::format("h{}", i), "heavy", "ann", Of(1000));
    world.Submit(fmt::format("l{}", i), "light", "ann", Of(1000));
  }
  EXPECT_THAT(world.Order(8), ElementsAre("h1", "l1", "h2", "h3", "h4", "l2", "h5", "h6"));
}

TEST(PassTest, PriorityOfQueuesThenGuaranteeThenShare) {
  World world;
  QueueSpec urgent;
  urgent.priority = 1;
  QueueSpec sure;
  sure.guarantee = Of(2000);
  world.Queue("any", QueueSpec());
  world.Queue("sure", sure);
  world.Queue("urgent", urgent);
  world.tree.Hold(world.tree.OwnerOf("sure", "x", "y"), Of(1000), 1);
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("any{}", i), "any", "ann", Of(1000));
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("sure{}", i), "sure", "ann", Of(1000));
  world.Submit("urgent1", "urgent", "ann", Of(9000));
  world.Submit("urgent2", "urgent", "ann", Of(9000));
  EXPECT_THAT(world.Order(),
              ElementsAre("urgent1", "urgent2", "sure1", "any1", "any2", "any3", "sure2", "sure3"));
}

// Guaranteed 8 cpus and 8 gpus, and it runs jobs of cpus only.
TEST(PassTest, AGuaranteeCountsForWhatTheJobAsksFor) {
  World world;
  QueueSpec sure;
  sure.guarantee = Of(8000, 0, 8);
  world.Queue("any", QueueSpec());
  world.Queue("sure", sure);
  world.tree.Hold(world.tree.OwnerOf("sure", "x", "y"), Of(6000), 1);
  world.tree.Hold(world.tree.OwnerOf("any", "x", "y"), Of(5000), 1);
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("any{}", i), "any", "ann", Of(1000));
  for (int i = 1; i <= 4; ++i) world.Submit(fmt::format("sure{}", i), "sure", "ann", Of(1000));
  // Its 8 cpus first, and not every cpu for ever.
  EXPECT_THAT(world.Order(),
              ElementsAre("sure1", "sure2", "any1", "any2", "any3", "sure3", "sure4"));
  world.options.guarantees_all = true;
  EXPECT_THAT(world.Order(4), ElementsAre("sure1", "sure2", "sure3", "sure4"));
  world.options.guarantees_all = false;
  // A job of gpus has its right to them.
  world.Submit("gpus", "sure", "ann", Of(1000, 0, 2), /*rank=*/1);
  EXPECT_THAT(world.Order(1), ElementsAre("gpus"));
}

TEST(PassTest, SharesOfATree) {
  World world;
  QueueSpec child;
  child.parent = "dept";
  world.Queue("dept", QueueSpec());
  world.Queue("left", child);
  world.Queue("right", child);
  world.Queue("alone", QueueSpec());
  for (int i = 1; i <= 2; ++i) {
    world.Submit(fmt::format("left{}", i), "left", "ann", Of(1000));
    world.Submit(fmt::format("right{}", i), "right", "ann", Of(1000));
  }
  for (int i = 1; i <= 4; ++i) world.Submit(fmt::format("alone{}", i), "alone", "bob", Of(1000));
  world.Submit("own", "dept", "ann", Of(1000));
  EXPECT_THAT(
      world.Order(),
      ElementsAre(
          "alone1", "left1", "alone2", "right1", "alone3", "left2", "alone4", "right2", "own"));
}

TEST(PassTest, NoMoreThanItsDepthOfAQueueAndNoneOfAClosedOne) {
  World world;
  QueueSpec two;
  two.depth = 2;
  world.Queue("two", two);
  world.Queue("any", QueueSpec());
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("two{}", i), "two", "ann", Of(1000));
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("any{}", i), "any", "ann", Of(1000));
  EXPECT_THAT(world.Order(), ElementsAre("any1", "two1", "any2", "two2", "any3"));
  Pass pass(&world.tree, world.options);
  EXPECT_EQ(static_cast<Job*>(pass.Next())->name, "any1");
  pass.Close("any");
  EXPECT_EQ(static_cast<Job*>(pass.Next())->name, "two1");
  EXPECT_EQ(static_cast<Job*>(pass.Next())->name, "two2");
  EXPECT_EQ(pass.Next(), nullptr);
}

TEST(PassTest, ALimitHoldsUpItsLineOnly) {
  World world;
  QueueSpec spec;
  spec.limits[2].running_jobs = 2;
  spec.limits[0].Limit("cpu", 5000);
  world.Queue("q", spec);
  world.tree.Hold(world.tree.OwnerOf("q", "ann", "team"), Of(500), 1);
  world.tree.Hold(world.tree.OwnerOf("q", "ann", "team"), Of(500), 1);
  for (int i = 1; i <= 2; ++i) world.Submit(fmt::format("a{}", i), "q", "ann", Of(1000));
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("b{}", i), "q", "bob", Of(1000));
  world.Submit("c1", "q", "cid", Of(9000));
  world.Submit("c2", "q", "cid", Of(2500));
  world.Submit("c3", "q", "cid", Of(1));
  EXPECT_THAT(world.Order(), ElementsAre("b1", "b2"));
  EXPECT_THAT(world.held,
              ElementsAre("a1: user ann runs 2 of at most 2 jobs in queue q",
                          "b3: user bob runs 0 of at most 2 jobs in queue q",  // soon
                          "c1: it asks for cpu 9, and queue q may hold at most 5: make it smaller, "
                          "or raise the limit",
                          "c2: queue q holds cpu 1 of at most 5, and this job asks for 2500m"));
}

TEST(PassTest, WhatLimitsLeaveIsTakenOnce) {
  World world;
  QueueSpec above;
  above.limits[static_cast<size_t>(Level::kQueue)].Limit("cpu", 10'000);
  QueueSpec below;
  below.parent = "all";
  below.limits[static_cast<size_t>(Level::kUser)].Limit("cpu", 6000);
  world.Queue("all", above);
  world.Queue("q", below);
  world.Submit("a1", "q", "ann", Of(2000));
  world.Submit("b1", "q", "bob", Of(1000));
  world.tree.Hold(world.tree.OwnerOf("q", "bob", "team"), Of(1000), 1);
  Pass pass(&world.tree, world.options);
  while (pass.Next() != nullptr) {
  }
  const Owner& ann = *world.jobs[0].owner;
  const Owner& bob = *world.jobs[1].owner;
  EXPECT_EQ(pass.TakeSpare(ann, {}, Of(1000), 3), 3U);
  EXPECT_EQ(pass.TakeSpare(ann, {}, Of(1000), 3), 1U) << "her own limit";
  EXPECT_EQ(pass.TakeSpare(bob, {}, Of(1000), 9), 2U) << "that of the queue above";
  EXPECT_EQ(pass.TakeSpare(bob, {}, Of(0, 1000), 9), 9U) << "no limit of memory";
}

TEST(PassTest, LimitsOfQueuesAbove) {
  World world;
  QueueSpec above;
  above.limits[1].running_jobs = 1;
  QueueSpec below;
  below.parent = "above";
  world.Queue("above", above);
  world.Queue("left", below);
  world.Queue("right", below);
  world.Submit("l", "left", "ann", Of(1), 0, "team");
  world.Submit("r", "right", "bob", Of(1), 0, "team");
  world.Submit("o", "right", "bob", Of(1), 0, "other");
  EXPECT_THAT(world.Order(), ElementsAre("l", "o"));
}

TEST(PassTest, GpuHoursLetGoWithTime) {
  World world;
  QueueSpec spec;
  spec.half_life_ms = kHour;
  spec.limits[2].gpu_seconds = 1800;
  world.Queue("q", spec);
  Owner* ann = world.tree.OwnerOf("q", "ann", "team");
  world.tree.Hold(ann, Of(0, 0, 4), 1);
  world.options.now_ms = 1 + 1800'000;
  world.tree.GiveBack(ann, Of(0, 0, 4), world.options.now_ms);
  world.Submit("gpu", "q", "ann", Of(0, 0, 1));
  EXPECT_TRUE(world.Order().empty());
  ASSERT_TRUE(world.due_ms.has_value());
  world.options.now_ms = *world.due_ms - 5000;
  EXPECT_TRUE(world.Order().empty());
  world.options.now_ms = *world.due_ms;
  EXPECT_THAT(world.Order(), ElementsAre("gpu"));
  EXPECT_EQ(world.due_ms, std::nullopt);
}

// Everybody is named once, in an order that repeats; nobody's limit is passed by what is named; and
// the first of each line that is not named is said to be held.
World WithAccounts() {
  World world;
  world.options.has_accounts = true;
  world.options.capacity.Add("example.com/fpga", 10);
  return world;
}

Resources Fpgas(int64_t fpgas) {
  Resources amounts = Of(1000);
  amounts.Add("example.com/fpga", fpgas);
  return amounts;
}

TEST(AccountsTest, SharesCountEveryResource) {
  World world = WithAccounts();
  world.Queue("q", FairShare());
  world.tree.CountOthers(true);
  for (int i = 1; i <= 2; ++i) world.Submit(fmt::format("a{}", i), "q", "ann", Fpgas(5));
  for (int i = 1; i <= 2; ++i) world.Submit(fmt::format("b{}", i), "q", "bob", Of(30'000));
  // Half of the fpgas is more than a third of the cores.
  EXPECT_THAT(world.Order(), ElementsAre("a1", "b1", "b2", "a2"));
  const Owner* ann = world.tree.OwnerOf("q", "ann", "team");
  const Account& account = *ann->rungs[0].accounts[static_cast<size_t>(Level::kUser)];
  world.tree.Hold(world.tree.OwnerOf("q", "ann", "team"), Fpgas(5), 1);
  EXPECT_DOUBLE_EQ(ShareOf(*ann->queue, account, world.options), 0.5);
  // It is remembered, and forgotten, as everything else.
  world.options.now_ms = 1 + 100 * kHour;
  world.tree.GiveBack(world.tree.OwnerOf("q", "ann", "team"), Fpgas(5), world.options.now_ms);
  EXPECT_NEAR(ShareOf(*ann->queue, account, world.options), 0.5, 1e-9);
  world.options.now_ms += kHour;
  EXPECT_NEAR(ShareOf(*ann->queue, account, world.options), 0.25, 1e-9);
  world.options.has_accounts = false;
  EXPECT_LT(ShareOf(*ann->queue, account, world.options), 0.01);
}

TEST(AccountsTest, ResourcesCountByWhatTheyAreBilledWith) {
  World world = WithAccounts();
  world.Queue("q", FairShare());
  world.options.billing = {{"cpu", 2}, {"example.com/fpga", 0}};
  for (int i = 1; i <= 2; ++i) world.Submit(fmt::format("a{}", i), "q", "ann", Fpgas(5));
  world.Submit("b1", "q", "bob", Of(1000));
  world.Submit("m1", "q", "max", Of(0, 1500));
  world.Submit("m2", "q", "max", Of(0, 1500));
  EXPECT_THAT(world.Order(), ElementsAre("a1", "b1", "m1", "m2", "a2"));
}

// Guaranteed 8 cpus and 8 gpus, and it holds as many gpus as that.
TEST(AccountsTest, OfAGuaranteeThatIsHeldInOneResourceNoMoreGoesFirst) {
  World world = WithAccounts();
  QueueSpec sure;
  sure.guarantee = Of(8000, 0, 8);
  world.Queue("any", QueueSpec());
  world.Queue("sure", sure);
  world.tree.Hold(world.tree.OwnerOf("sure", "x", "y"), Of(2000, 0, 8), 1);
  world.Submit("any", "any", "ann", Of(1000, 0, 1));
  world.Submit("both", "sure", "ann", Of(1000, 0, 1));
  EXPECT_THAT(world.Order(), ElementsAre("any", "both"));
  world.Submit("cpus", "sure", "ann", Of(1000), /*rank=*/1);
  EXPECT_THAT(world.Order(), ElementsAre("cpus", "any", "both"));
  // Until rules 3 it was first as long as it held less of anything.
  world.options.has_accounts = false;
  EXPECT_THAT(world.Order(), ElementsAre("cpus", "both", "any"));
}

// What the pass has named counts, though the pool's capacity names no tpus.
TEST(AccountsTest, AGuaranteeOfAnyResourceGoesFirst) {
  World world;
  world.options.has_accounts = true;
  QueueSpec sure;
  sure.guarantee.Add("google.com/tpu", 4);
  sure.guarantee.Add("nvidia.com/mig-1g.5gb", 2);
  world.Queue("any", QueueSpec());
  world.Queue("sure", sure);
  world.tree.Hold(world.tree.OwnerOf("sure", "x", "y"), Of(5000), 1);
  Resources tpus = Of(1000);
  tpus.Add("google.com/tpu", 2);
  Resources slices = Of(1000);
  slices.Add("nvidia.com/mig-1g.5gb", 1);
  for (int i = 1; i <= 2; ++i) world.Submit(fmt::format("any{}", i), "any", "ann", tpus);
  world.Submit("slice", "sure", "ann", slices);
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("tpus{}", i), "sure", "ann", tpus);
  EXPECT_THAT(world.Order(), ElementsAre("any1", "any2", "slice", "tpus1", "tpus2", "tpus3"));
  world.options.guarantees_others = true;
  EXPECT_THAT(world.Order(), ElementsAre("slice", "tpus1", "tpus2", "any1", "any2", "tpus3"));
  // Of nothing that is guaranteed.
  world.Submit("cpus", "sure", "ann", Of(1000), /*rank=*/1);
  EXPECT_THAT(world.Order(3), ElementsAre("any1", "any2", "cpus"));
}

TEST(AccountsTest, UsersHaveWeights) {
  World world = WithAccounts();
  QueueSpec spec = FairShare();
  spec.user_weights = {{"ann", 3}};
  world.Queue("q", spec);
  for (int i = 1; i <= 6; ++i) world.Submit(fmt::format("a{}", i), "q", "ann", Of(1000));
  for (int i = 1; i <= 2; ++i) world.Submit(fmt::format("b{}", i), "q", "bob", Of(1000));
  EXPECT_THAT(world.Order(), ElementsAre("a1", "b1", "a2", "a3", "a4", "b2", "a5", "a6"));
}

TEST(AccountsTest, WhatIsPreferredHasItsTurnWithItsUser) {
  World world = WithAccounts();
  world.Queue("q", FairShare());
  for (int i = 1; i <= 3; ++i) world.Submit(fmt::format("a{}", i), "q", "ann", Of(1000));
  for (int i = 1; i <= 2; ++i) world.Submit(fmt::format("b{}", i), "q", "bob", Of(1000));
  const auto order = [&world] {
    Pass pass(&world.tree, world.options);
    std::vector<Pass::Preferred> preferred;
    for (Job& job : world.jobs) {
      if (job.name == "a3" || job.name == "a2")
        preferred.insert(preferred.begin(), {job.owner, &job});
    }
    pass.Prefer("q", preferred);
    std::vector<std::string> names;
    while (WaitingJob* next = pass.Next()) names.push_back(static_cast<Job*>(next)->name);
    return names;
  };
  EXPECT_THAT(order(), ElementsAre("a3", "b1", "a2", "b2", "a1"));
  // By rules 3 it goes before all, and counts for nothing in the turn that follows.
  world.options.has_accounts = false;
  EXPECT_THAT(order(), ElementsAre("a3", "a2", "a1", "b1", "b2"));
}

TEST(AccountsTest, ABudgetHoldsForItsPeriod) {
  World world = WithAccounts();
  QueueSpec lab;
  lab.budgets = {{.resource = "gpu", .hours = 4, .period = Period::kDay, .holds = true}};
  world.Queue("lab", lab);
  QueueSpec below;
  below.parent = "lab";
  world.Queue("q", below);
  world.Submit("g1", "q", "ann", Of(1000, 0, 1));
  // Behind it, and not held up by it.
  world.Submit("c1", "q", "ann", Of(1000));
  EXPECT_THAT(world.Order(), ElementsAre("g1", "c1"));
  world.tree.Hold(world.tree.OwnerOf("q", "cis", "team"), Of(1000, 0, 2), 1);
  world.options.now_ms = 1 + 2 * kHour;
  EXPECT_THAT(world.Order(), ElementsAre("c1"));
  EXPECT_THAT(world.held,
              ElementsAre("g1: queue lab has used up its budget of 4 gpu-hours for this day "
                          "(UTC); jobs that ask for gpu go on with the next"));
  EXPECT_EQ(world.due_ms, 24 * kHour);
  Pass pass(&world.tree, world.options);
  Owner* cis = world.tree.OwnerOf("q", "cis", "team");
  EXPECT_EQ(pass.TakeSpare(*cis, Of(1000, 0, 2), Of(1000, 0, 1), 3), 0u);
  EXPECT_EQ(pass.TakeSpare(*cis, Of(1000), Of(1000), 3), 3u);
  // What runs on is the next day's.
  world.options.now_ms = 24 * kHour;
  EXPECT_THAT(world.Order(), ElementsAre("g1", "c1"));
  world.options.now_ms = 26 * kHour;
  EXPECT_THAT(world.Order(), ElementsAre("c1"));
  // Nothing is forgotten of it, whatever the half-life.
  lab.half_life_ms = kHour;
  world.Queue("lab", lab);
  world.tree.GiveBack(cis, Of(1000, 0, 2), world.options.now_ms);
  world.options.now_ms = 47 * kHour;
  EXPECT_THAT(world.Order(), ElementsAre("c1"));
}

TEST(AccountsTest, LimitsOfOneJob) {
  World world = WithAccounts();
  QueueSpec spec;
  spec.most_per_job.Limit("gpu", 4);
  spec.least_per_job = Of(0, 0, 1);
  world.Queue("q", spec);
  world.Submit("wide", "q", "ann", Of(1000, 0, 8));
  world.Submit("none", "q", "ann", Of(1000));
  world.Submit("fits", "q", "ann", Of(1000, 0, 4));
  EXPECT_THAT(world.Order(), ElementsAre("fits"));
  EXPECT_THAT(
      world.held,
      ElementsAre("wide: it asks for gpu 8, and a job of queue q may ask for at most 4: make "
                  "it smaller, or hand it in to another queue",
                  "none: it asks for gpu 0, and a job of queue q is to ask for at least 1: "
                  "make it larger, or hand it in to another queue"));
  Pass pass(&world.tree, world.options);
  EXPECT_EQ(pass.TakeSpare(*world.jobs[2].owner, Of(1000, 0, 1), Of(1000, 0, 1), 9), 3u);
}

RC_GTEST_PROP(PassTest, NamesEachOnceWithinAllLimits, ()) {
  World world;
  const auto queue = [](int n) { return std::string(1, static_cast<char>('a' + n)); };
  for (int n = 0; n < 4; ++n) {
    QueueSpec spec;
    if (n > 0 && *rc::gen::arbitrary<bool>()) spec.parent = queue(*rc::gen::inRange(0, n));
    spec.weight = *rc::gen::inRange(0, 4);
    spec.priority = *rc::gen::inRange(0, 2);
    spec.order = *rc::gen::arbitrary<bool>() ? JobOrder::kPriority : JobOrder::kFairShare;
    for (Limits& limits : spec.limits) {
      if (*rc::gen::inRange(0, 3) == 0) limits.running_jobs = *rc::gen::inRange<uint32_t>(0, 5);
      if (*rc::gen::inRange(0, 3) == 0) limits.Limit("cpu", *rc::gen::inRange(0, 20));
    }
    world.Queue(queue(n), spec);
  }
  const int count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i) {
    world.Submit(fmt::format("j{}", i),
                 queue(*rc::gen::inRange(0, 4)),
                 fmt::format("u{}", *rc::gen::inRange(0, 3)),
                 Of(*rc::gen::inRange(1, 6)),
                 *rc::gen::inRange<int64_t>(0, 3),
                 fmt::format("n{}", *rc::gen::inRange(0, 2)));
  }
  const std::vector<std::string> order = world.Order();
  RC_ASSERT(order == world.Order());
  const std::set<std::string> named(order.begin(), order.end());
  RC_ASSERT(named.size() == order.size());
  size_t unnamed_lines = 0;
  for (const Job& job : world.jobs) {
    if (named.contains(job.name)) world.tree.Hold(job.owner, job.asks, 1);
  }
  for (const auto& [name, node] : world.tree.nodes()) {
    for (const Owner* owner : node->waiting) {
      bool all = true;
      for (const auto& [key, job] : owner->line) {
        all = all && named.contains(static_cast<const Job*>(job)->name);
      }
      if (!all) ++unnamed_lines;
    }
    const auto check = [&](const Limits& limits, const Account& account) {
      if (limits.running_jobs) RC_ASSERT(account.running <= *limits.running_jobs);
      if (limits.shared[kCpu]) RC_ASSERT(account.held[kCpu] <= *limits.shared[kCpu]);
    };
    check(node->spec.limits[0], node->total);
    for (size_t level : {1U, 2U}) {
      for (const auto& [who, account] : node->accounts[level]) {
        check(node->spec.limits[level], account);
      }
    }
  }
  RC_ASSERT(world.held.size() >= unnamed_lines);
}

// Two users who ask for as much as they can get: whoever has had less is served, so that what they
// have had is never further apart than one job.
RC_GTEST_PROP(PassTest, SharesConverge, ()) {
  World world;
  world.Queue("q", FairShare(*rc::gen::inRange<int64_t>(1, 100) * 100'000));
  const int64_t first = *rc::gen::inRange(0, 50);
  Owner* ann = world.tree.OwnerOf("q", "ann", "team");
  Owner* bob = world.tree.OwnerOf("q", "bob", "team");
  for (int i = 0; i < 100; ++i) {
    world.Submit("a", "q", "ann", Of(1000));
    world.Submit("b", "q", "bob", Of(1000));
  }
  for (int64_t i = 0; i < first; ++i) world.tree.Hold(ann, Of(1000), 1);
  // A pool of 60 such jobs, all full, one ends and one begins.
  for (int64_t i = first; i < 60; ++i) {
    Owner* next = world.Order(1).front() == "a" ? ann : bob;
    world.tree.Hold(next, Of(1000), 1);
  }
  for (int i = 0; i < 2000; ++i) {
    world.options.now_ms += 20'000;
    const bool of_ann = ann->running > 0 && (bob->running == 0 || i % 2 == 0);
    world.tree.GiveBack(of_ann ? ann : bob, Of(1000), world.options.now_ms);
    world.tree.Hold(world.Order(1).front() == "a" ? ann : bob, Of(1000), world.options.now_ms);
  }
  RC_ASSERT(std::abs(static_cast<int>(ann->running) - static_cast<int>(bob->running)) <= 2);
}

}  // namespace
}  // namespace fluxqueue::scheduling
