// Gangs whose pods are made by Jobs: a JobSet's, the launcher of an MPIJob beside its workers.
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
using events::v1::JobSubmitted;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TrackerGroupJobsTest : public TrackerTest {
 protected:
  // As the webhook makes it: its pods are of the group train/3.
  static json GroupJob(const std::string& name = "launcher") {
    json job = JobJson(name, 1);
    job["metadata"]["uid"] = "uid-" + name;
    job["spec"]["template"]["metadata"]["labels"] = {{"fluxqueue.io/group-name", "train"},
                                                     {"fluxqueue.io/group-size", "3"}};
    return Held(job);
  }
  // As the Job's controller makes it of the template.
  static json PodOfJob(const json& job, const std::string& name) {
    json pod = PodOf(job);
    pod["metadata"]["name"] = name;
    pod["metadata"]["uid"] = "uid-" + name;
    pod["spec"] = job["spec"]["template"]["spec"];
    for (const char* map : {"labels", "annotations"}) {
      pod["metadata"][map].update(job["spec"]["template"]["metadata"][map]);
    }
    return pod;
  }
  // A pod that no Job makes.
  static json Worker(const std::string& name) {
    json pod = PodJson(name);
    pod["metadata"]["uid"] = "uid-" + name;
    pod["metadata"]["labels"] = {{"fluxqueue.io/group-name", "train"},
                                 {"fluxqueue.io/group-size", "3"}};
    return Held(pod);
  }
  JobSubmitted Gang() {
    Observe(GroupJob());
    Observe(Worker("w-0"));
    Observe(Worker("w-1"));
    const TrackerOutputs out = Observe(PodOfJob(GroupJob(), "l"));
    EXPECT_THAT(out.messages, SizeIs(1));
    return out.messages.at(0).job_submitted();
  }
  TrackerOutputs LookAtGroups() {
    TrackerOutputs out;
    tracker_.LookAtGroups(&out);
    Commit();
    return out;
  }
  // The pod as the binder has bound it for the gang.
  static json Bound(json pod, const std::string& gang) {
    pod["spec"]["nodeName"] = "n1";
    pod["metadata"]["annotations"]["fluxqueue.io/job-id"] = gang;
    return pod;
  }
};

TEST_F(TrackerGroupJobsTest, TheJobIsNoJobAndItsPodsAreOneGangWithOthers) {
  EXPECT_THAT(Observe(GroupJob()).messages, IsEmpty());
  EXPECT_THAT(Observe(Worker("w-0")).messages, IsEmpty());
  EXPECT_THAT(Observe(Worker("w-1")).messages, IsEmpty());
  const TrackerOutputs out = Observe(PodOfJob(GroupJob(), "l"));
  ASSERT_THAT(out.messages, SizeIs(1));
  const JobSubmitted& gang = out.messages[0].job_submitted();
  EXPECT_EQ(gang.workload().kind(), "PodGroup");
  EXPECT_THAT(gang.workload().pods(), ElementsAre("uid-l", "uid-w-0", "uid-w-1"));
  EXPECT_EQ(gang.user(), "kim") << "who made the Job";
}

TEST_F(TrackerGroupJobsTest, PodsThatAreSeenBeforeTheirJobAreLookedAtThen) {
  Observe(Worker("w-0"));
  Observe(Worker("w-1"));
  EXPECT_THAT(Observe(PodOfJob(GroupJob(), "l")).messages, IsEmpty());
  const TrackerOutputs out = Observe(GroupJob());
  ASSERT_THAT(out.fetches, SizeIs(1));
  EXPECT_EQ(out.fetches[0].uid, "uid-l");
  EXPECT_THAT(Observe(PodOfJob(GroupJob(), "l"), out.fetches[0].look).messages, SizeIs(1));
}

TEST_F(TrackerGroupJobsTest, ARecordThatOnlyTheTemplateHasMakesNoGang) {
  json job = Held(JobJson());
  EXPECT_THAT(Observe(job).messages, SizeIs(1)) << "a job of its own";
  job["spec"]["template"]["metadata"]["annotations"] = {{"fluxqueue.io/group", "train/3"}};
  Observe(Worker("w-0"));
  Observe(Worker("w-1"));
  EXPECT_THAT(Observe(PodOfJob(job, "l")).messages, IsEmpty());
}

// As a template says that was made past the webhook, in a namespace that is not managed.
TEST_F(TrackerGroupJobsTest, APodOfAJobThatIsNotHeldIsOfNoGang) {
  Observe(Worker("w-0"));
  Observe(Worker("w-1"));
  json forged = PodOfJob(GroupJob("unheld"), "l");
  forged["metadata"]["annotations"]["fluxqueue.io/user"] = "kim";
  EXPECT_THAT(Observe(forged).messages, IsEmpty()) << "who has made it is not known";
}

TEST_F(TrackerGroupJobsTest, TheReplacementOfAPodIsAJobOfItsMaker) {
  const JobSubmitted gang = Gang();
  for (const char* name : {"w-0", "w-1"}) Observe(Bound(Worker(name), gang.job_id()));
  Observe(Bound(PodOfJob(GroupJob(), "l"), gang.job_id()));
  Gone("uid-l");
  EXPECT_THAT(Observe(PodOfJob(GroupJob(), "l2")).messages, IsEmpty());
  LookAtGroups();
  const TrackerOutputs late = LookAtGroups();
  ASSERT_THAT(late.fetches, SizeIs(1));
  const TrackerOutputs out = Observe(PodOfJob(GroupJob(), "l2"), late.fetches[0].look);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_submitted().workload().kind(), "Pod");
  EXPECT_EQ(out.messages[0].job_submitted().user(), "kim");
}

