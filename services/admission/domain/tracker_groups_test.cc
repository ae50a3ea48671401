#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/tracker_fixture.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

using events::v1::Envelope;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TrackerGroupsTest : public TrackerTest {
 protected:
  // As the webhook makes it.
  static json Member(const std::string& name, int size = 3, const json& more = json::object()) {
    json pod = PodJson(name);
    pod["metadata"]["uid"] = "uid-" + name;
    pod["metadata"]["labels"] = {{"fluxqueue.io/group-name", "train"},
                                 {"fluxqueue.io/group-size", fmt::format("{}", size)}};
    for (const auto& [key, value] : more.items()) pod["metadata"]["annotations"][key] = value;
    return Held(pod);
  }
  // As the binder starts it, as one of the last gang.
  json Bound(json pod, const std::string& phase = "Running") const {
    pod["spec"]["nodeName"] = "n1";
    pod["status"]["phase"] = phase;
    pod["metadata"]["annotations"]["fluxqueue.io/job-id"] = gang_;
    return pod;
  }
  static std::string Line(const Envelope& message) {
    switch (message.event_case()) {
      case Envelope::kJobSubmitted: {
        const auto& job = message.job_submitted();
        return fmt::format(
            "{} {} of {}", job.workload().kind(), job.workload().name(), job.spec().slots());
      }
      case Envelope::kJobWithdrawn:
        return "withdrawn";
      case Envelope::kJobUpdated:
        return "updated";
      default:
        return "?";
    }
  }
  static std::vector<std::string> Lines(const TrackerOutputs& out) {
    std::vector<std::string> lines;
    for (const Envelope& message : out.messages) lines.push_back(Line(message));
    return lines;
  }
  TrackerOutputs LookAtGroups() {
    TrackerOutputs out;
    tracker_.LookAtGroups(&out);
    Commit();
    return out;
  }
  // All three, and the id of their job.
  std::string Gang() {
    Observe(Member("a"));
    Observe(Member("b"));
    const TrackerOutputs out = Observe(Member("c"));
    EXPECT_THAT(Lines(out), ElementsAre("PodGroup train of 3"));
    return gang_ = out.messages.at(0).job_submitted().job_id();
  }

  std::string gang_;
};

TEST_F(TrackerGroupsTest, AGangIsSubmittedOnceAllItsPodsAreThere) {
  EXPECT_THAT(Observe(Member("a")).messages, IsEmpty());
  EXPECT_THAT(Observe(Member("b")).messages, IsEmpty());
  EXPECT_EQ(tracker_.submitted(), 0);
  const TrackerOutputs out = Observe(Member("c"));
  ASSERT_THAT(Lines(out), ElementsAre("PodGroup train of 3"));
  const auto& job = out.messages[0].job_submitted();
  EXPECT_THAT(job.workload().pods(), ElementsAre("uid-a", "uid-b", "uid-c"));
  EXPECT_EQ(job.workload().leader(), "a");
  EXPECT_EQ(job.user(), "kim");
  EXPECT_EQ(tracker_.submitted(), 1);
  EXPECT_EQ(rows_.at(job.job_id()).kind, WorkloadKind::kGroup);
  for (const char* pod : {"a", "b", "c"}) {
    EXPECT_THAT(Observe(Member(pod)).messages, IsEmpty());
    EXPECT_THAT(Observe(Bound(Member(pod))).messages, IsEmpty());
  }
}

TEST_F(TrackerGroupsTest, ARestartRemembersTheGang) {
  const std::string id = Gang();
  Restart();
  for (const char* pod : {"a", "b", "c"}) EXPECT_THAT(Observe(Member(pod)).messages, IsEmpty());
  EXPECT_EQ(rows_.size(), 1);
  // And so does one that is over before any of its pods is seen again.
  Restart();
  TrackerOutputs out;
  tracker_.BeginList(WorkloadKind::kPod);
  tracker_.EndList(WorkloadKind::kPod, {}, &out);
  Commit();
  EXPECT_THAT(Lines(out), ElementsAre("withdrawn"));
  EXPECT_EQ(out.messages[0].job_withdrawn().job_id(), id);
  EXPECT_THAT(rows_, IsEmpty());
}

