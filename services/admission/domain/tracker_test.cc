#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/tracker_fixture.h"

namespace fluxqueue::admission {
namespace {

using events::v1::Envelope;
using events::v1::JobUpdated;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(TrackerTest, SubmitsAJobOnce) {
  const json job = Held(JobJson());
  const TrackerOutputs out = Observe(job);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].pool(), "default");
  const auto& submitted = out.messages[0].job_submitted();
  EXPECT_EQ(submitted.job_id(), "uid-j");
  EXPECT_EQ(submitted.queue(), "default");
  EXPECT_EQ(submitted.spec().slots(), 4);
  EXPECT_EQ(submitted.spec().revision(), 1);
  EXPECT_TRUE(submitted.workload().recreatable());
  EXPECT_THAT(submitted.spec().jobspec(), HasSubstr("fluxqueue.io/dedicated"));
  EXPECT_EQ(rows_.at("uid-j").requests->at("cpu"), 1000);
  EXPECT_EQ(tracker_.submitted(), 1);

  EXPECT_THAT(Observe(job).messages, IsEmpty());
  Restart();
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  EXPECT_EQ(tracker_.submitted(), 1);
}

TEST_F(TrackerTest, SubmitsABarePod) {
  const TrackerOutputs out = Observe(Held(PodJson()));
  ASSERT_THAT(out.messages, SizeIs(1));
  const auto& submitted = out.messages[0].job_submitted();
  EXPECT_EQ(submitted.job_id(), "uid-p");
  EXPECT_EQ(submitted.workload().kind(), "Pod");
  EXPECT_FALSE(submitted.workload().recreatable());
  EXPECT_EQ(submitted.spec().slots(), 1);
}

TEST_F(TrackerTest, APodWithPlacesIsOneJobAndThePodsThatTakeThemAreNone) {
  json driver = Held(PodJson());
  driver["metadata"]["annotations"]["fluxqueue.io/places"] = "3 cpu=1,memory=1408Mi";
  const TrackerOutputs out = Observe(driver);
  ASSERT_THAT(out.messages, SizeIs(1));
  const auto& submitted = out.messages[0].job_submitted();
  EXPECT_EQ(submitted.job_id(), "uid-p");
  EXPECT_EQ(submitted.workload().kind(), "Pod");
  EXPECT_EQ(submitted.spec().slots(), 4);
  EXPECT_EQ(rows_.at("uid-p").slots, 4);
  Restart();
  EXPECT_THAT(Observe(driver).messages, IsEmpty());
  json executor = Held(PodJson("e-1"));
  executor["metadata"]["uid"] = "uid-e";
  executor["metadata"]["annotations"]["fluxqueue.io/place-of"] = "uid-p";
  EXPECT_THAT(Observe(executor).messages, IsEmpty());
  EXPECT_THAT(Gone("uid-e").messages, IsEmpty());
  EXPECT_EQ(rows_.size(), 1);
  // What it asks for itself is another amount, as long as it waits.
  driver["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2";
  driver["metadata"]["generation"] = 2;
  const TrackerOutputs resized = Observe(driver);
  ASSERT_THAT(resized.messages, SizeIs(1));
  EXPECT_EQ(resized.messages[0].job_updated().spec().slots(), 4);
  EXPECT_THAT(resized.messages[0].job_updated().spec().jobspec(), HasSubstr("\"count\":2000"));
  EXPECT_THAT(Gone("uid-p").messages, SizeIs(1));
}

TEST_F(TrackerTest, SubmitsThePodOfAnotherControllerAsAJobOfItsOwn) {
  json pod = PodJson();
  pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "apps/v1"},
                                                     {"kind", "ReplicaSet"},
                                                     {"name", "web"},
                                                     {"uid", "uid-web"},
                                                     {"controller", true}}});
  const TrackerOutputs out = Observe(Held(pod));
  ASSERT_THAT(out.messages, SizeIs(1));
  const auto& submitted = out.messages[0].job_submitted();
  EXPECT_EQ(submitted.job_id(), "uid-p");
  EXPECT_EQ(submitted.workload().kind(), "Pod");
  EXPECT_FALSE(submitted.workload().recreatable());
  ASSERT_THAT(Gone("uid-p").messages, SizeIs(1));
}

TEST_F(TrackerTest, AJobsControllerThatAdoptsASubmittedPodChangesNothing) {
  const json job = Held(JobJson());
  Observe(job);
  json pod = Held(PodJson());
  ASSERT_THAT(Observe(pod).messages, SizeIs(1));
  pod["metadata"]["ownerReferences"] = PodOf(job)["metadata"]["ownerReferences"];
  pod["metadata"]["annotations"]["fluxqueue.io/hold"] = "true";
  const TrackerOutputs out = Observe(pod);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_updated().job_id(), "uid-p");
  EXPECT_TRUE(out.messages[0].job_updated().hold());
}

