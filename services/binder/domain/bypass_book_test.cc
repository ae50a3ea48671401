#include "services/binder/domain/bypass_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::binder {
namespace {

using Kind = BypassStep::Kind;
using Time = std::chrono::steady_clock::time_point;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kAll = 100;
const Time kNow{std::chrono::hours(1)};

kubernetes::Namespace Space(const std::string& name, kubernetes::StringMap labels) {
  return {.name = name, .labels = std::move(labels)};
}
const kubernetes::StringMap kManaged = {{"fluxqueue.io/managed", "true"}};
const kubernetes::StringMap kStrict = {{"fluxqueue.io/managed", "true"},
                                       {"fluxqueue.io/enforce", "strict"}};

kubernetes::ObjectMeta Pod(const std::string& uid, const std::string& space = "lab") {
  kubernetes::ObjectMeta meta;
  meta.name = "pod-" + uid;
  meta.uid = uid;
  meta.namespace_name = space;
  return meta;
}

const kubernetes::OwnerClaim kDaemon{
    kubernetes::OwnerClaim::Kind::kDaemonSet, "lab", "agent", "uid-of-agent"};
const kubernetes::OwnerClaim kNode{kubernetes::OwnerClaim::Kind::kNode, "", "n1", "uid-of-n1"};

kubernetes::ObjectMeta DaemonPod(const std::string& uid, const std::string& space = "lab") {
  kubernetes::ObjectMeta meta = Pod(uid, space);
  meta.owners.push_back({"apps/v1", "DaemonSet", kDaemon.name, kDaemon.uid, true});
  return meta;
}
kubernetes::ObjectMeta MirrorPod(const std::string& uid) {
  kubernetes::ObjectMeta meta = Pod(uid);
  meta.annotations["kubernetes.io/config.mirror"] = "hash";
  meta.owners.push_back({"v1", "Node", kNode.name, kNode.uid, true});
  return meta;
}

BypassStep Check(const kubernetes::OwnerClaim& claim) {
  return {.kind = Kind::kCheck, .claim = claim};
}
BypassStep Tell(const std::string& uid, bool strict = false) {
  return {Kind::kTell, "lab", "pod-" + uid, uid, strict};
}
BypassStep Stop(const std::string& uid) {
  return {Kind::kStop, "lab", "pod-" + uid, uid, true};
}

// What is due about pods, and not what is to be looked for in their namespaces.
std::vector<BypassStep> Due(BypassBook* book, Time now) {
  std::vector<BypassStep> steps = book->TakeSteps(now, kAll);
  std::erase_if(steps, [](const BypassStep& step) { return step.kind == Kind::kLook; });
  return steps;
}

TEST(BypassBook, APodOfAManagedNamespaceIsToldOfOnce) {
  BypassBook book;
  book.Saw(Pod("a"));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), IsEmpty()) << "its namespace is not known yet";
  book.Saw(Space("lab", kManaged));
  book.Saw(Pod("b", "elsewhere"));
  EXPECT_EQ(book.size(), 1);
  EXPECT_THAT(book.TakeSteps(kNow, kAll), ElementsAre(Tell("a")));
  book.Saw(Pod("a"));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), IsEmpty());
  book.PodGone("a");
  EXPECT_EQ(book.size(), 0);
}

TEST(BypassBook, OfAStrictNamespaceItIsStoppedUntilItGoes) {
  BypassBook book;
  book.Saw(Space("lab", kStrict));
  book.Saw(Pod("a"));
  EXPECT_THAT(Due(&book, kNow), ElementsAre(Stop("a"), Tell("a", true)));
  EXPECT_THAT(Due(&book, kNow), IsEmpty()) << "the deletion is under way";
  const Time later = kNow + BypassBook::kStopAgain;
  EXPECT_THAT(Due(&book, later), ElementsAre(Stop("a"))) << "it was not done";
  kubernetes::ObjectMeta going = Pod("a");
  going.deleted_ms = 1;
  book.Saw(going);
  EXPECT_THAT(Due(&book, later + BypassBook::kStopAgain), IsEmpty());
  EXPECT_EQ(book.size(), 1) << "it runs until it has gone";
}

TEST(BypassBook, WhatANamespaceSaysCountsWhenItSaysIt) {
  BypassBook book;
  book.Saw(Space("lab", {}));
  book.Saw(Pod("a"));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), IsEmpty());
  book.Saw(Space("lab", kManaged));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), ElementsAre(Tell("a")));
  book.Saw(Space("lab", kStrict));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), ElementsAre(Stop("a")));
  book.Saw(Space("lab", {{"fluxqueue.io/enforce", "strict"}}));
  EXPECT_THAT(book.TakeSteps(kNow + BypassBook::kStopAgain, kAll), IsEmpty())
      << "it is not managed";
  book.NamespaceGone("lab");
  book.PodGone("a");
  EXPECT_EQ(book.size(), 0);
}

BypassStep Look(const std::string& space) {
  return {.kind = Kind::kLook, .space = space};
}

