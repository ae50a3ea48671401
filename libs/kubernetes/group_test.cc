#include "libs/kubernetes/group.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/graph/jobspec.h"
#include "libs/kubernetes/submission.h"

#include "fmt/format.h"

namespace fluxqueue::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GroupMember Member(const std::string& name, int64_t cpu = 1000, int64_t created_ms = 1) {
  GroupMember member;
  member.uid = "uid-" + name;
  member.name = name;
  member.created_ms = created_ms;
  member.user = "kim";
  member.demand.requests = {{"cpu", cpu}, {"pods", 1}};
  member.demand.constraint = R"({"tolerations":[]})";
  return member;
}

std::vector<const GroupMember*> Sorted(const std::vector<GroupMember>& members) {
  std::vector<const GroupMember*> pointers;
  for (const GroupMember& member : members) pointers.push_back(&member);
  SortBySlot(&pointers);
  return pointers;
}

std::vector<std::string> Names(const std::vector<const GroupMember*>& members) {
  std::vector<std::string> names;
  for (const GroupMember* member : members) names.push_back(member->name);
  return names;
}

TEST(GroupTest, TheRecordIsReadBack) {
  EXPECT_EQ(FormatGroup({"train", 4, false}), "train/4");
  EXPECT_EQ(ParseGroup("train/4"), (GroupName{"train", 4, false}));
  EXPECT_EQ(FormatGroup({"train", 4, true}), "train/4+");
  EXPECT_EQ(ParseGroup("train/4+"), (GroupName{"train", 4, true}));
  for (const char* record : {"",
                             "train",
                             "train/",
                             "train/1",
                             "train/x",
                             "/4",
                             "tr ain/4",
                             "train/4001",
                             "train/4/5",
                             "train/+"}) {
    EXPECT_EQ(ParseGroup(record), std::nullopt) << record;
  }
}

TEST(GroupTest, SlotsAreInTheOrderOfIndexesAndNamesSetBySet) {
  EXPECT_THAT(Names(Sorted({Member("w-10"), Member("w-2"), Member("w-1")})),
              ElementsAre("w-1", "w-2", "w-10"));
  EXPECT_THAT(Names(Sorted({Member("w-0"), Member("a-lead", 4000), Member("w-1")})),
              ElementsAre("w-0", "w-1", "a-lead"))
      << "shorter names first; its set comes where its first pod does";
  std::vector<GroupMember> stateful = {Member("a"), Member("b"), Member("c")};
  stateful[0].index = 2;
  stateful[1].index = 0;
  stateful[2].index = 1;
  EXPECT_THAT(Names(Sorted(stateful)), ElementsAre("b", "c", "a"));
}

TEST(GroupTest, UnlikePodsAreOneJobspec) {
  const std::vector<GroupMember> members = {Member("lead", 4000), Member("w-00"), Member("w-01")};
  PodDemand demand;
  const auto submission = SubmissionOf("lab", "train", Sorted(members), &demand);
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_THAT(
      demand.sets,
      ElementsAre(PodSet{1, members[0].demand.requests}, PodSet{2, members[1].demand.requests}));
  const auto jobspec = graph::ParseJobspec(submission->spec().jobspec());
  ASSERT_TRUE(jobspec.ok()) << jobspec.status();
  EXPECT_EQ(jobspec->slots, 3U);
  EXPECT_EQ(jobspec->groups.size(), 2U);
  const events::v1::Workload& workload = submission->workload();
  EXPECT_EQ(workload.kind(), "PodGroup");
  EXPECT_EQ(workload.name(), "train");
  EXPECT_EQ(workload.leader(), "lead");
  EXPECT_EQ(workload.uid(), "uid-lead");
  EXPECT_THAT(workload.pods(), ElementsAre("uid-lead", "uid-w-00", "uid-w-01"));
  EXPECT_FALSE(workload.recreatable());
  EXPECT_EQ(submission->spec().slots(), 3U);
  ASSERT_EQ(submission->spec().amounts_size(), 2);
  EXPECT_EQ(submission->spec().amounts(0).amount(), 6000);
  EXPECT_EQ(submission->spec().amounts(1).amount(), 3);
}