TEST_F(TrackerTest, APinnedPodThatTheBinderLetGoAsksForNothingNew) {
  json pod = PodJson();
  pod["spec"]["volumes"] =
      json::array({{{"name", "v"}, {"ephemeral", {{"volumeClaimTemplate", json::object()}}}}});
  pod = Held(pod);
  ASSERT_THAT(Observe(pod).messages, SizeIs(1));
  pod["spec"].erase("schedulingGates");
  pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
      {"nodeSelectorTerms",
       json::array({{{"matchFields",
                      json::array({{{"key", "metadata.name"},
                                    {"operator", "In"},
                                    {"values", json::array({"node-1"})}}})}}})}};
  pod["metadata"]["annotations"]["fluxqueue.io/allocation"] = "1.0.0/1";
  EXPECT_THAT(Observe(pod).messages, IsEmpty());
}

TEST_F(TrackerTest, SubmitsAWorkQueueWithAsManySlotsAsPods) {
  json job = JobJson("w", 7);
  job["spec"].erase("completions");
  EXPECT_EQ(Observe(Held(job)).messages.at(0).job_submitted().spec().slots(), 7);
}

TEST_F(TrackerTest, SaysWhoWouldUndoASuspend) {
  json job = JobJson("s", 20);
  job["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "jobset.x-k8s.io/v1"},
                                                     {"kind", "JobSet"},
                                                     {"name", "o"},
                                                     {"uid", "u"},
                                                     {"controller", true}}});
  const auto workload = Observe(Held(job)).messages.at(0).job_submitted().workload();
  EXPECT_TRUE(workload.controlled());
  EXPECT_FALSE(workload.suspended());
}

TEST_F(TrackerTest, IgnoresWhatIsNotToBeSubmitted) {
  json forged = JobJson();
  forged["metadata"]["labels"] = {{"fluxqueue.io/held", "direct"}};
  json users = Held(JobJson());
  users["spec"]["suspend"] = true;
  json ended = Held(JobJson());
  ended["status"]["conditions"] = json::array({{{"type", "Complete"}, {"status", "True"}}});
  json going = Held(JobJson());
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z";
  json bound = Held(PodJson());
  bound["spec"]["nodeName"] = "n1";
  json gated = Held(PodJson());
  gated["spec"]["schedulingGates"] = json::array({{{"name", "x/y"}}});
  json system = Held(JobJson());
  system["metadata"]["namespace"] = "kube-system";
  for (const json& object : {forged, users, ended, going, bound, gated, system}) {
    const TrackerOutputs out = Observe(object);
    EXPECT_THAT(out.messages, IsEmpty()) << object.dump();
    EXPECT_THAT(out.refusals, IsEmpty()) << object.dump();
  }
  EXPECT_TRUE(rows_.empty());
}

TEST_F(TrackerTest, TakesNothingThatSaysThatItIsNotForTheQueue) {
  json job = Held(JobJson());
  json of_template = job;
  of_template["spec"]["template"]["metadata"]["labels"]["fluxqueue.io/managed"] = "false";
  json pod = Held(PodJson());
  for (json object : {job, of_template, pod}) {
    if (object != of_template) {
      object["metadata"]["labels"]["fluxqueue.io/managed"] = "false";
    }
    const TrackerOutputs out = Observe(object);
    EXPECT_THAT(out.messages, IsEmpty());
    ASSERT_THAT(out.refusals, SizeIs(1));
    EXPECT_THAT(out.refusals[0].message, HasSubstr("fluxqueue.io/managed=false"));
    Gone(object["metadata"]["uid"]);
  }
  facts_.Upsert(kubernetes::Namespace{"work", {{"fluxqueue.io/managed", "false"}}});
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  EXPECT_EQ(tracker_.refused(), 1);
}

TEST_F(TrackerTest, WhatIsInTheQueueStaysThereWhateverItsLabelSays) {
  json job = Held(JobJson());
  ASSERT_THAT(Observe(job).messages, SizeIs(1));
  job["metadata"]["labels"]["fluxqueue.io/managed"] = "false";
  const TrackerOutputs out = Observe(job);
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.refusals, IsEmpty());
  EXPECT_EQ(tracker_.submitted(), 1);
}

// The webhook sees a Job when it is made; its template may change as long as it is suspended.
TEST_F(TrackerTest, RefusesAJobspecThatHasBecomeTooLarge) {
  json job = Held(JobJson("big", 20));
  ASSERT_THAT(Observe(job).messages, SizeIs(1));
  job["spec"]["template"]["spec"]["nodeSelector"] = {{"disk", std::string(kMostJobspec, 'x')}};
  job["metadata"]["generation"] = 2;
  TrackerOutputs out = Observe(job);
  EXPECT_THAT(out.messages, IsEmpty());
  ASSERT_THAT(out.refusals, SizeIs(1));
  EXPECT_THAT(out.refusals[0].message, HasSubstr("allowed are 4000"));
  Gone("uid-j");
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  // Nor does a pod make it so.
  const json small = Held(JobJson());
  ASSERT_THAT(Observe(small).messages, SizeIs(1));
  json pod = PodOf(small, "2");
  pod["spec"]["nodeSelector"] = job["spec"]["template"]["spec"]["nodeSelector"];
  EXPECT_THAT(Observe(pod).messages, IsEmpty());
  EXPECT_EQ(rows_.at("uid-j").revision, 1);
}

