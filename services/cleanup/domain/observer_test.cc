#include "services/cleanup/domain/observer.h"

#include <chrono>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/kubernetes/node.h"
#include "libs/kubernetes/places.h"
#include "services/cleanup/domain/sweep.h"

namespace fluxqueue::cleanup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

kubernetes::Node MakeNode(const std::string& name, bool ready = true) {
  kubernetes::Node node;
  node.meta.name = name;
  node.meta.uid = "uid-" + name;
  node.allocatable = {{"cpu", 8000}, {"pods", 110}};
  node.ready = ready;
  return node;
}

kubernetes::Pod MakePod(const std::string& uid, const std::string& node, const std::string& phase) {
  kubernetes::Pod pod;
  pod.meta.uid = uid;
  pod.meta.name = uid;
  pod.meta.namespace_name = "team";
  pod.spec.node_name = node;
  pod.spec.containers.emplace_back().requests = {{"cpu", 1000}};
  pod.status.phase = phase;
  if (phase != "Pending") pod.status.started_ms = 5000;
  return pod;
}

// A pod that says it has a slot, as our Binding does: "1.0.3/16".
kubernetes::Pod OwnPod(const std::string& uid,
                       const std::string& job,
                       const std::string& slot,
                       const std::string& phase,
                       const std::string& node = "n1") {
  kubernetes::Pod pod = MakePod(uid, node, phase);
  pod.spec.scheduler_name = kubernetes::kSchedulerName;
  if (job != uid) {
    pod.meta.owners = {
        {.api_version = "batch/v1", .kind = "Job", .name = "job", .uid = job, .controller = true}};
  }
  pod.meta.annotations = {{std::string(kubernetes::kJobIdAnnotation), job},
                          {std::string(kubernetes::kAllocationAnnotation), slot}};
  return pod;
}

// The binder's row of a pod that says the truth.
Proof RowOf(const kubernetes::Pod& pod) {
  return {pod.meta.annotations.at(std::string(kubernetes::kJobIdAnnotation)),
          *kubernetes::ParseSlotName(
              pod.meta.annotations.at(std::string(kubernetes::kAllocationAnnotation))),
          pod.meta.namespace_name,
          pod.spec.node_name};
}

kubernetes::Job MakeJob(const std::string& uid, int64_t slots, bool complete = false) {
  kubernetes::Job job;
  job.meta.uid = uid;
  job.parallelism = slots;
  job.completions = slots;
  job.complete = complete;
  return job;
}

// One line a fact: what the tests compare.
std::string Line(const events::v1::Envelope& fact) {
  switch (fact.event_case()) {
    case events::v1::Envelope::kJobStarted:
      return fmt::format(
          "started {} {}", fact.job_started().job_id(), fact.job_started().attempt());
    case events::v1::Envelope::kPodEnded:
      return fmt::format("pod-ended {} slot {} {}",
                         fact.pod_ended().job_id(),
                         fact.pod_ended().slot(),
                         events::v1::PodEnded::Result_Name(fact.pod_ended().result()));
    case events::v1::Envelope::kJobEnded:
      return fmt::format("ended {} {}",
                         fact.job_ended().job_id(),
                         events::v1::JobEnded::Result_Name(fact.job_ended().result()));
    case events::v1::Envelope::kJobNodeLost:
      return fmt::format("lost {} {} {}",
                         fact.job_node_lost().job_id(),
                         fact.job_node_lost().node(),
                         fact.job_node_lost().reason());
    case events::v1::Envelope::kNodeUpserted: {
      std::string line = fmt::format("node {}/{}", fact.pool(), fact.node_upserted().node().name());
      for (const auto& amount : fact.node_upserted().node().foreign()) {
        line += fmt::format(" {}={}", amount.resource(), amount.amount());
      }
      return line + (fact.node_upserted().node().ready() ? "" : " not-ready");
    }
    case events::v1::Envelope::kNodeGone:
      return fmt::format("gone {}/{}", fact.pool(), fact.node_gone().name());
    case events::v1::Envelope::kInventorySynced:
      return fmt::format("synced {} {}", fact.pool(), fact.inventory_synced().nodes());
    default:
      return "?";
  }
}

std::vector<std::string> Lines(const Said& said) {
  std::vector<std::string> lines;
  for (const auto& node : said.nodes) lines.push_back(Line(node));
  for (const auto& [job_id, fact] : said.jobs) lines.push_back(Line(fact));
  return lines;
}

class ObserverTest : public ::testing::Test {
 protected:
  // A cluster of one node, said and committed.
  void Start() {
    observer_.ObserveNode(MakeNode("n1"), Millis(0));
    observer_.Synced();
    Say();
  }

  // A pod that is foreign, or has a row and says so.
  void See(const kubernetes::Pod& pod) {
    std::optional<Proof> proof;
    if (!pod.meta.annotations.empty()) proof = RowOf(pod);
    observer_.ObservePod(pod, proof);
  }
  // A pod of which no row is found, whatever it says.
  void SeeWithoutRow(const kubernetes::Pod& pod) { observer_.ObservePod(pod, std::nullopt); }

  std::vector<std::string> Say(Millis now = Millis(0)) {
    const Said said = observer_.Collect(now);
    observer_.Commit();
    return Lines(said);
  }

  Observer observer_{Millis(1000)};
};

TEST_F(ObserverTest, NothingIsSaidOfHalfAPicture) {
  observer_.ObserveNode(MakeNode("n1"), Millis(0));
  EXPECT_FALSE(observer_.HasNews());
  EXPECT_THAT(Say(), IsEmpty());
  observer_.Synced();
  EXPECT_THAT(Say(), ElementsAre("node default/n1", "synced default 1"));
  EXPECT_FALSE(observer_.HasNews());
}

TEST_F(ObserverTest, APoolIsKnownWithItsFirstNode) {
  observer_.Synced();
  EXPECT_THAT(Say(), IsEmpty());
  observer_.ObserveNode(MakeNode("n1"), Millis(0));
  const Said said = observer_.Collect(Millis(0));
  observer_.Rollback();
  EXPECT_EQ(Say(), Lines(said));
  EXPECT_THAT(Lines(said), ElementsAre("node default/n1", "synced default 1"));
  observer_.ObserveNode(MakeNode("n2"), Millis(0));
  EXPECT_THAT(Say(), ElementsAre("node default/n2"));
}