TEST_F(TrackerGroupsTest, ABatchThatIsRolledBackIsHandledAgain) {
  Observe(Member("a"));
  Observe(Member("b"));
  TrackerOutputs lost;
  tracker_.Observe(Seen(Member("c")), facts_, &lost);
  EXPECT_THAT(Lines(lost), ElementsAre("PodGroup train of 3"));
  tracker_.Rollback();
  EXPECT_THAT(Lines(Observe(Member("c"))), ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, PodsOfAnotherUserOrSizeAreOfAnotherGroup) {
  Observe(Member("a"));
  Observe(Member("b"));
  json other = Member("c");
  other["metadata"]["annotations"]["fluxqueue.io/user"] = "eve";
  EXPECT_THAT(Observe(other).messages, IsEmpty());
  EXPECT_THAT(Observe(Member("d", 4)).messages, IsEmpty());
  EXPECT_THAT(Lines(Observe(Member("e"))), ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, AGroupThatLacksPodsSaysSoOnce) {
  Observe(Member("a"));
  Observe(Member("b"));
  EXPECT_TRUE(tracker_.HasIncompleteGroups());
  EXPECT_THAT(LookAtGroups().refusals, IsEmpty()) << "they may be on their way";
  const TrackerOutputs told = LookAtGroups();
  ASSERT_THAT(told.refusals, SizeIs(1));
  EXPECT_EQ(told.refusals[0].name, "a");
  EXPECT_THAT(told.refusals[0].message, HasSubstr("group train has 2 of its 3 pods"));
  EXPECT_THAT(LookAtGroups().refusals, IsEmpty());
  EXPECT_THAT(Lines(Observe(Member("c"))), ElementsAre("PodGroup train of 3"));
  EXPECT_FALSE(tracker_.HasIncompleteGroups());
}

TEST_F(TrackerGroupsTest, AGangThatLosesAPodBeforeItStartsWaitsForAnotherOne) {
  const std::string id = Gang();
  const TrackerOutputs gone = Gone("uid-b");
  ASSERT_THAT(Lines(gone), ElementsAre("withdrawn"));
  EXPECT_EQ(gone.messages[0].job_withdrawn().job_id(), id);
  EXPECT_THAT(rows_, IsEmpty());
  const TrackerOutputs again = Observe(Member("d"));
  ASSERT_THAT(Lines(again), ElementsAre("PodGroup train of 3"));
  EXPECT_NE(again.messages[0].job_submitted().job_id(), id);
}

TEST_F(TrackerGroupsTest, AGangThatRunsEndsWithItsLastPod) {
  Gang();
  for (const char* pod : {"a", "b", "c"}) Observe(Bound(Member(pod)));
  EXPECT_THAT(Observe(Bound(Member("a"), "Succeeded")).messages, IsEmpty());
  EXPECT_THAT(Observe(Bound(Member("b"), "Failed")).messages, IsEmpty());
  EXPECT_THAT(rows_, SizeIs(1));
  EXPECT_THAT(Observe(Bound(Member("c"), "Succeeded")).messages, IsEmpty())
      << "cleanup says how it has ended";
  EXPECT_THAT(rows_, IsEmpty());
  EXPECT_THAT(Gone("uid-a").messages, IsEmpty());
  // Pods of the same names are the next gang.
  Gang();
}

TEST_F(TrackerGroupsTest, OfOneThatHasStartedCleanupSeesTheEnd) {
  Gang();
  for (const char* pod : {"a", "b", "c"}) Observe(Bound(Member(pod)));
  EXPECT_THAT(Gone("uid-a").messages, IsEmpty());
  EXPECT_THAT(Observe(Bound(Member("b"), "Succeeded")).messages, IsEmpty());
  EXPECT_THAT(Gone("uid-c").messages, IsEmpty());
  EXPECT_THAT(rows_, IsEmpty());
}

TEST_F(TrackerGroupsTest, OneThatLostAPodBeforeThatHadItsSlotIsWithdrawnWithTheLast) {
  Gang();
  for (const char* pod : {"a", "b"}) Observe(Bound(Member(pod)));
  EXPECT_THAT(Gone("uid-c").messages, IsEmpty()) << "the others go on";
  EXPECT_THAT(Observe(Bound(Member("a"), "Succeeded")).messages, IsEmpty());
  EXPECT_THAT(Lines(Observe(Bound(Member("b"), "Succeeded"))), ElementsAre("withdrawn"));
}

// Its node went before kube-scheduler had bound them: cleanup has seen none of them.
TEST_F(TrackerGroupsTest, OneThatIsStoppedOnceReleasedIsWithdrawnWithTheLast) {
  const std::string id = Gang();
  for (const char* pod : {"a", "b", "c"}) {
    json released = Bound(Member(pod), "Pending");
    released["spec"].erase("nodeName");
    released["spec"]["schedulerName"] = "default-scheduler";
    EXPECT_THAT(Observe(released).messages, IsEmpty());
  }
  EXPECT_THAT(Gone("uid-a").messages, IsEmpty());
  EXPECT_THAT(Gone("uid-b").messages, IsEmpty());
  const TrackerOutputs gone = Gone("uid-c");
  ASSERT_THAT(Lines(gone), ElementsAre("withdrawn"));
  EXPECT_EQ(gone.messages[0].job_withdrawn().job_id(), id);
}

// Its attempt failed: what had been bound is being deleted, and never comes back.
TEST_F(TrackerGroupsTest, OneThatIsStoppedHalfBoundIsDisbanded) {
  Gang();
  for (const char* pod : {"a", "b"}) Observe(Bound(Member(pod)));
  const TrackerOutputs gone = Gone("uid-a");
  ASSERT_THAT(Lines(gone), ElementsAre("withdrawn"));
  EXPECT_THAT(Gone("uid-b").messages, IsEmpty());
  Observe(Member("a2"));
  EXPECT_THAT(Lines(Observe(Member("b2"))), ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, APodThatGoesSlowlyBeforeItStartsIsMissedAllTheSame) {
  Gang();
  json going = Member("b");
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  going["metadata"]["generation"] = 2;
  EXPECT_THAT(Observe(going).messages, IsEmpty());
  EXPECT_THAT(Lines(Gone("uid-b")), ElementsAre("withdrawn"));
}

TEST_F(TrackerGroupsTest, PinnedPodsThatTheBinderLetGoAskForNothingNew) {
  const auto pinned = [](const std::string& name) {
    json pod = Member(name);
    pod["spec"]["schedulerName"] = "default-scheduler";
    pod["spec"]["schedulingGates"] = json::array({{{"name", "fluxqueue.io/gate"}}});
    return pod;
  };
  const auto released = [&](const std::string& name) {
    json pod = pinned(name);
    pod["spec"]["schedulingGates"] = json::array();
    pod["spec"]["affinity"] = json::parse(R"({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}})");
    pod["metadata"]["annotations"]["fluxqueue.io/job-id"] = gang_;
    return pod;
  };
  for (const char* pod : {"a", "b"}) Observe(pinned(pod));
  const TrackerOutputs out = Observe(pinned("c"));
  ASSERT_THAT(Lines(out), ElementsAre("PodGroup train of 3"));
  gang_ = out.messages[0].job_submitted().job_id();
  for (const char* pod : {"a", "b", "c"}) {
    const TrackerOutputs quiet = Observe(released(pod));
    EXPECT_THAT(quiet.messages, IsEmpty()) << pod;
    EXPECT_THAT(quiet.refusals, IsEmpty()) << pod;
  }
  Restart();
  for (const char* pod : {"a", "b"}) EXPECT_THAT(Observe(released(pod)).messages, IsEmpty());
  const TrackerOutputs cancelled = Observe(Annotated(released("c"), "fluxqueue.io/cancel", "true"));
  ASSERT_THAT(Lines(cancelled), ElementsAre("updated"));
  EXPECT_TRUE(cancelled.messages[0].job_updated().cancel());
}

// A user who makes a Job with a selector of their own can have its controller adopt their pods.
TEST_F(TrackerGroupsTest, APodThatAJobsControllerAdoptsStaysWithItsGang) {
  const auto adopted = [](json pod) {
    pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "batch/v1"},
                                                       {"kind", "Job"},
                                                       {"name", "thief"},
                                                       {"uid", "uid-thief"},
                                                       {"controller", true}}});
    pod["metadata"]["generation"] = 7;
    return pod;
  };
  Observe(Member("a"));
  EXPECT_THAT(Observe(adopted(Member("a"))).messages, IsEmpty());
  Observe(Member("b"));
  const TrackerOutputs out = Observe(Member("c"));
  ASSERT_THAT(Lines(out), ElementsAre("PodGroup train of 3"));
  gang_ = out.messages[0].job_submitted().job_id();
  for (const char* pod : {"a", "b", "c"}) Observe(adopted(Bound(Member(pod))));
  Observe(adopted(Bound(Member("a"), "Succeeded")));
  EXPECT_THAT(Lines(Observe(Annotated(Bound(Member("b")), "fluxqueue.io/priority", "5"))),
              ElementsAre("updated"));
  Restart();
  Observe(adopted(Bound(Member("a"), "Succeeded")));
  Observe(adopted(Bound(Member("b"), "Succeeded")));
  Observe(adopted(Bound(Member("c"), "Succeeded")));
  EXPECT_THAT(rows_, IsEmpty());
}

