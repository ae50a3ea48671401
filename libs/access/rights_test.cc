#include "libs/access/rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::access {
namespace {

// "create jobs/cancel in lab of night"
std::string Text(const Right& right) {
  return right.verb + " " + right.resource +
         (right.subresource.empty() ? "" : "/" + right.subresource) +
         (right.space.empty() ? "" : " in " + right.space) +
         (right.name.empty() ? "" : " of " + right.name);
}

const Job kJob{.space = "lab", .name = "night", .user = "ann"};
const Job kClaim{.claim = true, .name = "slots", .user = "ann"};

TEST(RightsTest, TheTable) {
  EXPECT_EQ(Text(RightTo(Act::kView, kJob)), "get jobs in lab of night");
  EXPECT_EQ(Text(RightTo(Act::kCancel, kJob)), "create jobs/cancel in lab of night");
  EXPECT_EQ(Text(RightTo(Act::kHold, kJob)), "create jobs/hold in lab of night");
  EXPECT_EQ(Text(RightTo(Act::kPrioritise, kJob)), "create jobs/priority in lab of night");
  EXPECT_EQ(Text(RightTo(Act::kMove, kJob)), "create jobs/move in lab of night");
  EXPECT_EQ(Text(RightTo(Act::kView, kClaim)), "get claims of slots");
  EXPECT_EQ(Text(RightTo(Act::kCancel, kClaim)), "create claims/cancel of slots");
  EXPECT_EQ(Text(RightToJobs("list", "lab")), "list jobs in lab");
  EXPECT_EQ(Text(RightToJobs("watch", "")), "watch jobs");
  EXPECT_EQ(Text(RightToClaims("watch")), "watch claims");
  EXPECT_EQ(Text(RightToClaim("default")), "create claims of default");
  EXPECT_EQ(Text(RightToQueues("")), "list queues");
  EXPECT_EQ(Text(RightToQueues("default")), "get queues of default");
  EXPECT_EQ(Text(RightToAbandon("main")), "create pools/cycle of main");
  EXPECT_EQ(Text(RightToLookAt("main")), "get pools/graph of main");
  EXPECT_EQ(Text(RightToGraphs()), "create graphs");
}

TEST(RightsTest, TheVerbsOfSubjects) {
  EXPECT_EQ(SubjectVerb(Act::kView), "view");
  EXPECT_EQ(SubjectVerb(Act::kCancel), "cancel");
  EXPECT_EQ(SubjectVerb(Act::kHold), "hold");
  EXPECT_EQ(SubjectVerb(Act::kPrioritise), "prioritise");
  EXPECT_EQ(SubjectVerb(Act::kMove), "move");
}

TEST(RightsTest, TheMakerOfAClaimLooksAtItAndCancelsIt) {
  const User ann{.name = "ann"};
  EXPECT_TRUE(IsHisOwn(Act::kView, kClaim, ann));
  EXPECT_TRUE(IsHisOwn(Act::kCancel, kClaim, ann));
  EXPECT_FALSE(IsHisOwn(Act::kPrioritise, kClaim, ann));
  EXPECT_FALSE(IsHisOwn(Act::kMove, kClaim, ann));
  EXPECT_FALSE(IsHisOwn(Act::kView, kClaim, {.name = "eve"}));
  EXPECT_FALSE(IsHisOwn(Act::kView, kJob, ann)) << "RBAC says that";
  EXPECT_FALSE(IsHisOwn(Act::kView, {.claim = true}, {})) << "nobody's is nobody's";
}

TEST(RightsTest, AccountsOfANamespaceAreOneTenant) {
  EXPECT_EQ(TenantOf("ann"), "ann");
  EXPECT_EQ(TenantOf("system:serviceaccount:lab:a"), "system:serviceaccount:lab");
  EXPECT_EQ(TenantOf("system:serviceaccount:lab:b"), TenantOf("system:serviceaccount:lab:a"));
  EXPECT_NE(TenantOf("system:serviceaccount:la:a"), TenantOf("system:serviceaccount:lab:a"));
  EXPECT_EQ(TenantOf("system:serviceaccount:odd"), "system:serviceaccount:odd");
}

TEST(RightsTest, ARefusalSaysHowToGrantIt) {
  EXPECT_EQ(Refusal({.name = "eve"}, RightTo(Act::kPrioritise, kJob), "prioritise", "default"),
            "user 'eve' may not create jobs/priority 'night' in namespace 'lab': a Role or "
            "ClusterRole gives it that has the verb create for jobs/priority in the API group "
            "visibility.fluxqueue.io, or the verb prioritise in spec.subjects of FluxQueue "
            "'default'");
  EXPECT_EQ(Refusal({.name = "eve"}, RightToJobs("list", ""), "view", ""),
            "user 'eve' may not list jobs: a Role or ClusterRole gives it that has the verb list "
            "for jobs in the API group visibility.fluxqueue.io");
}

}  // namespace
}  // namespace fluxqueue::access