TEST(GroupTest, PodsThatKeepApartByNodeHaveNodesOfTheirOwn) {
  std::vector<GroupMember> members = {Member("w-00"), Member("w-01")};
  for (GroupMember& member : members) {
    member.demand.rules.pod = R"({"labels":{"app":"w"},"namespace":"lab"})";
    member.demand.rules.rules =
        R"({"apart":[{"key":"kubernetes.io/hostname","pods":{"labels":{"app":"w"}}}]})";
    member.demand.rules.one_per_node = true;
  }
  PodDemand demand;
  const auto submission = SubmissionOf("lab", "train", Sorted(members), &demand);
  ASSERT_TRUE(submission.ok()) << submission.status();
  const auto jobspec = graph::ParseJobspec(submission->spec().jobspec());
  ASSERT_TRUE(jobspec.ok()) << jobspec.status();
  EXPECT_TRUE(jobspec->one_per_node);
  EXPECT_EQ(jobspec->slots, 2u);
  members.push_back(Member("lead", 4000));
  members.back().demand.rules = members[0].demand.rules;
  EXPECT_THAT(Message(SubmissionOf("lab", "train", Sorted(members), &demand).status()),
              HasSubstr("cannot be kept together with pods that ask for different amounts"));
}

TEST(GroupTest, ItsIdIsMadeOfItsPods) {
  const std::vector<GroupMember> members = {Member("a"), Member("b")};
  const std::string id = GroupJobId(Sorted(members));
  EXPECT_EQ(id.size(), 36U);
  EXPECT_TRUE(IsUid(id)) << id;
  EXPECT_EQ(id, GroupJobId({&members[1], &members[0]})) << "in any order";
  const std::vector<GroupMember> others = {Member("a"), Member("c")};
  EXPECT_NE(id, GroupJobId(Sorted(others)));
}

TEST(GroupTest, WhatOneAsksForIsForAll) {
  std::vector<GroupMember> members = {Member("a", 1000, 5'000), Member("b", 1000, 7'000)};
  members[1].priority = 9;
  members[1].keys.hold = true;
  members[1].keys.begin = Begin{.at_ms = 0, .after = Millis(1'000)};
  PodDemand demand;
  const auto submission = SubmissionOf("lab", "train", Sorted(members), &demand);
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->priority(), 9);
  EXPECT_TRUE(submission->hold());
  EXPECT_EQ(submission->begin_ms(), 8'000);
  EXPECT_EQ(submission->created_ms(), 7'000) << "it is there since the last of them is";
}

TEST(GroupTest, PodsThatDifferInWhatAJobHasOnceAreNamed) {
  const auto refusal = [](const std::function<void(GroupMember*)>& change) {
    std::vector<GroupMember> members = {Member("a"), Member("b")};
    change(&members[1]);
    PodDemand demand;
    const auto submission = SubmissionOf("lab", "train", Sorted(members), &demand);
    return submission.ok() ? "" : Message(submission.status());
  };
  EXPECT_THAT(refusal([](GroupMember* b) { b->keys.queue = "gpu"; }),
              AllOf(HasSubstr("pods a and b"), HasSubstr("fluxqueue.io/queue"), HasSubstr("gpu")));
  EXPECT_THAT(refusal([](GroupMember* b) { b->duration = Millis(5); }), HasSubstr("5 ms"));
  EXPECT_THAT(refusal([](GroupMember* b) { b->keys.qos = "urgent"; }), HasSubstr("urgent"));
  EXPECT_THAT(refusal([](GroupMember* b) {
                b->keys.topology = Topology{"rack", ""};
              }),
              HasSubstr("required: rack"));
  EXPECT_THAT(refusal([](GroupMember* b) { b->keys.depends_on.emplace(1); }),
              HasSubstr("depends-on"));
  EXPECT_THAT(refusal([](GroupMember* b) { b->demand.constraint = "{}"; }),
              HasSubstr("nodeSelector"));
}

TEST(GroupTest, MoreKindsOfPodsThanAJobspecTakesAreRefused) {
  std::vector<GroupMember> members;
  for (int i = 0; i < 17; ++i) members.push_back(Member(fmt::format("p{:02}", i), 1000 + i));
  EXPECT_THAT(Message(DemandOf(Sorted(members)).status()), HasSubstr("more than 16"));
  members.pop_back();
  EXPECT_TRUE(DemandOf(Sorted(members)).ok());
}

}  // namespace
}  // namespace fluxqueue::kubernetes