TEST_F(TrackerGroupsTest, AReplacementIsAJobOfItsOwnWhileTheGangRuns) {
  Gang();
  for (const char* pod : {"a", "b", "c"}) Observe(Bound(Member(pod)));
  Gone("uid-b");
  EXPECT_THAT(Observe(Member("b2")).messages, IsEmpty()) << "others may follow";
  LookAtGroups();
  const TrackerOutputs alone = LookAtGroups();
  ASSERT_THAT(alone.fetches, SizeIs(1));
  EXPECT_EQ(alone.fetches[0].name, "b2");
  EXPECT_THAT(Lines(Observe(Member("b2"), alone.fetches[0].look)), ElementsAre("Pod b2 of 1"));
  Restart();
  EXPECT_THAT(Observe(Member("b2")).messages, IsEmpty());
  // As long as it is there, others are replacements, too, though the gang is gone.
  for (const char* uid : {"uid-a", "uid-b", "uid-c"}) Gone(uid);
  Observe(Member("a2"));
  LookAtGroups();
  const TrackerOutputs second = LookAtGroups();
  ASSERT_THAT(second.fetches, SizeIs(1));
  EXPECT_THAT(Lines(Observe(Member("a2"), second.fetches[0].look)), ElementsAre("Pod a2 of 1"));
  Gone("uid-b2");
  Gone("uid-a2");
  EXPECT_FALSE(tracker_.HasIncompleteGroups());
  Gang();
}