TEST_F(TrackerTest, ARefusalIsNoLongerThanAnEventMayBe) {
  json job = Held(JobJson());
  job["metadata"]["annotations"]["fluxqueue.io/priority"] = std::string(100'000, 'p');
  const TrackerOutputs out = Observe(job);
  ASSERT_THAT(out.refusals, SizeIs(1));
  EXPECT_LE(out.refusals[0].message.size(), 1024);
}

TEST_F(TrackerTest, AJobKeepsThePriorityThatItsQueueGivesNoMore) {
  json job = Held(JobJson());
  job["metadata"]["annotations"]["fluxqueue.io/priority"] = "100";
  ASSERT_THAT(Observe(job).messages, SizeIs(1));
  kubernetes::FluxQueue queue;
  queue.meta.name = "default";
  queue.max_priority = 10;
  facts_.Upsert(queue);
  job["metadata"]["generation"] = 2;
  job["metadata"]["annotations"]["fluxqueue.io/cancel"] = "true";
  const TrackerOutputs out = Observe(job);
  EXPECT_THAT(out.refusals, IsEmpty());
  EXPECT_THAT(out.messages, SizeIs(1));
}

TEST_F(TrackerTest, AUsersSuspendHoldsUntilHeResumes) {
  json job = Held(JobJson());
  job["spec"]["suspend"] = true;
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  job["spec"]["suspend"] = false;
  job["metadata"]["generation"] = 2;
  EXPECT_THAT(Observe(job).messages, SizeIs(1));
  job["spec"]["suspend"] = true;
  job["metadata"]["generation"] = 3;
  EXPECT_TRUE(Observe(job).messages.at(0).job_updated().hold());
  job["spec"]["suspend"] = false;
  job["metadata"]["generation"] = 4;
  const JobUpdated update = Observe(job).messages.at(0).job_updated();
  EXPECT_TRUE(update.has_hold());
  EXPECT_FALSE(update.hold());
}

TEST_F(TrackerTest, OurOwnSuspendAndResumeAreNoNews) {
  json job = Held(JobJson("big", 20));
  ASSERT_TRUE(Observe(job).messages.at(0).job_submitted().workload().suspended());
  job["spec"]["suspend"] = false;
  job["metadata"]["generation"] = 2;
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  job["spec"]["suspend"] = true;
  job["metadata"]["generation"] = 3;
  EXPECT_THAT(Observe(job).messages, IsEmpty());
}

struct UpdateCase {
  const char* key;
  const char* value;
  const char* want;  // JobUpdated, without job_id
};

TEST_F(TrackerTest, SaysOnlyWhatChanged) {
  const std::vector<UpdateCase> cases = {
      {"fluxqueue.io/hold", "true", "hold: true"},
      {"fluxqueue.io/priority", "5", "priority: 5"},
      {"fluxqueue.io/begin", "+10s", "begin_ms: 1767225610000"},
      {"fluxqueue.io/queue", "night", "queue: \"night\""},
      {"fluxqueue.io/duration", "90", "duration_ms: 90000"},
      {"fluxqueue.io/cancel", "true", "cancel: true"},
  };
  for (const UpdateCase& test : cases) {
    rows_.clear();
    Restart();
    const json job = Held(JobJson());
    Observe(job);
    const json changed = Annotated(job, test.key, test.value);
    const TrackerOutputs out = Observe(changed);
    ASSERT_THAT(out.messages, SizeIs(1)) << test.key;
    JobUpdated update = out.messages[0].job_updated();
    EXPECT_EQ(update.job_id(), "uid-j");
    update.clear_job_id();
    EXPECT_EQ(update.ShortDebugString(), test.want);
    Restart();
    EXPECT_THAT(Observe(changed).messages, IsEmpty()) << test.key;
  }
}

TEST_F(TrackerTest, ACancelCannotBeTakenBackNorSaidTwice) {
  const json job = Held(JobJson());
  const json cancelled = Annotated(job, "fluxqueue.io/cancel", "true");
  EXPECT_THAT(Observe(cancelled).messages, SizeIs(2));  // submitted, then cancelled
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  EXPECT_THAT(Observe(cancelled).messages, IsEmpty());
}

TEST_F(TrackerTest, ABadChangeIsRefusedOnceAndTheJobStays) {
  const json job = Held(JobJson());
  Observe(job);
  const json bad = Annotated(job, "fluxqueue.io/priority", "high");
  TrackerOutputs out = Observe(bad);
  EXPECT_THAT(out.messages, IsEmpty());
  ASSERT_THAT(out.refusals, SizeIs(1));
  EXPECT_THAT(out.refusals[0].message, HasSubstr("high"));
  EXPECT_THAT(Observe(Annotated(bad, "other", "x")).refusals, IsEmpty());
  const json moved = Annotated(job, "fluxqueue.io/queue", "elsewhere");
  out = Observe(moved);
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.refusals.at(0).message, HasSubstr("pool 'gpu'"));
  EXPECT_EQ(rows_.at("uid-j").queue, "default");
}

