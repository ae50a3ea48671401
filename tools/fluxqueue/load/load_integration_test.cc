// The loader on a real control plane, with kube-scheduler in Fluxqueue's place.
#include <memory>
#include <stop_token>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/config.h"
#include "libs/testing/mini_cluster.h"
#include "libs/trace/openb.h"
#include "libs/trace/swf.h"

#include "tools/fluxqueue/load/cluster_loader.h"
#include "tools/fluxqueue/load/load_plan.h"
#include "tools/fluxqueue/load/trace_file.h"

namespace fluxqueue::load {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Data(const std::string& name) {
  return std::string(FLUXQUEUE_SOURCE_DIR) + "/tests/data/" + name;
}

class LoadIntegrationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto cluster = testing::MiniCluster::Start();
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = std::move(*cluster);
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override {
    ASSERT_NE(cluster_, nullptr);
    auto config = kubernetes::ReadKubeconfig(cluster_->kubeconfig());
    ASSERT_TRUE(config.ok()) << config.status();
    client_ = std::make_unique<kubernetes::Client>(*config);
  }

  absl::StatusOr<LoadReport> Run(const Plan& plan,
                                 LoaderOptions options,
                                 std::stop_token stop = {}) {
    options.managed = false;
    return ClusterLoader(*client_, clock_, plan, options).Run(stop);
  }

  // What is left of a load in the cluster.
  std::string Left(const std::string& space) {
    std::string left;
    for (const char* kind : {"nodes", "namespaces"}) {
      const auto found =
          cluster_->Kubectl({"get", kind, "-o", "name", "-l", "fluxqueue.io/load=" + space});
      EXPECT_TRUE(found.ok()) << found.status();
      left += found.value_or("");
    }
    return left;
  }

  static Plan Swf(double speed) {
    const auto text = ReadTraceFile(Data("nasa_slice.swf"));
    EXPECT_TRUE(text.ok()) << text.status();
    auto trace = trace::ParseSwf(*text, {"nasa_slice.swf"});
    EXPECT_TRUE(trace.ok()) << trace.status();
    return MakePlan(std::move(*trace), ProcessorNodes("p", 16), speed);
  }

  static std::unique_ptr<testing::MiniCluster> cluster_;
  RealClock clock_;
  std::unique_ptr<kubernetes::Client> client_;
};

std::unique_ptr<testing::MiniCluster> LoadIntegrationTest::cluster_;

TEST_F(LoadIntegrationTest, AnSwfLogRunsToItsEndAndLeavesNothing) {
  const Plan plan = Swf(100);
  const auto report = Run(plan, {.space = "swf", .timeout = std::chrono::minutes(2)});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->Good()) << FormatTable(*report);
  EXPECT_EQ(report->succeeded, plan.jobs.size());
  EXPECT_GT(report->jobs_per_s, 0);
  EXPECT_TRUE(report->wait_p99_s.has_value());
  ASSERT_EQ(report->utilisation.size(), 1);
  EXPECT_GT(report->utilisation[0].second, 0.01);
  EXPECT_LE(report->utilisation[0].second, 1.0);
  EXPECT_THAT(Left("swf"), IsEmpty());
}

TEST_F(LoadIntegrationTest, WhatDoesNotEndInTimeIsNamed) {
  trace::Trace trace;
  trace.jobs = {{"quick", 0, 0.1, 1, {{"cpu", 1000}}, {}},
                {"gpu", 0, 0.1, 1, {{std::string(trace::kGpuMilli), 500}}, {"H100"}}};
  const Plan plan = MakePlan(trace, ProcessorNodes("q", 1), 1);
  // Long enough for the one that can run, whatever else the machine does.
  const auto report =
      Run(plan, {.space = "late", .keep = true, .timeout = std::chrono::seconds(20)});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->Good());
  EXPECT_EQ(report->succeeded, 1) << FormatTable(*report);
  ASSERT_EQ(report->not_ended.size(), 1);
  EXPECT_EQ(report->not_ended[0].job, "gpu");
  EXPECT_THAT(report->not_ended[0].reason, HasSubstr("its Job: 1 active"));

  // It was kept, and another one under its name is refused.
  EXPECT_THAT(Left("late"), HasSubstr("node/q-0"));
  const auto again = Run(plan, {.space = "late"});
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
  EXPECT_THAT(Message(again.status()), HasSubstr("kubectl delete namespace late"));
}

TEST_F(LoadIntegrationTest, AStopTakesAwayWhatWasMade) {
  std::stop_source stop;
  stop.request_stop();
  const auto report = Run(Swf(1), {.space = "stopped"}, stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(report.status())) << report.status();
  EXPECT_THAT(Left("stopped"), IsEmpty());
}

TEST_F(LoadIntegrationTest, AClusterWithoutFluxqueueSaysSo) {
  const Plan plan = Swf(1);
  const auto report = ClusterLoader(*client_, clock_, plan, {.space = "none"}).Run({});
  EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(report.status()), HasSubstr("--unmanaged"));
}

}  // namespace
}  // namespace fluxqueue::load
