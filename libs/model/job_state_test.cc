#include "libs/model/job_state.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/model/ids.h"

namespace fluxqueue::model {
namespace {

using testing::ElementsAre;

// Every pair, written out a second time by hand: a letter for each state in the order of the enum
// (None Submitted Pending Allocated Bound Running Stopping, then the four ends).
//   .  stale      X  impossible
//   S P A B R T   applied, and the job is then Submitted, Pending, Allocated, Bound, Running,
//   Stopping C J E         applied: Cancelled, reJected, one of the three ends (succeeded, failed,
//   cancelled) w             applied: Submitted or Pending        u  applied: Pending or reJected
//   b r           applied: Bound or Stopping, Running or Stopping
//   q             applied: Submitted, Pending, Failed or Cancelled
//   c f           applied: Stopping or, a claim, Cancelled; Failed
//   s             applied: Succeeded
// clang-format off
const std::map<Fact, std::string> kExpected = {
    //                      NSPABRT
    {Fact::kSubmitted,     "w.........."},
    {Fact::kResubmitted,   "..........w"},
    {Fact::kUpdated,       ".wwABRT...."},
    {Fact::kResized,       ".wwTbrT...."},
    {Fact::kCancelled,     ".CCTTcT...."},
    {Fact::kWithdrawn,     ".CCTTTT...."},
    {Fact::kQueueAppeared, ".P........."},
    {Fact::kQueueVanished, "..S........"},
    {Fact::kAllocated,     ".XAXXXX...."},
    {Fact::kRefused,       ".XPXXXX...."},
    {Fact::kUnsatisfiable, ".XuXXXX...."},
    {Fact::kInvalid,       ".XJXXXX...."},
    {Fact::kNodeGone,      ".XXTTf....."},
    {Fact::kBound,         ".XXB..T...."},
    {Fact::kBindFailed,    ".XXTTT....."},
    {Fact::kStopped,       ".XXXXXq...."},
    {Fact::kVacated,       ".XXXBR....."},
    {Fact::kSlotsLost,     ".XXABR....."},
    {Fact::kStarted,       ".XXRR.T...."},
    {Fact::kPodEnded,      ".XXABRT...."},
    {Fact::kEnded,         ".EEEEEE...."},
    {Fact::kNodeLost,      ".XXTTTT...."},
    {Fact::kExpired,       ".XXXXsX...."},
};
// clang-format on

Transition Decode(char letter) {
  switch (letter) {
    case '.':
      return {Verdict::kStale, {}};
    case 'X':
      return {Verdict::kImpossible, {}};
    case 'S':
      return {Verdict::kApply, {kSubmitted}};
    case 'P':
      return {Verdict::kApply, {kPending}};
    case 'A':
      return {Verdict::kApply, {kAllocated}};
    case 'B':
      return {Verdict::kApply, {kBound}};
    case 'R':
      return {Verdict::kApply, {kRunning}};
    case 'T':
      return {Verdict::kApply, {kStopping}};
    case 'C':
      return {Verdict::kApply, {kCancelled}};
    case 'J':
      return {Verdict::kApply, {kRejected}};
    case 'E':
      return {Verdict::kApply, {kSucceeded, kFailed, kCancelled}};
    case 'w':
      return {Verdict::kApply, {kSubmitted, kPending}};
    case 'u':
      return {Verdict::kApply, {kPending, kRejected}};
    case 'b':
      return {Verdict::kApply, {kBound, kStopping}};
    case 'r':
      return {Verdict::kApply, {kRunning, kStopping}};
    case 'c':
      return {Verdict::kApply, {kStopping, kCancelled}};
    case 'f':
      return {Verdict::kApply, {kStopping, kFailed}};
    case 's':
      return {Verdict::kApply, {kSucceeded}};
    case 'q':
      return {Verdict::kApply, {kSubmitted, kPending, kFailed, kCancelled}};
  }
  ADD_FAILURE() << "no such letter: " << letter;
  return {};
}

TEST(JobStateTest, EveryPair) {
  ASSERT_EQ(kExpected.size(), kFacts);
  for (const auto& [fact, row] : kExpected) {
    ASSERT_EQ(row.size(), kJobStates);
    for (int i = 0; i < kJobStates; ++i) {
      const auto state = static_cast<JobState>(i);
      EXPECT_EQ(Judge(state, fact), Decode(row[i])) << Name(fact) << " in " << Name(state);
    }
  }
}

TEST(JobStateTest, TerminalStatesHaveNoExitButThatWhatWasRejectedWaitsAnew) {
  for (int i = 0; i < kJobStates; ++i) {
    const auto from = static_cast<JobState>(i);
    if (!IsTerminal(from)) continue;
    for (int j = 0; j < kJobStates; ++j) {
      const auto to = static_cast<JobState>(j);
      const bool waits_anew = from == JobState::kRejected && kWaitingStates.Has(to);
      EXPECT_EQ(CanMove(from, to), waits_anew) << Name(from) << " to " << Name(to);
    }
  }
}

TEST(JobStateTest, EveryLiveStateIsOnItsWay) {
  for (int i = 1; i < kJobStates; ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_EQ(WaitsFor(state).empty(), IsTerminal(state)) << Name(state);
    // By facts alone it gets to an end.
    EXPECT_EQ(CanMove(state, JobState::kSucceeded), !IsTerminal(state)) << Name(state);
  }
}

TEST(JobStateTest, WhatMayHaveStartedIsOnlyCancelledByStopping) {
  // Cancelled is reached from a started state only by its own end.
  for (JobState state : {JobState::kAllocated, JobState::kBound, JobState::kRunning}) {
    const StateSet to = Judge(state, Fact::kCancelled).to;
    EXPECT_TRUE(to.Has(JobState::kStopping));
    // But for a claim, which only ever runs: there is nothing to be stopped.
    EXPECT_EQ(to.Has(JobState::kCancelled), state == JobState::kRunning);
    EXPECT_FALSE(CanMove(state, JobState::kPending)) << Name(state);
  }
}

TEST(JobStateTest, GuardsOfUpdates) {
  EXPECT_THAT(Names(Before(JobState::kAllocated)), ElementsAre("Pending", "Allocated"));
  EXPECT_THAT(Names(Before(JobState::kRejected)), ElementsAre("Pending"));
  EXPECT_THAT(Names(Before(JobState::kRunning)), ElementsAre("Allocated", "Bound", "Running"));
  EXPECT_THAT(Names(Before(JobState::kPending)),
              ElementsAre("None", "Submitted", "Pending", "Stopping", "Rejected"));
}

TEST(JobStateTest, NamesAreUniqueAndReadBack) {
  for (int i = 0; i < kJobStates; ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_EQ(ParseJobState(Name(state)), state);
  }
  EXPECT_EQ(ParseJobState("pending"), std::nullopt);
  for (int i = 0; i < kFacts; ++i) EXPECT_NE(Name(static_cast<Fact>(i)), "?") << i;
}

TEST(IdsTest, KeysPrintAndCompare) {
  const AllocationKey key{JobId("a"), 2, 0};
  EXPECT_EQ(fmt::format("{}", key), "a/2.0");
  EXPECT_LT(key, (AllocationKey{JobId("a"), 3, 0}));
}

}  // namespace
}  // namespace fluxqueue::model