// What would be refused at the creation cannot be reached by a change.
TEST_F(TrackerTest, AChangeBeyondTheRulesOfAQueueIsRefused) {
  kubernetes::FluxQueue queue;
  queue.meta.name = "default";
  queue.qos = {{.name = "normal", .max_priority = 10}};
  queue.default_qos = "normal";
  facts_.Upsert(queue);
  queue = {};
  queue.meta.name = "lab";
  queue.members = {.users = {"ann"}};
  Upsert(queue);
  const json job = Held(JobJson());
  ASSERT_THAT(Observe(job).messages, SizeIs(1));

  EXPECT_THAT(Observe(Annotated(job, "fluxqueue.io/priority", "10")).messages, SizeIs(1));
  TrackerOutputs out = Observe(Annotated(job, "fluxqueue.io/priority", "11"));
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.refusals.at(0).message, HasSubstr("11 is more than class 'normal'"));
  out = Observe(Annotated(job, "fluxqueue.io/queue", "lab"));
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.refusals.at(0).message, HasSubstr("takes jobs of its members"));
  EXPECT_EQ(rows_.at("uid-j").queue, "default");
  EXPECT_EQ(rows_.at("uid-j").priority, 10);
}

TEST_F(TrackerTest, AJobIsCancelledWhomeverItsQueueTakesNow) {
  kubernetes::FluxQueue queue;
  queue.meta.name = "default";
  Upsert(queue);
  const json job = Held(JobJson());
  ASSERT_THAT(Observe(job).messages, SizeIs(1));
  queue.parent = "gone";
  facts_.Upsert(queue);
  const TrackerOutputs out = Observe(Annotated(job, "fluxqueue.io/cancel", "true"));
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_TRUE(out.messages.at(0).job_updated().cancel());
  json second = job;
  second["metadata"]["uid"] = "uid-late";
  EXPECT_THAT(Observe(second).refusals.at(0).message, HasSubstr("that one does not count"));
}

TEST_F(TrackerTest, WhatIsRefusedWaitsForItsQueue) {
  const json job = Annotated(Held(JobJson()), "fluxqueue.io/queue", "later");
  TrackerOutputs out = Observe(job);
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.refusals.at(0).message, HasSubstr("later"));
  EXPECT_EQ(tracker_.refused(), 1);
  EXPECT_TRUE(rows_.empty());

  kubernetes::FluxQueue queue;
  queue.meta.name = "later";
  Upsert(queue);
  TrackerOutputs retried;
  tracker_.RetryRefused(&retried);
  Commit();
  ASSERT_THAT(retried.fetches, SizeIs(1));
  EXPECT_EQ(retried.fetches[0].uid, "uid-j");
  EXPECT_EQ(Observe(job).messages.at(0).job_submitted().queue(), "later");
  EXPECT_EQ(tracker_.refused(), 0);
  EXPECT_EQ(tracker_.submitted(), 1);
}

TEST_F(TrackerTest, ARejectedJobIsHandedInAgain) {
  const json job = Held(JobJson());
  Observe(job);
  const json again = Annotated(job, "fluxqueue.io/retry", "1");
  TrackerOutputs out = Observe(again);
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.looks, ElementsAre("uid-j"));
  // What a crash takes is found again.
  Restart();
  EXPECT_THAT(Observe(again).looks, ElementsAre("uid-j"));
  out = Learn("uid-j", UnplacedJob{.version = 5, .attempt = 2});
  EXPECT_THAT(out.messages, IsEmpty());
  ASSERT_THAT(out.fetches, SizeIs(1));
  EXPECT_EQ(out.fetches[0].uid, "uid-j");
  out = Observe(again);
  ASSERT_THAT(out.messages, SizeIs(1));
  const auto& submitted = out.messages[0].job_submitted();
  EXPECT_EQ(submitted.job_id(), "uid-j");
  EXPECT_EQ(submitted.after_version(), 5U);
  EXPECT_EQ(submitted.after_attempt(), 2U);
  EXPECT_EQ(submitted.spec().slots(), 4U);
  EXPECT_EQ(submitted.spec().revision(), 2U);
  EXPECT_THAT(submitted.spec().jobspec(), HasSubstr("fluxqueue.io/dedicated"));
  EXPECT_THAT(Observe(again).messages, IsEmpty());

  // Until the queue has followed it is said again.
  Restart();
  EXPECT_THAT(LookAgain().looks, ElementsAre("uid-j"));
  Learn("uid-j", UnplacedJob{.version = 5, .attempt = 2});
  EXPECT_EQ(Observe(again).messages.at(0).job_submitted().after_version(), 5U);
  // It has, and the job was rejected once more: that was the answer.
  EXPECT_THAT(Learn("uid-j", UnplacedJob{.version = 7, .attempt = 3}).fetches, IsEmpty());
  EXPECT_THAT(LookAgain().looks, IsEmpty());
  EXPECT_THAT(Observe(again).messages, IsEmpty());
  // Only another value asks again.
  EXPECT_THAT(Observe(Annotated(job, "fluxqueue.io/retry", "2")).looks, ElementsAre("uid-j"));
}