TEST_F(TrackerGroupJobsTest, AfterARestartTheGangIsWhatItWas) {
  const JobSubmitted gang = Gang();
  Restart();
  EXPECT_THAT(Observe(PodOfJob(GroupJob(), "l")).messages, IsEmpty()) << "its Job comes later";
  Observe(Worker("w-0"));
  Observe(Worker("w-1"));
  const TrackerOutputs out = Observe(GroupJob());
  ASSERT_THAT(out.fetches, SizeIs(1));
  EXPECT_THAT(Observe(PodOfJob(GroupJob(), "l"), out.fetches[0].look).messages, IsEmpty());
  const TrackerOutputs gone = Gone("uid-l");
  ASSERT_THAT(gone.messages, SizeIs(1));
  EXPECT_EQ(gone.messages[0].job_withdrawn().job_id(), gang.job_id());
}

TEST_F(TrackerGroupJobsTest, AJobThatGoesLeavesItsGangToItsPods) {
  Gang();
  EXPECT_THAT(Gone("uid-launcher").messages, IsEmpty());
  EXPECT_THAT(Gone("uid-l").messages, SizeIs(1));
}

// The user asked for no gang: a worker that an autoscaler adds to a head that is no gang, the last
// pod of a set that is made again after the others have ended.
TEST_F(TrackerGroupJobsTest, PodsOfASetThatAreNotAllThereAreEachAJob) {
  json worker = Worker("w-0");
  worker["metadata"]["annotations"]["fluxqueue.io/group"] = "ray/4+";
  EXPECT_THAT(Observe(worker).messages, IsEmpty());
  EXPECT_THAT(LookAtGroups().fetches, IsEmpty()) << "others may come";
  const TrackerOutputs late = LookAtGroups();
  ASSERT_THAT(late.fetches, SizeIs(1));
  EXPECT_THAT(late.refusals, IsEmpty());
  const TrackerOutputs out = Observe(worker, late.fetches[0].look);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_submitted().workload().kind(), "Pod");
}

TEST_F(TrackerGroupJobsTest, PodsOfASetThatDifferInTheirNodesAreEachAJob) {
  json head = Worker("head");
  json worker = Worker("worker");
  worker["spec"]["nodeSelector"] = {{"gpu", "yes"}};
  for (json* pod : {&head, &worker}) {
    (*pod)["metadata"]["annotations"]["fluxqueue.io/group"] = "ray/2+";
  }
  Observe(head);
  const TrackerOutputs both = Observe(worker);
  EXPECT_THAT(both.refusals, IsEmpty());
  ASSERT_THAT(both.fetches, SizeIs(2));
  for (const Fetch& fetch : both.fetches) {
    EXPECT_THAT(Observe(fetch.uid == "uid-head" ? head : worker, fetch.look).messages, SizeIs(1));
  }
}

// By a version that does not know such Jobs, and may run beside this one.
TEST_F(TrackerGroupJobsTest, AJobThatWasSubmittedIsTakenBackAndItsPodsAreAGang) {
  json job = GroupJob();
  json as_before = job;
  as_before["metadata"]["annotations"].erase("fluxqueue.io/group");
  EXPECT_THAT(Observe(as_before).messages, SizeIs(1));
  const TrackerOutputs out = Observe(job);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_withdrawn().job_id(), "uid-launcher");
  Observe(Worker("w-0"));
  Observe(Worker("w-1"));
  EXPECT_THAT(Observe(PodOfJob(job, "l")).messages, SizeIs(1));
}

TEST_F(TrackerGroupJobsTest, ThatTheJobIgnoresDisruptionsDoesNotHoldItsPods) {
  json job = GroupJob();
  job["spec"]["template"]["metadata"]["annotations"]["fluxqueue.io/ignore-disruptions"] = "true";
  Observe(job);
  Observe(Worker("w-0"));
  Observe(Worker("w-1"));
  EXPECT_THAT(Observe(PodOfJob(job, "l")).messages, SizeIs(1));
}

// A RayCluster that is scaled: its pods say another size from then on.
TEST_F(TrackerGroupJobsTest, APodOfAGroupThatHasGrownIsPlacedByItself) {
  const JobSubmitted gang = Gang();
  for (const char* name : {"w-0", "w-1"}) Observe(Bound(Worker(name), gang.job_id()));
  Observe(Bound(PodOfJob(GroupJob(), "l"), gang.job_id()));
  json fourth = PodJson("w-2");
  fourth["metadata"]["uid"] = "uid-w-2";
  fourth["metadata"]["labels"] = {{"fluxqueue.io/group-name", "train"},
                                  {"fluxqueue.io/group-size", "4"}};
  fourth = Held(fourth);
  EXPECT_THAT(Observe(fourth).messages, IsEmpty());
  LookAtGroups();
  const TrackerOutputs late = LookAtGroups();
  ASSERT_THAT(late.fetches, SizeIs(1)) << "three others will never come";
  const TrackerOutputs out = Observe(fourth, late.fetches[0].look);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_submitted().workload().kind(), "Pod");
}

}  // namespace
}  // namespace fluxqueue::admission
