#include "tools/fluxqueue/release_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

using kubernetes::Job;
using kubernetes::Pod;
using nlohmann::json;
using ::testing::HasSubstr;

// A uid has to look like one.
const std::string kTrain = "11111111-1111-4111-8111-111111111111";

json FluxJob(const std::string& kind,
             const std::string& name,
             const std::string& uid,
             const std::string& state,
             const std::string& reason) {
  return {{"metadata", {{"namespace", "lab"}, {"name", "x"}}},
          {"spec", {{"workload", {{"kind", kind}, {"name", name}, {"uid", uid}}}}},
          {"status", {{"state", state}, {"reason", reason}}}};
}

// Suspended by us, its template as the webhook writes it.
Job Held() {
  Job job;
  job.meta.namespace_name = "lab";
  job.meta.name = "train";
  job.meta.uid = kTrain;
  job.meta.resource_version = "7";
  job.meta.labels = {{"fluxqueue.io/held", "direct"}};
  job.meta.annotations = {{"fluxqueue.io/suspended-by", "fluxqueue"}};
  job.suspend = true;
  job.template_labels = {{"fluxqueue.io/held", "direct"}};
  job.pod.scheduler_name = "fluxqueue";
  return job;
}
Job HeldByGate() {
  Job job = Held();
  job.pod.scheduler_name = "default-scheduler";
  job.pod.gates = {"fluxqueue.io/gate", "example.com/other"};
  return job;
}

Pod Waiting(const std::string& name) {
  Pod pod;
  pod.meta.namespace_name = "lab";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.resource_version = "9";
  pod.meta.labels = {{"fluxqueue.io/held", "pinned"}};
  pod.spec.scheduler_name = "default-scheduler";
  pod.spec.gates = {"fluxqueue.io/gate"};
  pod.status.phase = "Pending";
  return pod;
}

class ReleasePlanTest : public ::testing::Test {
 protected:
  void Says(const json& flux_job) {
    const absl::Status seen = plan_.SawFluxJob(flux_job.dump());
    ASSERT_TRUE(seen.ok()) << Message(seen);
  }
  void TrainIs(const std::string& state, const std::string& reason = "") {
    Says(FluxJob("Job", "train", kTrain, state, reason));
  }
  Release Judged(const Job& job) {
    plan_.SawJob(job);
    return plan_.Judge(job).value_or(Release{.why = "nothing"});
  }
  Release Judged(const Pod& pod) { return plan_.Judge(pod).value_or(Release{.why = "nothing"}); }

  ReleasePlan plan_{/*also_unknown=*/false};
};

TEST_F(ReleasePlanTest, AJobThatWeHaveSuspendedIsResumed) {
  TrainIs("Pending", "Busy");
  const Release release = Judged(Held());
  EXPECT_EQ(release.fate, Fate::kResume);
  EXPECT_TRUE(release.scheduler) << "its pods will need the scheduler that they name";
  EXPECT_EQ(json::parse(release.patch), json::parse(R"({
    "metadata": {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": "7",
                 "labels": {"fluxqueue.io/held": null},
                 "annotations": {"fluxqueue.io/suspended-by": null}},
    "spec": {"suspend": false,
             "template": {"metadata": {"labels": {"fluxqueue.io/held": null}}}}})"));
}

TEST_F(ReleasePlanTest, OurGateGoesWithIt) {
  TrainIs("Pending", "Queued");
  const Release release = Judged(HeldByGate());
  EXPECT_EQ(release.fate, Fate::kResume);
  EXPECT_FALSE(release.scheduler);
  EXPECT_EQ(json::parse(release.patch)["spec"]["template"]["spec"],
            json::parse(R"({"schedulingGates": [{"name": "example.com/other"}]})"));
}

TEST_F(ReleasePlanTest, ADeadlineOfOursGoesAndAUsersStays) {
  TrainIs("Allocated");
  Job ours = Held();
  ours.active_deadline_s = 60;
  ours.meta.annotations["fluxqueue.io/deadline"] = "60";
  EXPECT_TRUE(json::parse(Judged(ours).patch)["spec"]["activeDeadlineSeconds"].is_null());
  EXPECT_TRUE(json::parse(Judged(ours).patch)["spec"].contains("activeDeadlineSeconds"));
  Job users = Held();
  users.active_deadline_s = 60;
  EXPECT_FALSE(json::parse(Judged(users).patch)["spec"].contains("activeDeadlineSeconds"));
}

TEST_F(ReleasePlanTest, WhatIsNotOursToStartStaysSuspended) {
  const auto kept = [this](const std::string& state, const std::string& reason) {
    TrainIs(state, reason);
    const Release release = Judged(HeldByGate());
    EXPECT_EQ(release.fate, Fate::kKeep) << state << reason;
    const json patch = json::parse(release.patch);
    EXPECT_FALSE(patch["spec"].contains("suspend"));
    EXPECT_FALSE(patch["metadata"].contains("labels")) << "a second run names it again";
    EXPECT_TRUE(patch["spec"]["template"]["spec"].contains("schedulingGates"))
        << "who resumes it later has pods that start";
    return release.why;
  };
  EXPECT_THAT(kept("Pending", "Held"), HasSubstr("it is held"));
  EXPECT_THAT(kept("Pending", "Dependency"), HasSubstr("depends-on"));
  EXPECT_THAT(kept("Pending", "NotYet"), HasSubstr("begin"));
  EXPECT_EQ(kept("Stopping", "Cancelled"), "it is being cancelled (Cancelled)");
  EXPECT_EQ(kept("Cancelled", "Cancelled"), "it is Cancelled (Cancelled)");
  EXPECT_EQ(kept("Failed", "NodeLost"), "it is Failed (NodeLost)");
  EXPECT_EQ(kept("Rejected", "Unsatisfiable"), "it is Rejected (Unsatisfiable)");
}