TEST_F(TrackerTest, AJobThatRunsIsOfAnotherSize) {
  json job = Held(JobJson());
  job["spec"]["suspend"] = false;
  Observe(job);
  Observe(PodOf(job, "2"));  // a webhook has made it larger
  job["spec"]["parallelism"] = job["spec"]["completions"] = 7;
  job["metadata"]["generation"] = 2;
  const TrackerOutputs out = Observe(job);
  ASSERT_THAT(out.messages, SizeIs(1));
  const events::v1::JobUpdated& updated = out.messages[0].job_updated();
  EXPECT_FALSE(updated.has_spec()) << "for which it would be stopped";
  EXPECT_EQ(updated.resized().slots(), 7U);
  EXPECT_EQ(updated.resized().revision(), 3U);
  EXPECT_EQ(updated.completions(), 7);
  EXPECT_THAT(updated.resized().jobspec(), HasSubstr("2000"));
  EXPECT_EQ(rows_.at("uid-j").slots, 7U);
  Restart();
  EXPECT_THAT(Observe(job).messages, IsEmpty()) << "once";
}

// Of one that runs nothing is said, as it would be stopped for it.
TEST_F(TrackerTest, AJobThatWaitsFollowsWhatItAsksFor) {
  json job = Held(JobJson());
  job["spec"]["suspend"] = false;
  Observe(job);
  json smaller = Annotated(job, "fluxqueue.io/topology", "preferred: rack");
  smaller["spec"]["parallelism"] = 2;
  smaller["metadata"]["generation"] = 2;
  TrackerOutputs out = Observe(smaller);
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.looks, ElementsAre("uid-j"));
  EXPECT_THAT(Learn("uid-j", std::nullopt).fetches, IsEmpty()) << "it runs";
  EXPECT_THAT(Observe(smaller).messages, IsEmpty());

  // It is requeued some time. What its pods asked for meanwhile counts.
  Observe(PodOf(job, "2"));
  EXPECT_THAT(LookAgain().looks, ElementsAre("uid-j"));
  ASSERT_THAT(Learn("uid-j", UnplacedJob{.version = 7, .attempt = 2, .waits = true}).fetches,
              SizeIs(1));
  out = Observe(smaller);
  ASSERT_THAT(out.messages, SizeIs(1));
  const auto& spec = out.messages[0].job_updated().spec();
  EXPECT_EQ(spec.slots(), 2U);
  EXPECT_EQ(spec.revision(), 3U);
  EXPECT_THAT(spec.jobspec(), HasSubstr("2000"));
  EXPECT_THAT(LookAgain().looks, IsEmpty());
  EXPECT_THAT(Observe(smaller).messages, IsEmpty());
}

// A restart forgets that it was looked at, and that it had another size.
TEST_F(TrackerTest, ASizeThatWasNotFollowedIsFoundAgain) {
  json job = Held(JobJson());
  job["spec"]["suspend"] = false;
  Observe(job);
  job = Annotated(job, "fluxqueue.io/topology", "preferred: rack");
  job["spec"]["parallelism"] = 2;
  job["metadata"]["generation"] = 2;
  Observe(job);
  Learn("uid-j", std::nullopt);
  Restart();
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  EXPECT_THAT(LookAgain().looks, ElementsAre("uid-j"));
  Learn("uid-j", UnplacedJob{.version = 7, .attempt = 2, .waits = true});
  EXPECT_EQ(Observe(job).messages.at(0).job_updated().spec().slots(), 2U);
}

TEST_F(TrackerTest, ALostSubmissionIsHandedInFromTheBeginning) {
  const json job = Held(JobJson());
  Observe(job);
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  EXPECT_THAT(HandInLost({"uid-j", "unknown"}).fetches, SizeIs(1));
  const TrackerOutputs out = Observe(job);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_submitted().after_version(), 0U);
  EXPECT_EQ(out.messages[0].job_submitted().spec().revision(), 2U);
  EXPECT_THAT(Observe(job).messages, IsEmpty()) << "once";
}

// Until it can be read again it may have ended: it would run once more.
TEST_F(TrackerTest, OneThatCouldNotBeReadIsNotHandedInLater) {
  const json job = Held(JobJson());
  Observe(job);
  HandInLost({"uid-j"});
  HandInLost({});
  EXPECT_THAT(Observe(Annotated(job, "example.com/note", "edited")).messages, IsEmpty());
}

TEST_F(TrackerTest, OneThatIsCancelledIsNotHandedIn) {
  const json cancelled = Annotated(Held(JobJson()), "fluxqueue.io/cancel", "true");
  Observe(cancelled);
  EXPECT_THAT(HandInLost({"uid-j"}).fetches, IsEmpty());
}