// As the pods of a StatefulSet, which grows and replaces its pods one by one.
TEST_F(TrackerGroupsTest, WhatIsAGangAtFirstGrowsPodByPod) {
  const auto member = [](const std::string& name, int size) {
    json pod = Member(name, size);
    pod["metadata"]["annotations"]["fluxqueue.io/group"] = fmt::format("db/{}^", size);
    return pod;
  };
  Observe(member("db-0", 2));
  const TrackerOutputs first = Observe(member("db-1", 2));
  ASSERT_THAT(Lines(first), ElementsAre("PodGroup db of 2"));
  gang_ = first.messages[0].job_submitted().job_id();
  EXPECT_THAT(Observe(member("db-2", 3)).fetches, IsEmpty()) << "the first ones only wait";
  for (const char* pod : {"db-0", "db-1"}) Observe(Bound(member(pod, 2)));
  const auto placed = [&](const std::string& name, int size) {
    const TrackerOutputs alone = Observe(member(name, size));
    if (alone.fetches.size() != 1) return std::vector<std::string>{"it waits"};
    return Lines(Observe(member(name, size), alone.fetches[0].look));
  };
  EXPECT_THAT(placed("db-3", 4), ElementsAre("Pod db-3 of 1")) << "at once";
  Gone("uid-db-1");
  EXPECT_THAT(placed("db-1b", 4), ElementsAre("Pod db-1b of 1"));
  // Once they have all gone the next start is the first.
  for (const char* uid : {"uid-db-0", "uid-db-1b", "uid-db-2", "uid-db-3"}) Gone(uid);
  Observe(member("db-0c", 2));
  EXPECT_THAT(Lines(Observe(member("db-1c", 2))), ElementsAre("PodGroup db of 2"));
}

// Its controller replaces one pod after the other, each once the one before runs.
TEST_F(TrackerGroupsTest, WhatIsAGangAtFirstIsUpdatedWhileItWaits) {
  const auto member = [](const std::string& name) {
    json pod = Member(name, 2);
    pod["metadata"]["annotations"]["fluxqueue.io/group"] = "db/2^";
    return pod;
  };
  Observe(member("db-0"));
  ASSERT_THAT(Lines(Observe(member("db-1"))), ElementsAre("PodGroup db of 2"));
  const TrackerOutputs gone = Gone("uid-db-1");
  EXPECT_THAT(Lines(gone), ElementsAre("withdrawn"));
  ASSERT_THAT(gone.fetches, SizeIs(1));
  EXPECT_THAT(Lines(Observe(member("db-0"), gone.fetches[0].look)), ElementsAre("Pod db-0 of 1"));
}