TEST(BypassBook, WhatWaitsInANamespaceIsLookedForOnceItHasSettled) {
  BypassBook book;
  book.Saw(Space("lab", {}));
  book.Saw(Space("elsewhere", {}));
  const Time later = kNow + std::chrono::hours(1);
  EXPECT_THAT(book.TakeSteps(later, kAll), IsEmpty()) << "neither is managed";
  book.Saw(Space("lab", kManaged));
  EXPECT_THAT(book.TakeSteps(later, kAll), IsEmpty()) << "not every API server knows it";
  EXPECT_THAT(book.TakeSteps(later + BypassBook::kSettle, kAll), ElementsAre(Look("lab")));
  book.Saw(Space("lab", kStrict));
  const Time next = later + std::chrono::hours(1);
  EXPECT_THAT(book.TakeSteps(next, kAll), IsEmpty()) << "it was managed before";
  book.LookFailed("lab", next);
  EXPECT_THAT(book.TakeSteps(next, kAll), IsEmpty());
  EXPECT_THAT(book.TakeSteps(next + BypassBook::kCheckAgain, kAll), ElementsAre(Look("lab")));
  book.LookFailed("gone", next);
}

TEST(BypassBook, ANamespaceThatIsManagedAnewIsLookedAtAnew) {
  BypassBook book;
  book.Saw(Space("lab", kManaged));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), IsEmpty());
  EXPECT_THAT(book.TakeSteps(kNow + BypassBook::kSettle, kAll), ElementsAre(Look("lab")));
  book.Saw(Space("lab", {}));
  book.Saw(Space("lab", kManaged));
  const Time later = kNow + std::chrono::minutes(1);
  EXPECT_THAT(book.TakeSteps(later, kAll), IsEmpty());
  EXPECT_THAT(book.TakeSteps(later + BypassBook::kSettle, kAll), ElementsAre(Look("lab")));
}

TEST(BypassBook, WhatIsTheClustersOwnIsLeftAlone) {
  BypassBook book;
  book.Saw(Space("kube-system", kStrict));
  book.Saw(Pod("s", "kube-system"));
  book.Saw(DaemonPod("d", "kube-system"));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), IsEmpty());
  EXPECT_EQ(book.size(), 0);
}

TEST(BypassBook, ADaemonSetOrANodeIsBelievedOnceItWasFound) {
  BypassBook book;
  book.Saw(Space("lab", kStrict));
  book.Saw(DaemonPod("d1"));
  book.Saw(DaemonPod("d2"));
  book.Saw(MirrorPod("m"));
  EXPECT_THAT(Due(&book, kNow), ElementsAre(Check(kDaemon), Check(kNode)))
      << "each owner is looked at once, and nothing is done about its pods before";
  EXPECT_EQ(book.size(), 0);
  book.Checked(kDaemon, true);
  book.Checked(kNode, true);
  EXPECT_THAT(Due(&book, kNow + BypassBook::kCheckAgain), IsEmpty());
  EXPECT_EQ(book.size(), 0);
}

TEST(BypassBook, WhoNamesAnOwnerThatIsNotThereBypassesTheQueue) {
  BypassBook book;
  book.Saw(Space("lab", kStrict));
  book.Saw(DaemonPod("d"));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), ElementsAre(Check(kDaemon)));
  book.Checked(kDaemon, false);
  EXPECT_EQ(book.size(), 1);
  EXPECT_THAT(book.TakeSteps(kNow, kAll), ElementsAre(Stop("d"), Tell("d", true)));
  // It is the same with the next one.
  book.Saw(DaemonPod("e"));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), ElementsAre(Stop("e"), Tell("e", true)));
  // Of an owner that nobody names nothing is kept.
  book.PodGone("d");
  book.PodGone("e");
  book.Saw(DaemonPod("f"));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), ElementsAre(Check(kDaemon)));
}

TEST(BypassBook, AnOwnerThatCouldNotBeLookedUpIsAskedForAgain) {
  BypassBook book;
  book.Saw(Space("lab", {}));
  book.Saw(DaemonPod("d"));
  EXPECT_THAT(Due(&book, kNow), IsEmpty()) << "the namespace is not managed";
  book.Saw(Space("lab", kManaged));
  EXPECT_THAT(Due(&book, kNow), ElementsAre(Check(kDaemon)));
  EXPECT_THAT(Due(&book, kNow), IsEmpty());
  EXPECT_THAT(Due(&book, kNow + BypassBook::kCheckAgain), ElementsAre(Check(kDaemon)));
}

TEST(BypassBook, APodThatNamesNobodyAnyMoreIsAsAnyOther) {
  BypassBook book;
  book.Saw(Space("lab", kManaged));
  book.Saw(DaemonPod("d"));
  book.TakeSteps(kNow, kAll);
  book.Checked(kDaemon, true);
  book.Saw(Pod("d"));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), ElementsAre(Tell("d")));
  // An answer that comes too late is of no use.
  book.Checked(kDaemon, true);
  EXPECT_EQ(book.size(), 1);
}

TEST(BypassBook, ARoundIsBoundedAndStopsComeFirst) {
  BypassBook book;
  book.Saw(Space("lab", kStrict));
  for (const char* uid : {"a", "b", "c"}) book.Saw(Pod(uid));
  EXPECT_THAT(book.TakeSteps(kNow, 2), ElementsAre(Stop("a"), Stop("b")));
  EXPECT_THAT(book.TakeSteps(kNow, 2), ElementsAre(Stop("c"), Tell("a", true)));
  EXPECT_THAT(book.TakeSteps(kNow, kAll), SizeIs(2));
}

}  // namespace
}  // namespace fluxqueue::binder