TEST_F(TrackerTest, OnlyWhatIsRejectedIsHandedInAgain) {
  const json job = Held(JobJson());
  Observe(Annotated(job, "fluxqueue.io/retry", "from the beginning"));
  EXPECT_THAT(Observe(job).looks, ElementsAre("uid-j"));
  EXPECT_THAT(Learn("uid-j", std::nullopt).fetches, IsEmpty());
  EXPECT_THAT(LookAgain().looks, IsEmpty());
  Restart();
  EXPECT_THAT(Observe(job).looks, IsEmpty());
  // What nobody would be rejected or taken for.
  EXPECT_THAT(Observe(Annotated(job, "note", "x")).looks, IsEmpty());
  EXPECT_THAT(Observe(Annotated(job, "fluxqueue.io/hold", "true")).looks, IsEmpty());
  // Nor what is cancelled.
  json cancelled = Annotated(job, "fluxqueue.io/cancel", "true");
  EXPECT_THAT(Observe(Annotated(cancelled, "fluxqueue.io/retry", "1")).looks, IsEmpty());
}

TEST_F(TrackerTest, AChangeOfARejectedJobHandsItInAgain) {
  json job = Held(JobJson());
  Observe(job);
  Observe(PodOf(job, "2"));
  const json moved = Annotated(job, "fluxqueue.io/queue", "night");
  TrackerOutputs out = Observe(moved);
  EXPECT_EQ(out.messages.at(0).job_updated().queue(), "night");
  EXPECT_THAT(out.looks, ElementsAre("uid-j"));
  Learn("uid-j", UnplacedJob{.version = 2, .attempt = 1});
  out = Observe(moved);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_submitted().queue(), "night");
  // As its pods want it.
  EXPECT_THAT(out.messages[0].job_submitted().spec().jobspec(), HasSubstr("2000"));
  EXPECT_EQ(out.messages[0].job_submitted().spec().revision(), 3U);
  Learn("uid-j", std::nullopt);

  // How many pods a Job has at once may change while it is not suspended.
  json smaller = moved;
  smaller["spec"]["parallelism"] = 1;
  smaller["metadata"]["generation"] = 2;
  const TrackerOutputs resized = Observe(smaller);
  EXPECT_THAT(resized.looks, ElementsAre("uid-j"));
  Learn("uid-j", UnplacedJob{.version = 4, .attempt = 2});
  out = Observe(smaller);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_submitted().spec().slots(), 1U);
  EXPECT_EQ(out.messages[0].job_submitted().after_version(), 4U);
  EXPECT_GT(out.messages[0].job_submitted().spec().revision(),
            resized.messages.at(0).job_updated().resized().revision());
  EXPECT_EQ(rows_.at("uid-j").slots, 1U);
}

TEST_F(TrackerTest, ARowOfAVersionThatKnewNoRetryAsksForNothing) {
  const json job = Annotated(Held(JobJson()), "fluxqueue.io/retry", "1");
  Observe(job);
  rows_.at("uid-j").asked.reset();
  Restart();
  EXPECT_THAT(Observe(job).looks, IsEmpty());
  EXPECT_TRUE(rows_.at("uid-j").asked.has_value());
}

TEST_F(TrackerTest, ALargerPodGivesANewRevision) {
  const json job = Held(JobJson());
  Observe(job);
  EXPECT_THAT(Observe(PodOf(job, "1")).messages, IsEmpty());
  const TrackerOutputs out = Observe(PodOf(job, "2"));
  ASSERT_THAT(out.messages, SizeIs(1));
  const auto& spec = out.messages[0].job_updated().spec();
  EXPECT_EQ(spec.revision(), 2);
  EXPECT_EQ(spec.slots(), 4);
  EXPECT_THAT(spec.jobspec(), HasSubstr("2000"));
  EXPECT_THAT(Observe(PodOf(job, "2")).messages, IsEmpty());
  Restart();
  EXPECT_THAT(Observe(PodOf(job, "2")).messages, IsEmpty());
  EXPECT_THAT(Observe(job).messages, IsEmpty());
}

TEST_F(TrackerTest, AnElasticJobStaysElastic) {
  json job = JobJson("big", 20);
  job["metadata"]["annotations"] = {{"fluxqueue.io/min-slots", "2"}};
  job = Held(job);
  const auto submitted = Observe(job).messages.at(0).job_submitted().spec();
  EXPECT_EQ(submitted.slots(), 20);
  EXPECT_EQ(submitted.min_slots(), 2);
  Restart();
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  const auto larger = Observe(PodOf(job, "2")).messages.at(0).job_updated().spec();
  EXPECT_EQ(larger.slots(), 20);
  EXPECT_EQ(larger.min_slots(), 2);
  EXPECT_THAT(larger.jobspec(), HasSubstr(R"({"min":2,"max":20,)"));
  // While it is suspended another number is another jobspec.
  job["metadata"]["annotations"]["fluxqueue.io/min-slots"] = "3";
  const auto spec = Observe(job).messages.at(0).job_updated().spec();
  EXPECT_EQ(spec.revision(), 3);
  EXPECT_EQ(spec.min_slots(), 3);
}

TEST_F(TrackerTest, ALargerPodMayBeSeenBeforeItsJob) {
  const json job = Held(JobJson());
  EXPECT_THAT(Observe(PodOf(job, "3")).messages, IsEmpty());
  const TrackerOutputs out = Observe(job);
  ASSERT_THAT(out.messages, SizeIs(2));
  EXPECT_EQ(out.messages[0].job_submitted().spec().revision(), 1);
  EXPECT_EQ(out.messages[1].job_updated().spec().revision(), 2);
}