TEST_F(TrackerGroupsTest, PodsBehindAGangThatIsOnlyQueuedWaitForTheirOwn) {
  Gang();
  Observe(Member("d"));
  LookAtGroups();
  EXPECT_THAT(LookAtGroups().fetches, IsEmpty());
  Observe(Member("e"));
  EXPECT_THAT(Lines(Observe(Member("f"))), ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, AFullGroupThatIsNotGatheredYetIsNotSplit) {
  Gang();
  for (const char* pod : {"d", "e"}) Observe(Member(pod));
  Gone("uid-a");
  Gone("uid-c");
  LookAtGroups();
  const TrackerOutputs look = LookAtGroups();
  EXPECT_THAT(look.refusals, IsEmpty());
  ASSERT_THAT(look.fetches, SizeIs(1));
  EXPECT_THAT(Lines(Observe(Member(look.fetches[0].name), look.fetches[0].look)),
              ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, OneThatEndedUnseenIsCleanupsToEnd) {
  Gang();
  for (const char* pod : {"a", "b", "c"}) Observe(Bound(Member(pod)));
  Restart();
  for (const char* pod : {"a", "b", "c"}) {
    EXPECT_THAT(Observe(Bound(Member(pod), "Failed")).messages, IsEmpty());
  }
  EXPECT_THAT(rows_, IsEmpty());
}

TEST_F(TrackerGroupsTest, ABadKeyOnAPodThatRunsDoesNotDisbandItsGang) {
  Gang();
  for (const char* pod : {"a", "b"}) Observe(Bound(Member(pod)));
  Observe(Annotated(Member("c"), "fluxqueue.io/no-such", "x"));
  EXPECT_THAT(Observe(Annotated(Bound(Member("c")), "fluxqueue.io/no-such", "x")).messages,
              IsEmpty());
  EXPECT_THAT(Gone("uid-a").messages, IsEmpty()) << "the others go on";
  EXPECT_THAT(rows_, SizeIs(1));
}

TEST_F(TrackerGroupsTest, APodThatOptsOutWhileItWaitsIsNotTaken) {
  Observe(Member("a"));
  json out = Member("a");
  out["metadata"]["labels"]["fluxqueue.io/managed"] = "false";
  EXPECT_THAT(Observe(out).refusals, SizeIs(1));
  Observe(Member("b"));
  EXPECT_THAT(Observe(Member("c")).messages, IsEmpty());
  EXPECT_THAT(Lines(Observe(Member("d"))), ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, AGangThatIsMadeAgainAsAWholeIsTheNextGang) {
  const std::string id = Gang();
  for (const char* pod : {"a", "b", "c"}) Observe(Bound(Member(pod)));
  Gone("uid-a");
  Observe(Member("a2"));
  Gone("uid-b");
  Observe(Member("b2"));
  const TrackerOutputs next = Observe(Member("c2"));
  ASSERT_THAT(Lines(next), ElementsAre("PodGroup train of 3"));
  EXPECT_NE(next.messages[0].job_submitted().job_id(), id);
  EXPECT_THAT(Gone("uid-c").messages, IsEmpty()) << "cleanup sees the end of the first one";
  EXPECT_THAT(rows_, SizeIs(1));
}

TEST_F(TrackerGroupsTest, NoEndlessCrowdWaitsBehindAGangThatIsRefused) {
  for (const char* pod : {"a", "b"}) Observe(Member(pod));
  Observe(Member("c", 3, {{"fluxqueue.io/duration", "60"}}));
  EXPECT_EQ(tracker_.refused(), 1);
  size_t told = 0;
  for (int i = 0; i < 100; ++i) told += Observe(Member(fmt::format("x{}", i))).refusals.size();
  EXPECT_EQ(told, 100U - (2 * 3 + 64 - 3)) << "each of those that are too many is told so";
  EXPECT_THAT(rows_, IsEmpty());
  // Without the one that kept them, each gang is found by a look.
  TrackerOutputs next = Gone("uid-c");
  for (int gang = 0; gang < 20; ++gang) {
    ASSERT_THAT(next.fetches, SizeIs(1)) << gang;
    next = Observe(Member(next.fetches[0].name), next.fetches[0].look);
    ASSERT_THAT(Lines(next), ElementsAre("PodGroup train of 3")) << gang;
  }
}

TEST_F(TrackerGroupsTest, WhatOnePodAsksForLaterIsForTheGang) {
  const std::string id = Gang();
  const TrackerOutputs held = Observe(Annotated(Member("b"), "fluxqueue.io/hold", "true"));
  ASSERT_THAT(Lines(held), ElementsAre("updated"));
  EXPECT_EQ(held.messages[0].job_updated().job_id(), id);
  EXPECT_TRUE(held.messages[0].job_updated().hold());
  EXPECT_THAT(Lines(Observe(Member("b"))), ElementsAre("updated"));
  const TrackerOutputs cancelled = Observe(Annotated(Member("c"), "fluxqueue.io/cancel", "true"));
  ASSERT_THAT(Lines(cancelled), ElementsAre("updated"));
  EXPECT_TRUE(cancelled.messages[0].job_updated().cancel());
}

TEST_F(TrackerGroupsTest, PodsThatDoNotGoTogetherAreToldAndTakenOnceTheyDo) {
  Observe(Member("a"));
  Observe(Member("b"));
  const TrackerOutputs refused =
      Observe(Member("c", 3, {{"fluxqueue.io/priority", "5"}, {"fluxqueue.io/duration", "60"}}));
  EXPECT_THAT(refused.messages, IsEmpty());
  ASSERT_THAT(refused.refusals, SizeIs(1));
  EXPECT_EQ(refused.refusals[0].kind, WorkloadKind::kPod) << "Events need an object";
  EXPECT_THAT(refused.refusals[0].message,
              AllOf(HasSubstr("fluxqueue.io/duration"), HasSubstr("60000 ms")));
  EXPECT_EQ(tracker_.refused(), 1);
  EXPECT_THAT(Lines(Observe(Member("c"))), ElementsAre("PodGroup train of 3"));
  EXPECT_EQ(tracker_.refused(), 0);
}

TEST_F(TrackerGroupsTest, ARefusedGroupIsForgottenWithOneOfItsPods) {
  Observe(Member("a"));
  Observe(Member("b"));
  Observe(Member("c", 3, {{"fluxqueue.io/duration", "60"}}));
  EXPECT_EQ(tracker_.refused(), 1);
  Gone("uid-c");
  EXPECT_EQ(tracker_.refused(), 0);
  EXPECT_THAT(Lines(Observe(Member("d"))), ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, APodWithSomebodysGateIsNotThereYet) {
  Observe(Member("a"));
  Observe(Member("b"));
  json gated = Member("c");
  gated["spec"]["schedulingGates"] = json::array({{{"name", "example.com/data"}}});
  EXPECT_THAT(Observe(gated).messages, IsEmpty());
  EXPECT_THAT(Lines(Observe(Member("c"))), ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, MoreThanItsPodsWaitForTheNextGang) {
  Gang();
  EXPECT_THAT(Observe(Member("d")).messages, IsEmpty());
  EXPECT_THAT(Observe(Member("e")).messages, IsEmpty());
  EXPECT_THAT(Lines(Observe(Member("f"))), ElementsAre("PodGroup train of 3"));
}

TEST_F(TrackerGroupsTest, AGangThatWaitsFollowsTheSizeOfItsPods) {
  const std::string id = Gang();
  json larger = Member("b");
  larger["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1700m";
  larger["metadata"]["generation"] = 2;
  const TrackerOutputs out = Observe(larger);
  ASSERT_THAT(Lines(out), ElementsAre("updated"));
  const auto& update = out.messages[0].job_updated();
  EXPECT_EQ(update.job_id(), id);
  EXPECT_EQ(update.spec().revision(), 2);
  EXPECT_THAT(update.spec().jobspec(),
              AllOf(HasSubstr(R"("count":1700)"), HasSubstr(R"("label":"pod2")")))
      << "each pod keeps its slot";
  for (const char* pod : {"a", "b", "c"}) Observe(Bound(Member(pod)));
  larger["metadata"]["generation"] = 3;
  EXPECT_THAT(Observe(Bound(larger)).messages, IsEmpty()) << "it has started";
}

}  // namespace
}  // namespace fluxqueue::admission