TEST_F(ObserverTest, AHeartbeatIsNoNews) {
  Start();
  kubernetes::Node node = MakeNode("n1");
  node.meta.resource_version = "99";
  observer_.ObserveNode(node, Millis(0));
  EXPECT_THAT(Say(), IsEmpty());
}

// Whoever reads it takes what is older than what he knows for old news.
TEST_F(ObserverTest, WhatARestoredStoreShowsOfANodeHasNoVersion) {
  const auto node_at = [](const char* version, bool cordoned) {
    kubernetes::Node node = MakeNode("n1");
    node.meta.resource_version = version;
    node.unschedulable = cordoned;
    return node;
  };
  const auto version_said = [this] {
    const Said said = observer_.Collect(Millis(0));
    observer_.Rollback();
    const Said again = observer_.Collect(Millis(0));
    observer_.Commit();
    EXPECT_EQ(Lines(said), Lines(again));
    const auto& node = again.nodes.at(0).node_upserted().node();
    EXPECT_EQ(said.nodes.at(0).node_upserted().node().resource_version(), node.resource_version());
    return node.resource_version();
  };
  observer_.Synced();
  observer_.ObserveNode(node_at("100", true), Millis(0));
  EXPECT_EQ(version_said(), "100");
  observer_.ObserveNode(node_at("90", false), Millis(0));
  EXPECT_EQ(version_said(), "");
  observer_.ObserveNode(node_at("101", true), Millis(0));
  EXPECT_EQ(version_said(), "101");

  events::v1::Node known;
  known.set_name("n1");
  known.set_uid("uid-n1");
  known.set_resource_version("200");
  known.set_unschedulable(true);
  Observer successor(Millis(1000));
  successor.Remember("default", known);
  successor.ObserveNode(node_at("90", false), Millis(0));
  successor.Synced();
  const Said said = successor.Collect(Millis(0));
  EXPECT_EQ(said.nodes.at(0).node_upserted().node().resource_version(), "");
}