// Anybody may write the uid of another's Job into the owner references of a pod of his own.
TEST_F(TrackerTest, APodOfAnotherNamespaceDoesNotEnlargeTheJob) {
  const json job = Held(JobJson());
  json forged = PodOf(job, "64");
  forged["metadata"]["namespace"] = "free";
  EXPECT_THAT(Observe(forged).messages, IsEmpty());
  EXPECT_THAT(Observe(PodOf(job, "3")).messages, IsEmpty());
  const TrackerOutputs out = Observe(job);
  ASSERT_THAT(out.messages, SizeIs(2));
  EXPECT_THAT(out.messages[1].job_updated().spec().jobspec(), HasSubstr("3000"));
  EXPECT_THAT(Observe(forged).messages, IsEmpty());
}

TEST_F(TrackerTest, ASuspendedJobMayChangeItsTemplate) {
  json job = Held(JobJson("big", 20));
  Observe(job);
  job["spec"]["template"]["spec"]["nodeSelector"] = {{"disk", "ssd"}};
  job["metadata"]["generation"] = 2;
  const auto spec = Observe(job).messages.at(0).job_updated().spec();
  EXPECT_EQ(spec.revision(), 2);
  EXPECT_THAT(spec.jobspec(), HasSubstr("disk=ssd"));
}

// Of a workload whose last change was refused, so that it is looked at again.
TEST_F(TrackerTest, WhatALookHasFoundIsDroppedWhereAWatchHasToldSince) {
  const auto look = [this] {
    TrackerOutputs out;
    tracker_.RetryRefused(&out);
    Commit();
    return out.fetches.at(0).look;
  };
  const json job = Held(JobJson());
  const json bad = Annotated(job, "fluxqueue.io/priority", "high");
  Observe(job);
  Observe(bad);
  const json held = Annotated(job, "fluxqueue.io/hold", "true");
  EXPECT_THAT(Observe(held, look()).messages, SizeIs(1)) << "nothing was told since";
  Observe(bad);

  // It has changed after it was found.
  const uint64_t before = look();
  EXPECT_FALSE(Observe(job).messages.at(0).job_updated().hold());
  EXPECT_THAT(Observe(held, before).messages, IsEmpty());
  EXPECT_FALSE(rows_.at("uid-j").hold);

  // It has gone after it was found.
  Observe(bad);
  const uint64_t last = look();
  EXPECT_TRUE(Gone("uid-j").messages.at(0).has_job_withdrawn());
  EXPECT_THAT(Observe(job, last).messages, IsEmpty());
  EXPECT_TRUE(rows_.empty());
}

TEST_F(TrackerTest, WithdrawsWhatIsGoneBeforeItsEnd) {
  Observe(Held(JobJson()));
  const TrackerOutputs out = Gone("uid-j");
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_withdrawn().job_id(), "uid-j");
  EXPECT_TRUE(rows_.empty());
  EXPECT_THAT(Gone("uid-j").messages, IsEmpty());
}

TEST_F(TrackerTest, AnObjectThatIsHeldNoLongerIsWithdrawn) {
  json job = Held(JobJson());
  Observe(job);
  job["metadata"]["labels"].erase("fluxqueue.io/held");
  EXPECT_TRUE(Observe(job).messages.at(0).has_job_withdrawn());
}

TEST_F(TrackerTest, ForgetsWhatHasEnded) {
  json job = Held(JobJson());
  Observe(job);
  job["status"]["conditions"] = json::array({{{"type", "Failed"}, {"status", "True"}}});
  EXPECT_THAT(Observe(job).messages, IsEmpty());
  EXPECT_TRUE(rows_.empty());
  EXPECT_EQ(tracker_.submitted(), 0);
  EXPECT_THAT(Gone("uid-j").messages, IsEmpty());
  Restart();
  EXPECT_THAT(Observe(job).messages, IsEmpty());
}

// Cleanup does not see pods before they are bound: the pod garbage collector fails those that
// are being deleted, and so may anybody who can write their status.
TEST_F(TrackerTest, WithdrawsAPodThatEndedBeforeItWasBound) {
  json pod = Held(PodJson());
  Observe(pod);
  pod["status"]["phase"] = "Failed";
  const TrackerOutputs out = Observe(pod);
  ASSERT_THAT(out.messages, SizeIs(1));
  EXPECT_EQ(out.messages[0].job_withdrawn().job_id(), "uid-p");
  EXPECT_TRUE(rows_.empty());
  EXPECT_THAT(Gone("uid-p").messages, IsEmpty());
}

TEST_F(TrackerTest, LeavesTheEndOfABoundPodToCleanup) {
  json pod = Held(PodJson());
  Observe(pod);
  pod["spec"]["nodeName"] = "n1";
  pod["status"]["phase"] = "Failed";
  EXPECT_THAT(Observe(pod).messages, IsEmpty());
  EXPECT_TRUE(rows_.empty());
}