TEST_F(ReleasePlanTest, OneThatIsStoppedForAnotherIsResumed) {
  TrainIs("Stopping", "Preempted");
  EXPECT_EQ(Judged(Held()).fate, Fate::kResume);
}

TEST_F(ReleasePlanTest, AUsersOwnWordCountsWhateverTheFluxJobSays) {
  TrainIs("Pending", "Queued");
  Job suspended = Held();
  suspended.meta.annotations.clear();
  EXPECT_EQ(Judged(suspended).why, "its user has suspended it");
  Job held = Held();
  held.meta.annotations["fluxqueue.io/hold"] = "true";
  EXPECT_THAT(Judged(held).why, HasSubstr("its user holds it"));
  Job cancelled = Held();
  cancelled.template_annotations["fluxqueue.io/cancel"] = "true";
  EXPECT_THAT(Judged(cancelled).why, HasSubstr("its user has cancelled it"));
}

TEST_F(ReleasePlanTest, WhatNoFluxJobTellsOfMayHaveBeenCancelled) {
  EXPECT_THAT(Judged(Held()).why, HasSubstr("--also-unknown"));
  EXPECT_EQ(Judged(Waiting("p")).fate, Fate::kKeep);
  ReleasePlan all(/*also_unknown=*/true);
  EXPECT_EQ(all.Judge(Held())->fate, Fate::kResume);
  EXPECT_EQ(all.Judge(Waiting("p"))->fate, Fate::kUngate);
}

TEST_F(ReleasePlanTest, OfAJobThatRunsThePodsToComeStayHeld) {
  TrainIs("Running");
  Job running = HeldByGate();
  running.suspend = false;
  EXPECT_EQ(Judged(running).fate, Fate::kComing);
  EXPECT_EQ(Judged(running).patch, "") << "its template can be changed no more";
  Job ended = running;
  ended.complete = true;
  EXPECT_EQ(Judged(ended).why, "nothing");
  Job stopping = HeldByGate();
  stopping.started_ms = 1;
  EXPECT_THAT(Judged(stopping).why, HasSubstr("run this again"));
}

TEST_F(ReleasePlanTest, APodLosesItsGateAndItsLabel) {
  Says(FluxJob("Pod", "p", "uid-p", "Pending", "Busy"));
  const Release release = Judged(Waiting("p"));
  EXPECT_EQ(release.fate, Fate::kUngate);
  EXPECT_EQ(json::parse(release.patch), json::parse(R"({
    "metadata": {"uid": "uid-p", "resourceVersion": "9", "labels": {"fluxqueue.io/held": null}},
    "spec": {"schedulingGates": []}})"));
  Pod bound = Waiting("p");
  bound.spec.gates.clear();
  bound.spec.node_name = "n1";
  EXPECT_EQ(Judged(bound).fate, Fate::kUnmark);
  bound.status.phase = "Succeeded";
  EXPECT_EQ(Judged(bound).why, "nothing");
}

TEST_F(ReleasePlanTest, ThePodsOfAJobAndOfAGangAreKeptWithIt) {
  TrainIs("Pending", "Held");
  Job small = HeldByGate();
  small.suspend = false;
  plan_.SawJob(small);
  Pod of_job = Waiting("train-x");
  of_job.meta.owners.push_back({"batch/v1", "Job", "train", kTrain, true});
  EXPECT_EQ(Judged(of_job).fate, Fate::kKeep);
  EXPECT_EQ(Judged(of_job).owner, "Job train");
  Says(FluxJob("PodGroup", "llm", "uid-of-first", "Pending", "Held"));
  Says(FluxJob("PodGroup", "free", "uid-of-other", "Pending", "Busy"));
  Pod member = Waiting("llm-3");
  member.meta.annotations["fluxqueue.io/group"] = "llm/4";
  EXPECT_EQ(Judged(member).fate, Fate::kKeep);
  member.meta.annotations["fluxqueue.io/group"] = "free/4";
  EXPECT_EQ(Judged(member).fate, Fate::kUngate);
}

TEST_F(ReleasePlanTest, APodThatNamesOurSchedulerIsNamed) {
  Says(FluxJob("Pod", "p", "uid-p", "Pending", "Held"));
  Pod pod = Waiting("p");
  pod.spec.gates.clear();
  pod.spec.scheduler_name = "fluxqueue";
  const Release release = Judged(pod);
  EXPECT_EQ(release.fate, Fate::kScheduler);
  EXPECT_EQ(release.patch, "");
  EXPECT_THAT(release.why, HasSubstr("it is held")) << "that scheduler would start it";
  // Also one that somebody has made so, and that has no label.
  pod.meta.labels.clear();
  EXPECT_EQ(Judged(pod).fate, Fate::kScheduler);
}

TEST_F(ReleasePlanTest, WhatIsNoFluxJobIsAnError) {
  EXPECT_FALSE(plan_.SawFluxJob("{}").ok());
  EXPECT_FALSE(plan_.SawFluxJob("").ok());
}

}  // namespace
}  // namespace fluxqueue::cli
