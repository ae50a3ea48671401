#include "services/binder/domain/pod_board.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::binder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PodBoardTest : public ::testing::Test {
 protected:
  bool See(const std::string& uid,
           const std::string& job_id,
           uint64_t version = 1,
           uint64_t history = 1) {
    PodFacts pod;
    pod.history = history;
    pod.uid = pod.name = uid;
    pod.job_id = job_id;
    pod.space = "lab";
    pod.resource_version = version;
    return board_.See(std::move(pod));
  }
  std::vector<std::string> OfJob(const std::string& job_id) const {
    std::vector<std::string> names;
    for (const PodFacts* pod : board_.OfJob(job_id, "lab")) names.push_back(pod->name);
    return names;
  }

  PodBoard board_{[](const PodFacts&) { return true; }};
};

TEST_F(PodBoardTest, ShowsThePodsOfEachJobAsTheyComeChangeAndGo) {
  for (int i = 0; i < 100; ++i) See("x" + std::to_string(i), "others");  // the map grows meanwhile
  See("b", "j");
  See("a", "j");
  See("c", "j");
  EXPECT_THAT(OfJob("j"), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(See("b", "k", 2)) << "it stays with its first job";
  EXPECT_FALSE(See("b", "j", 1));
  EXPECT_THAT(OfJob("j"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(OfJob("k"), IsEmpty());
  board_.Gone("b", "j", /*remember=*/true);
  EXPECT_THAT(OfJob("j"), ElementsAre("a", "c"));
  EXPECT_TRUE(board_.KnownGone("b", "j"));
  EXPECT_FALSE(See("b", "j", 3));
  board_.Gone("a", "j", /*remember=*/false);
  board_.Gone("c", "j", /*remember=*/false);
  board_.Gone("c", "j", /*remember=*/false);
  EXPECT_THAT(OfJob("j"), IsEmpty());
  EXPECT_TRUE(See("a", "j"));
  EXPECT_THAT(OfJob("j"), ElementsAre("a"));
  EXPECT_EQ(board_.size(), 101);
}

// An etcd restored from a backup has pods as they were, also some that have gone since.
TEST_F(PodBoardTest, ALaterHistoryIsTheTruthHoweverOldItsVersionsAre) {
  See("a", "j", 100);
  See("b", "j", 101);
  See("c", "j", 102);
  board_.Gone("c", "j", /*remember=*/true);
  board_.EnterHistory(2);
  EXPECT_FALSE(board_.KnownGone("c", "j"));
  EXPECT_TRUE(See("c", "j", 50, 2));
  EXPECT_TRUE(See("a", "j", 90, 2));
  EXPECT_EQ(board_.Find("a")->resource_version, 90);
  EXPECT_FALSE(See("a", "j", 100, 1)) << "it was under way";
  EXPECT_FALSE(See("a", "j", 90, 2));
  EXPECT_TRUE(See("a", "j", 95, 2));
  EXPECT_TRUE(See("a", "j", 96, 0)) << "a call's answer is of the history that is known";
  EXPECT_FALSE(See("b", "j", 94, 0)) << "the list of it comes yet";
  EXPECT_TRUE(See("b", "j", 94, 2));
  EXPECT_TRUE(See("d", "j", 97, 0));
  EXPECT_TRUE(See("d", "j", 98, 2));
  board_.Gone("d", "j", /*remember=*/true);
  board_.EnterHistory(2);
  EXPECT_TRUE(board_.KnownGone("d", "j")) << "it was entered before";
}

TEST_F(PodBoardTest, WhatIsTakenIsAsNeverSeen) {
  See("a", "j");
  See("b", "j");
  See("x", "k");
  std::vector<std::string> taken;
  for (const PodFacts& pod : board_.Take("j")) taken.push_back(pod.name);
  EXPECT_THAT(taken, UnorderedElementsAre("a", "b"));
  EXPECT_THAT(board_.Take("j"), IsEmpty());
  EXPECT_EQ(board_.size(), 1);
  EXPECT_EQ(board_.Find("a"), nullptr);
  EXPECT_TRUE(See("a", "j"));
  EXPECT_THAT(OfJob("j"), ElementsAre("a"));
}

}  // namespace
}  // namespace fluxqueue::binder
