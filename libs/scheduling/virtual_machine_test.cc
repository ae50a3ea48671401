// Small virtual schedules, worked out by hand; and what holds of all.
#include "libs/scheduling/virtual_machine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::scheduling {
namespace {

constexpr int64_t kQuarter = kWholePool / 4;
constexpr int64_t kSecond = 1000;

VirtualJob Waiting(uint64_t submission, int64_t quarters, int64_t seconds, int64_t rank = 0) {
  VirtualJob job;
  job.key = {rank, submission};
  job.size = quarters * kQuarter;
  job.estimate_ms = seconds * kSecond;
  job.waits = true;
  return job;
}

// A machine of four processors, and jobs as (processors, seconds).
class VirtualMachineTest : public ::testing::Test {
 protected:
  void Arrive(uint64_t submission, int64_t quarters, int64_t seconds, int64_t rank = 0) {
    VirtualJob job = Waiting(submission, quarters, seconds, rank);
    job.since_ms = machine_.state().now_ms;
    machine_.Wait(job);
  }
  void PassAt(int64_t second) { machine_.PassAt(second * kSecond); }
  // When it started virtually, in seconds; -1: it has not.
  int64_t StartOf(uint64_t submission) const {
    const VirtualJob* job = machine_.Find(submission);
    if (job == nullptr) return -2;
    return job->virtual_start_ms == kUnset ? -1 : job->virtual_start_ms / kSecond;
  }
  int64_t EndOf(uint64_t submission) const {
    return machine_.Find(submission)->virtual_end_ms / kSecond;
  }
  void StartReally(uint64_t submission) {
    VirtualJob job = *machine_.Find(submission);
    job.started_ms = machine_.state().now_ms;
    machine_.Start(job);
  }