TEST_F(TrackerTest, ConfirmsWhatAListDidNotShow) {
  const json job = Held(JobJson());
  json other = Held(JobJson("other"));
  other["metadata"]["uid"] = "uid-o";
  Observe(job);
  Observe(other);
  Observe(Held(PodJson()));
  Restart();
  TrackerOutputs out;
  tracker_.BeginList(WorkloadKind::kJob);
  tracker_.Observe(Seen(other), facts_, &out);
  tracker_.EndList(WorkloadKind::kJob, {}, &out);
  EXPECT_THAT(out.messages, IsEmpty());
  ASSERT_THAT(out.fetches, SizeIs(1));  // the pod is of another list
  EXPECT_EQ(out.fetches[0].uid, "uid-j");
  EXPECT_EQ(out.fetches[0].name, "j");
}

TEST_F(TrackerTest, WhatIsLeftOutCountsAsListed) {
  const json job = Held(JobJson());
  Observe(job);
  Restart();
  TrackerOutputs out;
  tracker_.BeginList(WorkloadKind::kJob);
  tracker_.LeaveOut(Seen(job).sketch);
  tracker_.EndList(WorkloadKind::kJob, {}, &out);
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.fetches, IsEmpty());
}

// It may have been listed, and waits to be observed; or it cannot be read.
TEST_F(TrackerTest, WhatTheListNamesNeedsNoConfirmation) {
  Observe(Held(JobJson()));
  Restart();
  TrackerOutputs out;
  tracker_.BeginList(WorkloadKind::kJob);
  tracker_.EndList(WorkloadKind::kJob, {"uid-j", "uid-other"}, &out);
  EXPECT_THAT(out.messages, IsEmpty());
  EXPECT_THAT(out.fetches, IsEmpty());
}

TEST_F(TrackerTest, AJobMovesOnlyToAQueueThatItsMakerMaySubmitTo) {
  kubernetes::FluxQueue queue;
  queue.meta.name = "night";
  queue.subjects = {{.kind = "User", .name = "ann", .verbs = {"submit"}},
                    {.kind = "Group", .name = "physics", .verbs = {"submit"}}};
  facts_.Upsert(queue);
  const json job = Annotated(Held(JobJson()), "fluxqueue.io/user", "eve");
  ASSERT_THAT(Observe(job).messages, SizeIs(1));
  const TrackerOutputs moved = Observe(Annotated(job, "fluxqueue.io/queue", "night"));
  EXPECT_THAT(moved.messages, IsEmpty());
  ASSERT_THAT(moved.refusals, SizeIs(1));
  EXPECT_THAT(moved.refusals[0].message, HasSubstr("spec.subjects"));
  // What the webhook found of his groups holds.
  json admitted = Annotated(job, "fluxqueue.io/queue", "night");
  admitted["metadata"]["annotations"]["fluxqueue.io/admitted-to"] = "night";
  EXPECT_THAT(Observe(admitted).messages, SizeIs(1));
}

// As kubectl delete --cascade=orphan leaves it.
TEST_F(TrackerTest, APodThatItsJobHasLetGoIsNobodys) {
  json pod = PodOf(Held(JobJson()));
  pod["metadata"].erase("ownerReferences");
  const TrackerOutputs out = Observe(pod);
  EXPECT_THAT(out.messages, IsEmpty());
  ASSERT_THAT(out.refusals, SizeIs(1));
  EXPECT_THAT(out.refusals[0].message, HasSubstr("nothing says who made it"));
  EXPECT_TRUE(rows_.empty());
}

TEST_F(TrackerTest, ARollbackTakesEverythingBack) {
  const json kept = Held(JobJson());
  Observe(kept);
  json other = Held(PodJson());
  TrackerOutputs first;
  const auto batch = [&](TrackerOutputs* out) {
    tracker_.Observe(Seen(Annotated(kept, "fluxqueue.io/priority", "3")), facts_, out);
    tracker_.Observe(Seen(PodOf(kept, "8")), facts_, out);
    tracker_.Observe(Seen(other), facts_, out);
    tracker_.Observe(Seen(Annotated(other, "fluxqueue.io/hold", "maybe")), facts_, out);
    tracker_.Gone("uid-j", out);
  };
  batch(&first);
  EXPECT_THAT(first.messages, SizeIs(4));
  EXPECT_THAT(first.refusals, SizeIs(1));
  tracker_.Rollback();
  EXPECT_TRUE(tracker_.Changes().upserts.empty());
  EXPECT_TRUE(tracker_.Changes().deletes.empty());
  TrackerOutputs second;
  batch(&second);
  ASSERT_EQ(second.messages.size(), first.messages.size());
  for (size_t i = 0; i < first.messages.size(); ++i) {
    EXPECT_EQ(second.messages[i].SerializeAsString(), first.messages[i].SerializeAsString());
  }
  EXPECT_THAT(second.refusals, SizeIs(1));
  Commit();
  EXPECT_EQ(tracker_.submitted(), 1);
}

}  // namespace
}  // namespace fluxqueue::admission