TEST_F(ObserverTest, ForeignPodsUseTheirNodeUntilTheyEnd) {
  Start();
  See(MakePod("p1", "n1", "Pending"));
  See(MakePod("p2", "n1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=2000 pods=2"));
  See(MakePod("p1", "n1", "Succeeded"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1"));
  observer_.PodGone("p2");
  EXPECT_THAT(Say(), ElementsAre("node default/n1"));
}

TEST_F(ObserverTest, APodThatIsLeftOutUsesItsNode) {
  Start();
  observer_.LeaveOut(OwnPod("p1", "j1", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1"));
  // It is handled after all.
  See(OwnPod("p1", "j1", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1", "started j1 1"));
  observer_.LeaveOut(OwnPod("p1", "j1", "1.0.0/1", "Succeeded"));
  EXPECT_THAT(Say(), IsEmpty()) << "what is known stays";
  observer_.LeaveOut(MakePod("p2", "n1", "Failed"));
  EXPECT_THAT(Say(), IsEmpty());
}

TEST_F(ObserverTest, AJobThatIsLeftOutHasNotEnded) {
  Start();
  observer_.LeaveOut(MakeJob("j1", 2, /*complete=*/true));
  See(OwnPod("p1", "j1", "1.0.0/2", "Succeeded"));
  See(OwnPod("p2", "j1", "1.0.1/2", "Succeeded"));
  EXPECT_THAT(Say(), ElementsAre("started j1 1"));
  observer_.PodGone("p1");
  observer_.PodGone("p2");
  EXPECT_THAT(Say(), IsEmpty());
  observer_.JobGone("j1");
  EXPECT_THAT(Say(), ElementsAre("ended j1 RESULT_DELETED"));
}

TEST_F(ObserverTest, ForeignUseIsOfWhatTheNodeHas) {
  Start();
  kubernetes::Pod pod = MakePod("p1", "n1", "Running");
  for (int i = 0; i < 20'000; ++i) {
    pod.spec.containers[0].requests[fmt::format("invented.io/r{}", i)] = 1;
  }
  pod.spec.containers[0].requests["example.com/fpga"] = 2;
  See(pod);
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1"));
  kubernetes::Node node = MakeNode("n1");
  node.allocatable["example.com/fpga"] = 4;
  observer_.ObserveNode(node, Millis(0));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 example.com/fpga=2 pods=1"));
}

// What rules between pods are about: only where jobs of ours are, and only those that are not ours.
TEST_F(ObserverTest, ForeignPodsSayWhoTheyAreAndWhichPortsTheyHave) {
  Start();
  kubernetes::Pod pod = MakePod("agent", "n1", "Running");
  pod.meta.labels = {{"app", "agent"}};
  pod.spec.containers.resize(1);
  pod.spec.containers[0].host_ports = {"hostport-9100-tcp"};
  kubernetes::PodTerm apart{.pods = LabelSelector{.labels = {{"app", "web"}}},
                            .topology_key = "zone"};
  pod.spec.apart_from_pods = {apart};
  SeeWithoutRow(pod);
  pod.meta.uid = "agent-2";
  SeeWithoutRow(pod);
  // Rules that look at other namespaces are none of those that are kept.
  pod.meta.uid = "other";
  pod.spec.apart_from_pods[0].selects_namespaces = true;
  SeeWithoutRow(pod);
  const auto node_said = [this] {
    const Said said = observer_.Collect(Millis(0));
    observer_.Commit();
    return said.nodes.empty() ? events::v1::Node() : said.nodes[0].node_upserted().node();
  };
  events::v1::Node node = node_said();
  EXPECT_EQ(node.foreign_pods_size(), 0);
  EXPECT_EQ(kubernetes::ToAmounts(node.foreign()).at("hostport-9100-tcp"), 3);

  kubernetes::Job job = MakeJob("j", 1);
  job.meta.namespace_name = pod.meta.namespace_name;
  observer_.ObserveJob(job);
  node = node_said();
  ASSERT_EQ(node.foreign_pods_size(), 2);
  EXPECT_EQ(node.foreign_pods(0).count(), 1u);
  EXPECT_EQ(node.foreign_pods(0).rules(), "");
  EXPECT_EQ(node.foreign_pods(1).count(), 2u);
  EXPECT_EQ(node.foreign_pods(1).pod(), R"({"labels":{"app":"agent"},"namespace":"team"})");
  EXPECT_EQ(node.foreign_pods(1).rules(),
            R"({"apart":[{"key":"zone","pods":{"expressions":[],"labels":{"app":"web"}}}]})");

  observer_.PodGone("agent");
  observer_.PodGone("agent-2");
  EXPECT_EQ(node_said().foreign_pods_size(), 1);
}

TEST_F(ObserverTest, ForeignUseBeyondAllNumbersIsCountedInFull) {
  Start();
  for (const char* uid : {"p1", "p2"}) {
    const auto pod = kubernetes::ParsePod(fmt::format(
        R"({{"metadata":{{"uid":"{}","name":"p","namespace":"team"}},"spec":{{"nodeName":"n1",)"
        R"("containers":[{{"name":"a","resources":{{"requests":{{"cpu":"100e18"}}}}}},)"
        R"({{"name":"b","resources":{{"requests":{{"cpu":"1"}}}}}}]}},)"
        R"("status":{{"phase":"Running"}}}})",
        uid));
    ASSERT_TRUE(pod.ok()) << pod.status();
    observer_.ObservePod(*pod, std::nullopt);
  }
  const Said said = observer_.Collect(Millis(0));
  ASSERT_EQ(said.nodes.size(), 1U);
  const auto foreign = kubernetes::ToAmounts(said.nodes[0].node_upserted().node().foreign());
  EXPECT_EQ(foreign.at("cpu"), kubernetes::kMostAmount);
  EXPECT_EQ(foreign.at("pods"), 2);
}

TEST_F(ObserverTest, APodThatEndedBeforeWeLookedIsNotCounted) {
  Start();
  See(MakePod("p1", "n1", "Failed"));
  EXPECT_THAT(Say(), IsEmpty());
  observer_.ObserveNode(MakeNode("n1", false), Millis(0));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 not-ready"));
}

TEST_F(ObserverTest, AJobOfOnePod) {
  Start();
  observer_.ObserveJob(MakeJob("j", 1));
  See(OwnPod("p", "j", "1.0.0/1", "Pending"));
  EXPECT_THAT(Say(), IsEmpty());
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("started j 1"));
  See(OwnPod("p", "j", "1.0.0/1", "Succeeded"));
  EXPECT_THAT(Say(), IsEmpty()) << "the workload has not said so yet";
  observer_.ObserveJob(MakeJob("j", 1, true));
  EXPECT_THAT(Say(), ElementsAre("ended j RESULT_SUCCEEDED"));
  observer_.PodGone("p");
  observer_.JobGone("j");
  EXPECT_THAT(Say(), IsEmpty());
  EXPECT_EQ(observer_.jobs(), 0);
}

TEST_F(ObserverTest, AJobThatIsCompleteWaitsForItsPods) {
  Start();
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  observer_.ObserveJob(MakeJob("j", 1, true));
  EXPECT_THAT(Say(), ElementsAre("started j 1"));
  observer_.PodGone("p");
  EXPECT_THAT(Say(), ElementsAre("ended j RESULT_SUCCEEDED"));
}

TEST_F(ObserverTest, PodsOfAGangEndOneByOne) {
  Start();
  observer_.ObserveJob(MakeJob("j", 2));
  See(OwnPod("a", "j", "1.0.0/2", "Running"));
  See(OwnPod("b", "j", "1.0.1/2", "Running"));
  Say();
  See(OwnPod("b", "j", "1.0.1/2", "Succeeded"));
  EXPECT_THAT(Say(), ElementsAre("pod-ended j slot 1 RESULT_SUCCEEDED"));
  See(OwnPod("b", "j", "1.0.1/2", "Succeeded"));
  observer_.PodGone("a");
  EXPECT_THAT(Say(), ElementsAre("pod-ended j slot 0 RESULT_GONE"));
}

// They are counted, also where the next completion wants the slot.
TEST_F(ObserverTest, PodsOfAnElasticJobEndOneByOne) {
  kubernetes::Job job = MakeJob("j", 9);
  job.meta.annotations = {{"fluxqueue.io/array", "2"}};
  observer_.ObserveJob(job);
  See(OwnPod("early", "j", "1.0.0/1", "Succeeded"));
  observer_.ObserveNode(MakeNode("n1"), Millis(0));
  observer_.Synced();
  EXPECT_THAT(Say(), ElementsAre("node default/n1", "synced default 1", "started j 1"))
      << "a predecessor has counted it, or nobody does";
  See(OwnPod("early", "j", "1.0.0/1", "Succeeded"));
  EXPECT_THAT(Say(), IsEmpty());
  See(OwnPod("a", "j", "1.0.0/1", "Running"));
  See(OwnPod("b", "j", "1.0.1/2", "Running"));
  EXPECT_THAT(Say(), IsEmpty());
  See(OwnPod("a", "j", "1.0.0/1", "Succeeded"));
  See(OwnPod("b", "j", "1.0.1/2", "Failed"));
  const Said said = observer_.Collect(Millis(0));
  observer_.Rollback();
  EXPECT_EQ(Say(), Lines(said));
  EXPECT_THAT(
      Lines(said),
      ElementsAre("pod-ended j slot 0 RESULT_SUCCEEDED", "pod-ended j slot 1 RESULT_FAILED"));
}

TEST_F(ObserverTest, ADeletedJobEndsWithItsLastPod) {
  Start();
  observer_.ObserveJob(MakeJob("j", 1));
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  Say();
  observer_.JobGone("j");
  EXPECT_THAT(Say(), IsEmpty());
  observer_.PodGone("p");
  EXPECT_THAT(Say(), ElementsAre("ended j RESULT_DELETED"));
  EXPECT_EQ(observer_.jobs(), 0);
}

TEST_F(ObserverTest, AJobWhosePodsAreSeenFirstIsNotDeleted) {
  Start();
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("started j 1"));
  observer_.PodGone("p");
  EXPECT_THAT(Say(), IsEmpty());
  observer_.ObserveJob(MakeJob("j", 1));
  EXPECT_THAT(Say(), IsEmpty());
  observer_.JobGone("j");
  EXPECT_THAT(Say(), ElementsAre("ended j RESULT_DELETED"));
}

TEST_F(ObserverTest, AJobWithoutPodsIsAdmissionsToWithdraw) {
  Start();
  observer_.ObserveJob(MakeJob("j", 1));
  observer_.JobGone("j");
  EXPECT_THAT(Say(), IsEmpty());
  EXPECT_EQ(observer_.jobs(), 0);
}

TEST_F(ObserverTest, ABarePodIsItsOwnWorkload) {
  Start();
  See(OwnPod("p", "p", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("started p 1"));
  kubernetes::Pod failed = OwnPod("p", "p", "1.0.0/1", "Failed");
  failed.status.reason = "OutOfcpu";
  See(failed);
  const Said said = observer_.Collect(Millis(0));
  ASSERT_EQ(said.jobs.size(), 1);
  EXPECT_EQ(said.jobs[0].second.job_ended().result(), events::v1::JobEnded::RESULT_FAILED);
  EXPECT_EQ(said.jobs[0].second.job_ended().message(), "OutOfcpu");
}

// As a Spark driver's, with its executors.
TEST_F(ObserverTest, AJobWithPlacesEndsWithThePodThatHasThem) {
  const auto executor = [](const std::string& uid, int slot, const std::string& phase) {
    kubernetes::Pod pod = OwnPod(uid, "driver", fmt::format("1.0.{}/3", slot), phase);
    pod.meta.owners.clear();
    pod.meta.annotations[std::string(kubernetes::kPlaceOfAnnotation)] = "driver";
    return pod;
  };
  Start();
  See(OwnPod("driver", "driver", "1.0.0/3", "Running"));
  EXPECT_THAT(Say(), ElementsAre("started driver 1"));
  See(executor("e1", 1, "Running"));
  See(executor("e1", 1, "Failed"));
  See(executor("e2", 2, "Running"));
  observer_.PodGone("e2");
  EXPECT_THAT(Say(), IsEmpty()) << "their ends give nothing back, and end nothing";
  See(executor("e3", 1, "Running"));
  See(OwnPod("driver", "driver", "1.0.0/3", "Succeeded"));
  EXPECT_THAT(Say(), IsEmpty());
  See(executor("e3", 1, "Failed"));
  EXPECT_THAT(Say(), ElementsAre("ended driver RESULT_SUCCEEDED"));
}

TEST_F(ObserverTest, AnExecutorsEndEndsNoJobWhoseDriverIsThere) {
  kubernetes::Pod executor = OwnPod("e1", "driver", "1.0.1/2", "Running");
  executor.meta.owners.clear();
  executor.meta.annotations[std::string(kubernetes::kPlaceOfAnnotation)] = "driver";
  Start();
  SeeWithoutRow(OwnPod("driver", "driver", "1.0.0/2", "Running"));
  See(executor);
  observer_.PodGone("e1");
  EXPECT_THAT(Say(), ::testing::Not(::testing::Contains("ended driver RESULT_DELETED")));
  observer_.PodGone("driver");
  observer_.ConfirmGone("driver");
  EXPECT_THAT(Say(), ElementsAre("node default/n1", "ended driver RESULT_DELETED"));
}

TEST_F(ObserverTest, ARollbackIsSaidAgain) {
  observer_.ObserveNode(MakeNode("n1"), Millis(0));
  observer_.ObserveJob(MakeJob("j", 2));
  See(OwnPod("a", "j", "1.0.0/2", "Succeeded"));
  See(OwnPod("b", "j", "1.0.1/2", "Running"));
  observer_.Synced();
  const auto first = Lines(observer_.Collect(Millis(0)));
  EXPECT_THAT(first,
              ElementsAre("node default/n1",
                          "synced default 1",
                          "started j 1",
                          "pod-ended j slot 0 RESULT_SUCCEEDED"));
  observer_.Rollback();
  EXPECT_TRUE(observer_.HasNews());
  EXPECT_EQ(Say(), first);
  EXPECT_THAT(Say(), IsEmpty());
}

TEST_F(ObserverTest, ANodeIsLostAfterItsGrace) {
  Start();
  observer_.ObserveJob(MakeJob("j", 1));
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  Say();
  observer_.ObserveNode(MakeNode("n1", false), Millis(100));
  EXPECT_THAT(Say(Millis(100)), ElementsAre("node default/n1 not-ready"));
  EXPECT_EQ(observer_.NextDeadline(), Millis(1100));
  EXPECT_THAT(Say(Millis(1099)), IsEmpty());
  EXPECT_THAT(Say(Millis(1100)), ElementsAre("lost j n1 NotReady"));
  EXPECT_THAT(Say(Millis(5000)), IsEmpty()) << "once for each attempt";
  EXPECT_FALSE(observer_.NextDeadline().has_value());
  // Its pod is being deleted: should the node come back, it uses it as a foreigner.
  kubernetes::Pod going = OwnPod("p", "j", "1.0.0/1", "Running");
  going.meta.deleted_ms = 1;
  See(going);
  EXPECT_THAT(Say(Millis(5000)), ElementsAre("node default/n1 cpu=1000 pods=1 not-ready"));
}

TEST_F(ObserverTest, ALossThatWasNotCommittedIsSaidAgain) {
  Start();
  See(OwnPod("p1", "j1", "1.0.0/1", "Running"));
  Say();
  observer_.NodeGone("n1", "uid-n1");
  const std::vector<std::string> lost = Lines(observer_.Collect(Millis(0)));
  observer_.Rollback();
  EXPECT_EQ(Say(), lost);
  EXPECT_THAT(lost, ElementsAre("gone default/n1", "lost j1 n1 Deleted"));
  See(OwnPod("p1", "j1", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), IsEmpty());
}

// Each set that a pod is in forgets it first.
TEST_F(ObserverTest, OfAPodThatHasGoneNothingIsLookedAt) {
  Start();
  observer_.ObserveJob(MakeJob("j1", 2));
  See(OwnPod("p1", "j1", "1.0.0/2", "Running"));
  See(OwnPod("p2", "j1", "1.0.1/2", "Running"));
  SeeWithoutRow(MakePod("foreign", "n1", "Running"));
  Say();
  observer_.NodeGone("n1", "uid-n1");
  observer_.Collect(Millis(0));
  observer_.PodGone("p1");
  observer_.PodGone("foreign");
  observer_.Rollback();
  EXPECT_THAT(
      Say(),
      ElementsAre("gone default/n1", "lost j1 n1 Deleted", "pod-ended j1 slot 0 RESULT_GONE"));
  observer_.JobGone("j1");
  observer_.PodGone("p2");
  EXPECT_THAT(Say(), ElementsAre("ended j1 RESULT_DELETED"));
  EXPECT_EQ(observer_.jobs(), 0);
  EXPECT_EQ(observer_.nodes(), 0);
}

// A job array of many: what has ended, and was told, costs nothing more.
TEST_F(ObserverTest, ATurnCostsWhatHasChanged) {
  constexpr int kEnded = 50'000;
  constexpr int kTurns = 500;
  Start();
  observer_.ObserveNode(MakeNode("n2"), Millis(0));
  observer_.ObserveJob(MakeJob("j1", kEnded + 1));
  for (int i = 1; i <= kEnded; ++i) {
    See(OwnPod(fmt::format("p{}", i), "j1", fmt::format("1.0.{}/{}", i, kEnded + 1), "Succeeded"));
  }
  EXPECT_EQ(Say().size(), kEnded + 2);
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < kTurns; ++i) {
    See(OwnPod("live", "j1", fmt::format("1.0.0/{}", kEnded + 1), "Running", "n2"));
    EXPECT_THAT(Say(), IsEmpty());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4));
}

TEST_F(ObserverTest, ANodeThatComesBackInTimeIsNotLost) {
  Start();
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  observer_.ObserveNode(MakeNode("n1", false), Millis(100));
  observer_.ObserveNode(MakeNode("n1"), Millis(900));
  EXPECT_THAT(Say(Millis(2000)), ElementsAre("started j 1"));
}

TEST_F(ObserverTest, ADrainedNodeGivesItsJobsBack) {
  Start();
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  Say();
  kubernetes::Node node = MakeNode("n1");
  node.meta.annotations["fluxqueue.io/drain"] = "later";
  observer_.ObserveNode(node, Millis(100));
  EXPECT_THAT(Say(Millis(100)), IsEmpty());
  node.meta.annotations["fluxqueue.io/drain"] = "requeue";
  observer_.ObserveNode(node, Millis(200));
  EXPECT_THAT(Say(Millis(200)), ElementsAre("lost j n1 Drained"));
  observer_.ObserveNode(node, Millis(300));
  EXPECT_THAT(Say(Millis(300)), IsEmpty()) << "once for each attempt";
  // A pod that was on its way there when the node was drained.
  See(OwnPod("late", "k", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(Millis(400)), ElementsAre("started k 1", "lost k n1 Drained"));
}

TEST_F(ObserverTest, ADeletedNodeIsGoneAndItsJobsAreLost) {
  Start();
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  Say();
  observer_.NodeGone("n1", "uid-other");
  EXPECT_THAT(Say(), IsEmpty()) << "another node of that name";
  observer_.NodeGone("n1", "uid-n1");
  EXPECT_THAT(Say(), ElementsAre("gone default/n1", "lost j n1 Deleted"));
}

TEST_F(ObserverTest, ANodeMadeAgainHasAGraceOfItsOwn) {
  Start();
  observer_.ObserveNode(MakeNode("n1", false), Millis(100));
  Say(Millis(1100));
  EXPECT_FALSE(observer_.NextDeadline().has_value());
  kubernetes::Node again = MakeNode("n1", false);
  again.meta.uid = "uid-2";
  observer_.ObserveNode(again, Millis(2000));
  EXPECT_EQ(observer_.NextDeadline(), Millis(3000));
  observer_.NodeGone("n1", "uid-2");
  EXPECT_FALSE(observer_.NextDeadline().has_value());
}

TEST_F(ObserverTest, ANodeMadeAgainIsAnotherNode) {
  Start();
  kubernetes::Node again = MakeNode("n1");
  again.meta.uid = "uid-2";
  observer_.ObserveNode(again, Millis(0));
  EXPECT_THAT(Say(), ElementsAre("gone default/n1", "node default/n1"));
}

TEST_F(ObserverTest, ANodeThatChangesPoolWaitsForItsPods) {
  Start();
  observer_.ObserveJob(MakeJob("j", 1));
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  Say();
  kubernetes::Node moved = MakeNode("n1");
  moved.meta.labels = {{"fluxqueue.io/pool", "other"}};
  observer_.ObserveNode(moved, Millis(0));
  EXPECT_THAT(Say(), ElementsAre("gone default/n1"));
  observer_.PodGone("p");
  EXPECT_THAT(Say(), ElementsAre("node other/n1", "synced other 1"));
}

TEST_F(ObserverTest, WhatAPredecessorSaidIsNotSaidAgain) {
  Start();
  const Said said = [&] {
    Observer first(Millis(1000));
    first.ObserveNode(MakeNode("n1"), Millis(0));
    first.Synced();
    return first.Collect(Millis(0));
  }();
  Observer second(Millis(1000));
  second.Remember("default", said.nodes[0].node_upserted().node());
  events::v1::Node vanished;
  vanished.set_name("n2");
  vanished.set_uid("uid-n2");
  second.Remember("default", vanished);
  second.RememberStarted("j", 1);
  second.ObserveNode(MakeNode("n1"), Millis(0));
  const kubernetes::Pod pod = OwnPod("p", "j", "1.0.0/1", "Running");
  second.ObservePod(pod, RowOf(pod));
  second.Synced();
  EXPECT_THAT(Lines(second.Collect(Millis(0))), ElementsAre("gone default/n2", "synced default 1"));
}

TEST_F(ObserverTest, ALaterAttemptStartsAnew) {
  Start();
  observer_.ObserveJob(MakeJob("j", 1));
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  Say();
  observer_.PodGone("p");
  See(OwnPod("q", "j", "2.0.0/1", "Pending"));
  EXPECT_THAT(Say(), IsEmpty());
  See(OwnPod("q", "j", "2.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("started j 2"));
}

// Its user may write them, also while it runs.
TEST_F(ObserverTest, APodStaysInItsJobWhateverBecomesOfItsAnnotations) {
  Start();
  observer_.ObserveJob(MakeJob("j", 3));
  See(OwnPod("a", "j", "1.0.0/3", "Running"));
  See(OwnPod("b", "j", "1.0.1/3", "Running"));
  See(OwnPod("c", "j", "1.0.2/3", "Running"));
  Say();
  See(MakePod("a", "n1", "Running"));
  See(MakePod("b", "n1", "Running"));
  SeeWithoutRow(OwnPod("c", "k", "4294967295.0.0/1", "Running"));
  EXPECT_THAT(Say(), IsEmpty());
  observer_.PodGone("a");
  See(MakePod("b", "n1", "Succeeded"));
  EXPECT_THAT(Say(),
              ElementsAre("pod-ended j slot 0 RESULT_GONE", "pod-ended j slot 1 RESULT_SUCCEEDED"));
  observer_.ObserveJob(MakeJob("j", 3, true));
  EXPECT_THAT(Say(), IsEmpty()) << "c runs";
  observer_.PodGone("b");
  observer_.PodGone("c");
  EXPECT_THAT(Say(), ElementsAre("ended j RESULT_SUCCEEDED"));
  observer_.JobGone("j");
  Say();
  EXPECT_EQ(observer_.jobs(), 0);
}

// Nothing is said of a job that a pod names and has no row of.
TEST_F(ObserverTest, APodWithoutARowIsForeignUseOnly) {
  Start();
  observer_.ObserveJob(MakeJob("j", 2));
  See(OwnPod("a", "j", "1.0.0/2", "Running"));
  See(OwnPod("b", "j", "1.0.1/2", "Running"));
  EXPECT_THAT(Say(), ElementsAre("started j 1"));
  SeeWithoutRow(OwnPod("mine", "j", "1.0.0/2", "Running"));
  SeeWithoutRow(OwnPod("later", "j", "4294967295.0.0/1", "Running"));
  SeeWithoutRow(OwnPod("ended", "j", "1.0.1/2", "Succeeded"));
  SeeWithoutRow(OwnPod("nowhere", "j", "1.0.0/2", "Running", "nope"));
  SeeWithoutRow(OwnPod("other", "k", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=3000 pods=3"));
  SeeWithoutRow(OwnPod("later", "j", "4294967295.0.0/1", "Failed"));
  observer_.PodGone("other");
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1"));
  EXPECT_EQ(observer_.jobs(), 1);
  EXPECT_TRUE(observer_.Shows("j"));
  EXPECT_FALSE(observer_.Shows("k"));
  std::vector<std::string> own;
  observer_.ForEachOwnPod(
      [&own](const std::string& job_id, uint32_t attempt, const std::string& uid) {
        own.push_back(fmt::format("{} {} {}", job_id, attempt, uid));
      });
  EXPECT_THAT(own, ::testing::UnorderedElementsAre("j 1 a", "j 1 b"));
}

TEST_F(ObserverTest, APodWithoutARowKeepsNoJobFromEnding) {
  Start();
  observer_.ObserveJob(MakeJob("j", 1));
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  SeeWithoutRow(OwnPod("sleeps", "j", "1.0.0/1", "Running"));
  Say();
  See(OwnPod("p", "j", "1.0.0/1", "Succeeded"));
  observer_.ObserveJob(MakeJob("j", 1, true));
  EXPECT_THAT(Say(), ElementsAre("ended j RESULT_SUCCEEDED"));
}

// Another attempt's number would hide the one that starts.
TEST_F(ObserverTest, TheAttemptIsTheRows) {
  Start();
  const kubernetes::Pod pod = OwnPod("p", "j", "4294967295.0.0/1", "Running");
  observer_.ObservePod(pod, Proof{"j", {.attempt = 2, .slots = 1}, "team", "n1"});
  EXPECT_THAT(Say(), ElementsAre("started j 2"));
}

TEST_F(ObserverTest, ARowOfAPodElsewhereProvesNothing) {
  Start();
  const kubernetes::Pod pod = OwnPod("p", "j", "1.0.0/1", "Running");
  observer_.ObservePod(pod, Proof{"j", {.attempt = 1, .slots = 1}, "another-team", "n1"});
  observer_.ObservePod(pod, Proof{"j", {.attempt = 1, .slots = 1}, "team", "n2"});
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1"));
}

// Of a database that was restored: the binder adopts the pod later.
TEST_F(ObserverTest, APodIsProvenLater) {
  Start();
  const kubernetes::Pod pod = OwnPod("p", "j", "1.0.0/1", "Running");
  SeeWithoutRow(pod);
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1"));
  ASSERT_EQ(observer_.UnprovenPods().size(), 1);
  EXPECT_EQ(observer_.UnprovenPods()[0].job_id, "j");
  EXPECT_EQ(observer_.UnprovenPods()[0].pod_uid, "p");
  EXPECT_FALSE(observer_.Prove("p", Proof{"j", {.attempt = 1, .slots = 1}, "team", "n2"}));
  EXPECT_FALSE(observer_.Prove("q", RowOf(pod)));
  EXPECT_TRUE(observer_.Prove("p", RowOf(pod)));
  EXPECT_FALSE(observer_.Prove("p", RowOf(pod)));
  EXPECT_THAT(observer_.UnprovenPods(), IsEmpty());
  EXPECT_THAT(Say(), ElementsAre("node default/n1", "started j 1"));
  SeeWithoutRow(pod);
  EXPECT_THAT(Say(), IsEmpty()) << "it stays proven";
}

// It may have ended before the row came back.
TEST_F(ObserverTest, TheEndOfABarePodNeedsNoRow) {
  Start();
  SeeWithoutRow(OwnPod("p", "p", "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1"));
  SeeWithoutRow(OwnPod("p", "p", "1.0.0/1", "Succeeded"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1", "ended p RESULT_SUCCEEDED"));
  observer_.PodGone("p");
  EXPECT_THAT(Say(), IsEmpty());
  EXPECT_EQ(observer_.jobs(), 0);
}

TEST_F(ObserverTest, WhatIsNoUidIsNoHint) {
  Start();
  const auto hints = [&](const std::string& job_id) {
    kubernetes::Pod pod = OwnPod("p", job_id, "1.0.0/1", "Running");
    pod.meta.owners.clear();
    pod.spec.scheduler_name = "default-scheduler";
    return observer_.NeedsProof(pod).size();
  };
  EXPECT_EQ(hints("j"), 1);
  EXPECT_EQ(hints(std::string("a\0b", 3)), 0);
  EXPECT_EQ(hints(std::string(1 << 20, 'a')), 0);
  EXPECT_EQ(hints(""), 0);
  EXPECT_EQ(hints("\xff"), 0);

  SeeWithoutRow(OwnPod("nul", std::string("a\0", 2), "1.0.0/1", "Running", "nope"));
  SeeWithoutRow(OwnPod("long", std::string(1 << 20, 'a'), "1.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1"));
  EXPECT_EQ(observer_.jobs(), 0);
}

TEST_F(ObserverTest, OnlyWhatMayBeOursIsLookedUp) {
  Start();
  EXPECT_THAT(observer_.NeedsProof(MakePod("foreign", "n1", "Running")), IsEmpty());
  kubernetes::Pod pod = OwnPod("p", "j", "1.0.0/1", "Running");
  ASSERT_EQ(observer_.NeedsProof(pod).size(), 1);
  EXPECT_EQ(observer_.NeedsProof(pod)[0].job_id, "j");
  pod.meta.annotations = {{std::string(kubernetes::kJobIdAnnotation), "k"}};
  EXPECT_EQ(observer_.NeedsProof(pod).size(), 2) << "its owner may be right";
  pod.meta.annotations.clear();
  EXPECT_EQ(observer_.NeedsProof(pod).size(), 1);
  pod.spec.scheduler_name = "default-scheduler";
  EXPECT_THAT(observer_.NeedsProof(pod), IsEmpty()) << "a Job's pod like any other";
  pod.spec.scheduler_name = kubernetes::kSchedulerName;
  pod.spec.node_name.clear();
  EXPECT_THAT(observer_.NeedsProof(pod), IsEmpty()) << "not bound";
  See(OwnPod("p", "j", "1.0.0/1", "Running"));
  EXPECT_THAT(observer_.NeedsProof(OwnPod("p", "j", "1.0.0/1", "Running")), IsEmpty());
}

LiveJob Live(const std::string& job_id, uint32_t attempt, bool holding) {
  LiveJob job;
  job.job_id = job_id;
  job.attempt = attempt;
  job.holding = holding;
  return job;
}

TEST_F(ObserverTest, TheSweepSuspectsOnlyDifferences) {
  Start();
  observer_.ObserveJob(MakeJob("seen", 1));
  See(OwnPod("p", "ended", "1.0.0/1", "Running"));
  See(OwnPod("q", "moved-on", "1.0.0/1", "Running"));
  See(OwnPod("r", "right", "2.0.0/1", "Running"));
  Say();
  const Suspects suspects = Compare({Live("seen", 0, true),
                                     Live("unseen", 1, true),
                                     Live("waiting", 1, false),
                                     Live("moved-on", 2, true),
                                     Live("right", 2, true)},
                                    observer_);
  ASSERT_EQ(suspects.gone.size(), 1);
  EXPECT_EQ(suspects.gone[0].job_id, "unseen");
  std::vector<std::string> orphans;
  for (const auto& pod : suspects.orphans) orphans.push_back(pod.uid);
  EXPECT_THAT(orphans, ::testing::UnorderedElementsAre("p", "q"));

  observer_.ConfirmGone("unseen");
  observer_.ConfirmGone("seen");
  EXPECT_TRUE(observer_.Disown("p"));
  EXPECT_FALSE(observer_.Disown("p"));
  EXPECT_THAT(Say(), ElementsAre("node default/n1 cpu=1000 pods=1", "ended unseen RESULT_DELETED"));
}

TEST_F(ObserverTest, AnEndThatWasNotHeardIsSaidAgain) {
  Start();
  observer_.ObserveJob(MakeJob("j", 1, true));
  EXPECT_THAT(Say(), ElementsAre("ended j RESULT_SUCCEEDED"));
  EXPECT_TRUE(observer_.SayEndAgain("j"));
  EXPECT_THAT(Say(), ElementsAre("ended j RESULT_SUCCEEDED"));
  EXPECT_FALSE(observer_.SayEndAgain("unknown"));
}

TEST_F(ObserverTest, AStartThatWasNotHeardIsSaidAgain) {
  Start();
  See(OwnPod("p", "j", "2.0.0/1", "Running"));
  EXPECT_THAT(Say(), ElementsAre("started j 2"));
  EXPECT_FALSE(observer_.SayStartAgain("j", 1)) << "of another attempt";
  EXPECT_TRUE(observer_.SayStartAgain("j", 2));
  EXPECT_THAT(Say(), ElementsAre("started j 2"));
  EXPECT_FALSE(observer_.SayStartAgain("unknown", 1));
}

TEST_F(ObserverTest, NodesThatAGraphHasNotHeardOfAreSaidAgain) {
  Start();
  EXPECT_EQ(observer_.HearNodes({}), 0) << "it may be on its way";
  EXPECT_EQ(observer_.HearNodes({}), 1);
  EXPECT_THAT(Say(), ElementsAre("node default/n1", "synced default 1"));
  events::v1::Node heard;
  observer_.ObserveNode(MakeNode("n2"), Millis(0));
  for (const events::v1::Envelope& said : observer_.Collect(Millis(0)).nodes) {
    heard = said.node_upserted().node();
  }
  observer_.Commit();
  heard.set_name("n1");
  heard.set_uid("uid-n1");
  const std::vector<HeardNode> first = {HeardNode::Of("default", heard)};
  EXPECT_EQ(observer_.HearNodes(first), 0);
  EXPECT_EQ(observer_.HearNodes(first), 1);
  EXPECT_THAT(Say(), ElementsAre("node default/n2", "synced default 2"));
  // What nobody ever hears is said ever more seldom.
  size_t again = 0;
  for (int look = 0; look < 62; ++look) {
    again += observer_.HearNodes(first);
    Say();
  }
  EXPECT_EQ(again, 5);
  // Of one that has gone, and that the graph still has.
  observer_.NodeGone("n2", "uid-n2");
  Say();
  heard.set_name("n2");
  heard.set_uid("uid-n2");
  const std::vector<HeardNode> both = {first[0], HeardNode::Of("default", heard)};
  EXPECT_EQ(observer_.HearNodes(both), 0);
  EXPECT_EQ(observer_.HearNodes(both), 1);
  EXPECT_THAT(Say(), ElementsAre("gone default/n2"));
}

TEST_F(ObserverTest, MoreNodesThanAreSaidAtOnceAreSaidAtALaterLook) {
  for (size_t i = 0; i < 2 * Observer::kMostSaidAgain; ++i) {
    observer_.ObserveNode(MakeNode(fmt::format("more{}", i)), Millis(0));
  }
  Start();
  Say();
  EXPECT_EQ(observer_.HearNodes({}), 0);
  size_t said = 0;
  for (int look = 0; look < 3; ++look) {
    said += observer_.HearNodes({});
    Say();
  }
  EXPECT_GE(said, 2 * Observer::kMostSaidAgain + 1);
}

// That it left the first pool is lost: both graphs have it.
TEST_F(ObserverTest, APoolThatANodeHasLeftIsToldAgain) {
  Start();
  kubernetes::Node moved = MakeNode("n1");
  moved.meta.labels = {{"fluxqueue.io/pool", "other"}};
  observer_.ObserveNode(moved, Millis(0));
  Say();
  events::v1::Node there;
  there.set_name("n1");
  there.set_uid("uid-n1");
  const std::vector<HeardNode> heard = {HeardNode::Of("default", there)};
  observer_.HearNodes(heard);
  observer_.HearNodes(heard);
  EXPECT_THAT(Say(), ::testing::Contains("gone default/n1"));
}

// One of two pods of the gang "gang".
kubernetes::Pod GangPod(const std::string& uid, int slot, const std::string& phase) {
  kubernetes::Pod pod = OwnPod(uid, "gang", fmt::format("1.0.{}/2", slot), phase);
  pod.meta.owners.clear();
  pod.meta.annotations[std::string(kubernetes::kGroupAnnotation)] = "train/2";
  return pod;
}

using GroupObserverTest = ObserverTest;

TEST_F(GroupObserverTest, AGangEndsWithTheLastOfItsPods) {
  Start();
  See(GangPod("p0", 0, "Running"));
  EXPECT_THAT(Say(), ElementsAre("started gang 1"));
  See(GangPod("p0", 0, "Succeeded"));
  EXPECT_THAT(Say(), ElementsAre("pod-ended gang slot 0 RESULT_SUCCEEDED"))
      << "the other one is still to be bound";
  See(GangPod("p1", 1, "Running"));
  EXPECT_THAT(Say(), IsEmpty());
  observer_.PodGone("p0");
  EXPECT_THAT(Say(), IsEmpty());
  See(GangPod("p1", 1, "Succeeded"));
  EXPECT_THAT(Say(), ElementsAre("ended gang RESULT_SUCCEEDED"));
}

// As of a JobSet; and a Job's own pod whose template names a group that it is not of.
TEST_F(GroupObserverTest, WhetherAPodOfAJobIsOfAGangItsSlotSays) {
  const auto of_job = [](kubernetes::Pod pod) {
    pod.meta.annotations[std::string(kubernetes::kGroupAnnotation)] = "train/2";
    pod.meta.owners = {
        {.api_version = "batch/v1", .kind = "Job", .name = "j", .uid = "job", .controller = true}};
    return pod;
  };
  Start();
  observer_.ObserveJob(MakeJob("job", 1));
  See(of_job(GangPod("p0", 0, "Succeeded")));
  See(of_job(GangPod("p1", 1, "Succeeded")));
  See(of_job(OwnPod("own", "job", "1.0.0/1", "Succeeded")));
  EXPECT_THAT(Say(),
              ::testing::UnorderedElementsAre(
                  "started gang 1", "ended gang RESULT_SUCCEEDED", "started job 1"))
      << "of the Job's end its status tells";
}

TEST_F(GroupObserverTest, OnePodThatFailsOrIsDeletedFailsTheGang) {
  Start();
  See(GangPod("p0", 0, "Running"));
  See(GangPod("p1", 1, "Running"));
  Say();
  See(GangPod("p1", 1, "Succeeded"));
  observer_.PodGone("p0");
  EXPECT_THAT(Say(), ElementsAre("ended gang RESULT_FAILED"));
}

TEST_F(GroupObserverTest, OneWhosePodsAreAllDeletedIsDeleted) {
  Start();
  See(GangPod("p0", 0, "Running"));
  See(GangPod("p1", 1, "Running"));
  Say();
  observer_.PodGone("p0");
  EXPECT_THAT(Say(), ElementsAre("pod-ended gang slot 0 RESULT_GONE"));
  observer_.PodGone("p1");
  EXPECT_THAT(Say(), ElementsAre("ended gang RESULT_DELETED"));
}

TEST_F(GroupObserverTest, OfOneWhosePodsWentUnseenTheSweepSaysSo) {
  Start();
  See(GangPod("p0", 0, "Succeeded"));
  Say();
  EXPECT_FALSE(observer_.Shows("gang"));
  const LiveJob waits{
      .job_id = "gang", .kind = "PodGroup", .space = {}, .name = {}, .holding = true};
  EXPECT_TRUE(Compare({waits}, observer_).gone.empty()) << "its pods may still wait";
  LiveJob runs = waits;
  runs.running = true;
  EXPECT_EQ(Compare({runs}, observer_).gone.size(), 1);
  observer_.ConfirmGone("gang");
  EXPECT_THAT(Say(), ElementsAre("ended gang RESULT_DELETED"));
}

TEST_F(GroupObserverTest, OneWhosePodsAreNotProvenYetIsNotGone) {
  Start();
  SeeWithoutRow(GangPod("p0", 0, "Running"));
  EXPECT_TRUE(observer_.Shows("gang"));
  SeeWithoutRow(OwnPod("thief", "victim", "1.0.0/1", "Running"));
  EXPECT_FALSE(observer_.Shows("victim")) << "an owner is named by anybody";
}

TEST_F(GroupObserverTest, APodOfAGroupThatIsAJobOfItsOwnEndsAsSuch) {
  Start();
  kubernetes::Pod pod = GangPod("late", 0, "Running");
  pod.meta.annotations[std::string(kubernetes::kJobIdAnnotation)] = "late";
  pod.meta.annotations[std::string(kubernetes::kAllocationAnnotation)] = "1.0.0/1";
  See(pod);
  EXPECT_THAT(Say(), ElementsAre("started late 1"));
  pod.status.phase = "Succeeded";
  See(pod);
  EXPECT_THAT(Say(), ElementsAre("ended late RESULT_SUCCEEDED"));
}

}  // namespace
}  // namespace fluxqueue::cleanup