  VirtualMachine machine_;
};

TEST_F(VirtualMachineTest, EasyByHand) {
  Arrive(1, 3, 100);  // starts
  Arrive(2, 4, 50);   // waits for it: shadow time 100, extra 0
  Arrive(3, 1, 100);  // ends at 100: passes
  Arrive(4, 1, 10);   // no room
  PassAt(0);
  EXPECT_EQ(StartOf(1), 0);
  EXPECT_EQ(StartOf(2), -1);
  EXPECT_EQ(StartOf(3), 0);
  EXPECT_EQ(StartOf(4), -1);
  EXPECT_EQ(machine_.used(), kWholePool);
  machine_.AdvanceTo(500 * kSecond);
  EXPECT_EQ(StartOf(2), 100);
  EXPECT_EQ(StartOf(4), 150);  // behind the wide one, which leaves nothing over
}

TEST_F(VirtualMachineTest, BackfillIsShortEnoughOrWithinTheExtra) {
  Arrive(1, 2, 100);
  Arrive(2, 3, 50);   // shadow time 100, extra 1
  Arrive(3, 1, 101);  // too long, but within the extra
  Arrive(4, 1, 101);  // the extra is used up
  Arrive(5, 1, 100);  // ends in time
  PassAt(0);
  EXPECT_EQ(StartOf(3), 0);
  EXPECT_EQ(StartOf(4), -1);
  EXPECT_EQ(StartOf(5), 0);
}

TEST_F(VirtualMachineTest, HigherRanksAreBeforeAllOthersInLine) {
  Arrive(1, 4, 10);
  PassAt(0);
  Arrive(2, 4, 10);
  Arrive(3, 4, 10, /*rank=*/5);
  machine_.AdvanceTo(100 * kSecond);
  EXPECT_EQ(StartOf(3), 10);
  EXPECT_EQ(StartOf(2), 20);
}

TEST_F(VirtualMachineTest, RunsForAsLongAsIsKnown) {
  machine_.SetScales({.ran = 1, .estimated = 2}, {});
  Arrive(1, 1, 100);  // has not started really: half of what was estimated
  Arrive(2, 1, 100);  // has, on time: until it really ends
  Arrive(3, 1, 100);  // has, long before
  StartReally(3);
  PassAt(0);
  StartReally(2);
  EXPECT_EQ(EndOf(1), 50);
  EXPECT_EQ(EndOf(2), 100);
  EXPECT_EQ(EndOf(3), 100);
  machine_.AdvanceTo(20 * kSecond);
  machine_.End(2);
  EXPECT_EQ(EndOf(2), 20);
  PassAt(20);
  EXPECT_EQ(machine_.Find(2), nullptr);  // over, both ways
}

TEST_F(VirtualMachineTest, WhoPassedIsAGhostInTheVirtualLine) {
  Arrive(1, 4, 100);
  PassAt(0);
  Arrive(2, 2, 60);
  StartReally(2);
  machine_.AdvanceTo(30 * kSecond);
  machine_.End(2);  // it ran for 30 s
  EXPECT_EQ(StartOf(2), -1);
  machine_.AdvanceTo(110 * kSecond);
  EXPECT_EQ(StartOf(2), 100);
  EXPECT_EQ(EndOf(2), 130);
  machine_.AdvanceTo(131 * kSecond);
  EXPECT_EQ(machine_.size(), 1U);  // the first, which waits really and is pinned
  EXPECT_EQ(machine_.pinned().size(), 1U);
}

TEST_F(VirtualMachineTest, RequeuedKeepsItsVirtualStart) {
  Arrive(1, 4, 100);
  PassAt(0);
  StartReally(1);
  Arrive(2, 4, 10);
  machine_.AdvanceTo(50 * kSecond);
  Arrive(1, 4, 100);
  EXPECT_EQ(StartOf(1), 0);
  machine_.AdvanceTo(120 * kSecond);
  ASSERT_EQ(machine_.pinned().size(), 2U);
  EXPECT_EQ(std::get<2>(*machine_.pinned().begin()), 1U);
}

TEST_F(VirtualMachineTest, UnlimitedEndsWhenItReallyEnds) {
  Arrive(1, 2, /*seconds=*/0);
  Arrive(2, 4, 10);  // waits for an end that nobody knows
  Arrive(3, 1, 1);   // so nobody passes
  PassAt(0);
  StartReally(1);
  machine_.AdvanceTo(1000 * kSecond);
  EXPECT_EQ(StartOf(2), -1);
  EXPECT_EQ(StartOf(3), -1);
  machine_.End(1);
  PassAt(1000);
  EXPECT_EQ(StartOf(2), 1000);
}

TEST_F(VirtualMachineTest, CapacityMayChangeAndLargerJobsFillIt) {
  Arrive(1, 4, 10);
  PassAt(0);
  machine_.SetCapacity(2 * kQuarter);
  Arrive(2, 3, 10);  // as large as the machine is now
  machine_.AdvanceTo(11 * kSecond);
  EXPECT_EQ(StartOf(2), 10);
  EXPECT_EQ(machine_.used(), 3 * kQuarter);
  Arrive(3, 1, 10);
  PassAt(12);
  EXPECT_EQ(StartOf(3), -1);
  machine_.SetCapacity(kWholePool);
  PassAt(12);
  EXPECT_EQ(StartOf(3), 12);
}

TEST_F(VirtualMachineTest, LeavesWithWhatItHeld) {
  Arrive(1, 4, 100);
  Arrive(2, 4, 100);
  PassAt(0);
  machine_.AdvanceTo(5 * kSecond);
  machine_.Forget(1);
  PassAt(5);
  EXPECT_EQ(StartOf(2), 5);
}

TEST_F(VirtualMachineTest, UnknownSizesStartAtOnceInTheOrderOfTheLine) {
  Arrive(1, 0, 100);
  Arrive(2, 0, 0);
  PassAt(7);
  EXPECT_EQ(StartOf(1), 0);  // the pass of the moment when it came
  EXPECT_EQ(StartOf(2), 0);
}

TEST(SizeOfTest, TheGreatestShare) {
  Resources pool;
  pool.Add("cpu", 256'000);
  pool.Add("memory", 1000);
  Resources job;
  job.Add("cpu", 1000);
  EXPECT_EQ(SizeOf(job, pool), kWholePool / 256);  // exactly
  job.Add("memory", 500);
  EXPECT_EQ(SizeOf(job, pool), kWholePool / 2);
  job.Add("gpu", 1);
  EXPECT_EQ(SizeOf(job, pool), kWholePool / 2);  // the pool has none: it never runs there anyway
  job.Add("memory", 5000);
  EXPECT_EQ(SizeOf(job, pool), kWholePool);
  EXPECT_EQ(SizeOf(job, {}), 0);
}

TEST(ScaleTest, RoundsUp) {
  EXPECT_EQ((Scale{1, 2}.Of(5)), 3);
  EXPECT_EQ((Scale{0, 2}.Of(5)), 1);
  EXPECT_EQ((Scale{3, 2}.Of(5)), 5);
  EXPECT_EQ((Scale{1, 2}.Of(0)), 0);
}

// -------------------------------------------------------------------------------------- hindsight

class HindsightTest : public VirtualMachineTest {
 protected:
  // Each wants all of the machine, and is said to run for 100 s. The second starts 30 s late.
  HindsightTest() {
    machine_.SetHindsight(true);
    for (const uint64_t job : {1, 2, 3}) Arrive(job, 4, 100);
    PassAt(0);
    StartReally(1);
    PassAt(100);
    machine_.End(1);
    PassAt(130);
    StartReally(2);
  }
};

TEST_F(HindsightTest, WhoWasShorterThanSaidMakesRoomWhereItWouldHave) {
  PassAt(180);
  EXPECT_EQ(StartOf(3), -1);
  machine_.End(2);
  EXPECT_EQ(EndOf(2), 150);
  EXPECT_EQ(StartOf(3), 150);
}

TEST_F(HindsightTest, WhoWasLongerThanSaidHoldsItsRoomForAsLong) {
  PassAt(280);
  EXPECT_EQ(StartOf(3), 200);
  machine_.End(2);
  EXPECT_EQ(EndOf(2), 250);
  EXPECT_EQ(StartOf(3), 250);
}

TEST_F(HindsightTest, WhoCameLaterIsNotThereBefore) {
  PassAt(170);
  Arrive(4, 1, 10, /*rank=*/1);
  PassAt(180);
  machine_.End(2);
  EXPECT_EQ(StartOf(3), 150);
  EXPECT_EQ(StartOf(4), -1);
  machine_.AdvanceTo(300 * kSecond);
  EXPECT_EQ(StartOf(4), 250);
}

TEST_F(HindsightTest, TurnsBackADayAndForgetsWhatIsOlder) {
  const int64_t days = 3 * kHindsightMs / kSecond;
  PassAt(days);
  machine_.End(2);  // was over virtually, longer ago
  EXPECT_EQ(StartOf(3), 200);
  PassAt(days + 1);
  EXPECT_EQ(StartOf(1), -2);
  EXPECT_EQ(StartOf(2), -2);
}

// ------------------------------------------------------------------------------------- properties

// A pool in which anything happens to the machine's jobs, and the machine again, naively.
class World {
 public:
  explicit World(bool hindsight = false) { machine.SetHindsight(hindsight); }

  void Do(int what, int which, int how) {
    const int64_t now = machine.state().now_ms + how * 700;
    machine.AdvanceTo(now);
    const uint64_t some = known_ == 0 ? 0 : 1 + static_cast<uint64_t>(which) % known_;
    const VirtualJob* job = machine.Find(some);
    if (what < 5) {
      VirtualJob added = Waiting(++known_, 1, 0);
      added.key.rank = which % 7 == 0 ? 1 : 0;
      added.size = (1 + which % 16) * kWholePool / 16;
      added.estimate_ms = (how * how + 1) * 900;
      added.since_ms = now;
      machine.Wait(added);
    } else if (what < 7) {
      machine.PassAt(now);
    } else if (job == nullptr) {
      return;
    } else if (what == 7 && job->waits) {
      VirtualJob started = *job;
      started.started_ms = now;
      machine.Start(started);
    } else if (what == 8 && job->started_ms != kUnset && job->run_ms == kUnset) {
      machine.End(some);
    } else if (what == 9 && job->run_ms == kUnset) {
      machine.Forget(some);
    } else if (what == 10 && job->started_ms != kUnset && job->run_ms == kUnset) {
      machine.Wait(*job);
    }
    Check();
  }

  void Check() const {
    int64_t used = 0;
    for (const auto& [submission, job] : machine.All()) {
      if (job.runs_virtually()) used += job.size;
    }
    RC_ASSERT(used == machine.used());
    RC_ASSERT(used <= kWholePool);
  }

  VirtualMachine machine;

 private:
  uint64_t known_ = 0;
};

using Step = std::tuple<int, int, int>;
rc::Gen<std::vector<Step>> Steps() {
  return rc::gen::container<std::vector<Step>>(
      rc::gen::tuple(rc::gen::inRange(0, 11), rc::gen::inRange(0, 100), rc::gen::inRange(0, 12)));
}

RC_GTEST_PROP(VirtualMachineProperty, NeverOvercommitsAndEverybodyStarts, (bool hindsight)) {
  World world(hindsight);
  for (const auto& [what, which, how] : *Steps()) world.Do(what, which, how);
  world.machine.AdvanceTo(world.machine.state().now_ms + 1'000'000'000);
  world.Check();
  for (const auto& [submission, job] : world.machine.All()) {
    RC_ASSERT(job.virtual_start_ms != kUnset);
    RC_ASSERT(job.over);
  }
}

RC_GTEST_PROP(VirtualMachineProperty, RestoredOrRolledBackItIsTheSame, (bool hindsight)) {
  World world(hindsight);
  const std::vector<Step> steps = *Steps();
  const std::vector<Step> lost = *Steps();
  for (const auto& [what, which, how] : steps) world.Do(what, which, how);
  world.machine.Commit();
  const auto kept = world.machine.All();
  const VirtualState state = world.machine.state();
  for (const auto& [what, which, how] : lost) world.Do(what, which, how);
  world.machine.Rollback(state);
  VirtualMachine restored;
  restored.Set(state);
  for (const auto& [submission, job] : kept) restored.Set(job);
  RC_ASSERT(world.machine.All() == kept);
  for (VirtualMachine* machine : {&restored, &world.machine}) {
    machine->AdvanceTo(state.now_ms + 20'000);
  }
  RC_ASSERT(restored.All() == world.machine.All());
  RC_ASSERT(restored.used() == world.machine.used());
}

}  // namespace
}  // namespace fluxqueue::scheduling
