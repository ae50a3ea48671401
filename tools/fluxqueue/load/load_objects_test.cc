#include "tools/fluxqueue/load/load_objects.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::load {
namespace {

PlannedJob GpuJob() {
  return {{"a",
           0,
           1,
           1,
           {{"cpu", 1500}, {"fluxqueue.io/gpu-milli", 460}, {"memory", 1 << 20}},
           {"P100", "T4"}},
          Millis(0),
          Millis(250)};
}

TEST(LoadObjectsTest, AJobIsWhatAdmissionReads) {
  const auto job = kubernetes::ParseJob(JobObject(GpuJob(), "load", "fast"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->meta.name, "a");
  EXPECT_EQ(job->Slots(), 1);
  EXPECT_FALSE(job->indexed);
  EXPECT_EQ(job->template_annotations.at("fluxqueue.io/run-seconds"), "250ms");
  const kubernetes::Amounts expected = {
      {"cpu", 1500}, {"fluxqueue.io/gpu-milli", 460}, {"memory", 1 << 20}};
  ASSERT_EQ(job->pod.containers.size(), 1);
  EXPECT_EQ(job->pod.containers[0].requests, expected);
  EXPECT_EQ(job->pod.containers[0].limits, (kubernetes::Amounts{{"fluxqueue.io/gpu-milli", 460}}));
  EXPECT_EQ(job->pod.node_selector.at("fluxqueue.io/load"), "load");
  ASSERT_TRUE(job->pod.required_node_terms.has_value());
  const auto& expression = job->pod.required_node_terms->at(0).expressions.at(0);
  EXPECT_EQ(expression.key, "fluxqueue.io/gpu-model");
  EXPECT_EQ(expression.values, (std::vector<std::string>{"P100", "T4"}));
  const auto keys = kubernetes::ParseUserKeys(*job);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->queue, "fast");
}

TEST(LoadObjectsTest, SeveralSlotsAreAnIndexedJob) {
  PlannedJob planned = GpuJob();
  planned.job.slots = 32;
  planned.job.gpu_models.clear();
  const auto job = kubernetes::ParseJob(JobObject(planned, "load", ""));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->indexed);
  EXPECT_EQ(job->Slots(), 32);
  EXPECT_FALSE(job->pod.required_node_terms.has_value());
  EXPECT_TRUE(job->meta.labels.empty());
}

TEST(LoadObjectsTest, ANodeIsReadyWithWhatItOffers) {
  const trace::TraceNode node = {
      "n", {{"cpu", 96000}, {"fluxqueue.io/gpu-milli", 8000}, {"memory", 1024}}, "G2"};
  const auto read = kubernetes::ParseNode(NodeObject(node, "load", "2026-01-31T12:00:00.000Z"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->ready);
  kubernetes::Amounts expected = node.offers;
  expected["pods"] = 110;
  EXPECT_EQ(read->allocatable, expected);
  EXPECT_EQ(read->meta.labels.at("fluxqueue.io/gpu-model"), "G2");
  EXPECT_EQ(read->meta.annotations.at("kwok.x-k8s.io/node"), "fake");
}

TEST(LoadObjectsTest, ANamespaceIsManagedOrNot) {
  const auto managed = kubernetes::ParseNamespace(NamespaceObject("x", true));
  const auto plain = kubernetes::ParseNamespace(NamespaceObject("x", false));
  ASSERT_TRUE(managed.ok() && plain.ok());
  EXPECT_EQ(managed->labels.at("fluxqueue.io/managed"), "true");
  EXPECT_EQ(plain->labels.count("fluxqueue.io/managed"), 0);
}

}  // namespace
}  // namespace fluxqueue::load
