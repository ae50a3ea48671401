// In which order jobs start, and what holds them back: limits, fair share, dependencies, begins,
// moves and holds, on a whole system.
#include <chrono>
#include <map>
#include <vector>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

std::string InQueue(const std::string& queue, const std::string& more = "") {
  return fmt::format("{{fluxqueue.io/queue: {}{}}}", queue, more.empty() ? "" : ", " + more);
}

class OrderTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartSystem({.nodes = 2}); }

  // As another user, whom the API server believes to be that.
  void ApplyAs(const std::string& user, const std::string& yaml) {
    const auto applied =
        system_->Kubectl({"create", "-f", "-", "--as", user, "--as-group", "system:masters"}, yaml);
    ASSERT_TRUE(applied.ok()) << Message(applied.status());
  }

  void Fluxqueue(const std::vector<std::string>& arguments) {
    const auto done = system_->Fluxqueue(arguments);
    ASSERT_TRUE(done.ok()) << Message(done.status());
    EXPECT_EQ(done->exit_code, 0) << done->output;
  }

  // By the log's time, to the millisecond; a real start is told in whole seconds.
  int64_t AllocatedAt(const std::string& name) {
    const auto at = system_->QueryOne(
        fmt::format("SELECT min(e.time_ms) FROM queue.job_events e JOIN queue.jobs j "
                    "ON j.job_id = e.job_id WHERE j.name = '{}' AND e.state = 'Allocated'",
                    name));
    return at.ok() && !at->empty() ? std::stoll(*at) : 0;
  }
};

TEST_F(OrderTest, ALimitOfEachUserHoldsAndLetsGo) {
  MakeQueue("limited", "{limits: {perUser: {runningJobs: 1}}}");
  ApplyAs("ann", JobYaml("ann-1", {.run_seconds = "60", .annotations = InQueue("limited")}));
  ExpectState("ann-1", "Running");
  ApplyAs("ann", JobYaml("ann-2", {.annotations = InQueue("limited")}));
  ExpectReason("ann-2", "Limit");
  EXPECT_EQ(MessageOf("ann-2"), "user ann runs 1 of at most 1 jobs in queue limited");
  // Of another user it is none.
  ApplyAs("bob", JobYaml("bob-1", {.annotations = InQueue("limited")}));
  ExpectState("bob-1", "Succeeded");
  EXPECT_EQ(StateOf("ann-2"), "Pending");
  Fluxqueue({"cancel", "e2e/ann-1"});
  ExpectState("ann-2", "Succeeded");
}

TEST_F(OrderTest, ALimitOfEachNamespaceCountsWhatIsHeld) {
  MakeQueue("spaces", "{limits: {perNamespace: {cpu: \"1\"}}}");
  Apply(JobYaml("half", {.run_seconds = "60", .annotations = InQueue("spaces")}));
  ExpectState("half", "Running");
  Apply(JobYaml("whole", {.cpu = "1", .annotations = InQueue("spaces")}));
  ExpectReason("whole", "Limit");
  EXPECT_EQ(MessageOf("whole"),
            "namespace e2e holds cpu 500m of at most 1 in queue spaces, and this job asks for 1");
  Fluxqueue({"cancel", "half"});
  ExpectState("whole", "Succeeded");
}

TEST_F(OrderTest, EachLimitOfAQueueHoldsAndLetsGo) {
  struct Case {
    std::string queue;
    std::string limits;
    std::string said;
    std::string parent;
  };
  // The nodes have no GPUs: one gets some.
  const auto gpus = system_->Kubectl({"patch",
                                      "node",
                                      "node-0",
                                      "--subresource=status",
                                      "-p",
                                      R"({"status":{"capacity":{"nvidia.com/gpu":"4"},)"
                                      R"("allocatable":{"nvidia.com/gpu":"4"}}})"},
                                     "");
  ASSERT_TRUE(gpus.ok()) << Message(gpus.status());
  for (const Case& c : std::vector<Case>{
           {"of-jobs", "runningJobs: 1", "runs 1 of at most 1 jobs", ""},
           {"of-cores", "cpu: \"1\"", "holds cpu 700m of at most 1", ""},
           {"of-memory", "memory: 100Mi", "holds memory 64Mi of at most 100Mi", ""},
           {"of-gpus", "gpu: 1", "holds gpu 1 of at most 1", ""},
           {"above", "runningJobs: 1", "queue above runs 1 of at most 1 jobs", "below"}}) {
    MakeQueue(c.queue, fmt::format("{{limits: {{queue: {{{}}}}}}}", c.limits));
    if (!c.parent.empty()) MakeQueue(c.parent, fmt::format("{{parent: {}}}", c.queue));
    const std::string queue = c.parent.empty() ? c.queue : c.parent;
    JobOptions options{.cpu = "700m",
                       .run_seconds = "60",
                       .annotations = InQueue(queue),
                       .limits = "{nvidia.com/gpu: 1}"};
    Apply(JobYaml(c.queue + "-1", options));
    ExpectState(c.queue + "-1", "Running");
    options.run_seconds = "0.2";
    Apply(JobYaml(c.queue + "-2", options));
    ExpectReason(c.queue + "-2", "Limit");
    EXPECT_THAT(MessageOf(c.queue + "-2"), HasSubstr(c.said));
    Fluxqueue({"cancel", "e2e/" + c.queue + "-1"});
    ExpectState(c.queue + "-2", "Succeeded");
  }
}

TEST_F(OrderTest, LimitsChangeLive) {
  for (const char* limit : {"queuedJobs", "gpuHours"}) {
    const std::string name = std::string("changes-") + (limit[0] == 'g' ? "hours" : "line");
    MakeQueue(name, fmt::format("{{limits: {{queue: {{{}: 0}}}}}}", limit));
    Apply(JobYaml(name, {.annotations = InQueue(name), .limits = "{nvidia.com/gpu: 1}"}));
    ExpectReason(name, "Limit");
    MakeQueue(name, fmt::format("{{limits: {{queue: {{{}: 1}}}}}}", limit));
    ExpectState(name, "Succeeded");
  }
}

TEST_F(OrderTest, WhoWaitsLongGainsOnPriorities) {
  MakeQueue("ages", "{agingPeriod: 1s, limits: {queue: {runningJobs: 1}}}");
  Apply(JobYaml("ages-runs", {.run_seconds = "60", .annotations = InQueue("ages")}));
  ExpectState("ages-runs", "Running");
  Apply(JobYaml("ages-old", {.annotations = InQueue("ages")}));
  ExpectReason("ages-old", "Limit");
  const absl::Status aged = system_->WaitFor(
      [&] {
        return Count(
                   "queue.jobs WHERE name = 'ages-old' AND "
                   "created_ms < extract(epoch FROM now()) * 1000 - 4000") == 1;
      },
      std::chrono::seconds(30),
      [] { return "ages-old to have waited for 4 s"; });
  ASSERT_TRUE(aged.ok()) << Message(aged);
  Apply(JobYaml("ages-new", {.annotations = InQueue("ages", "fluxqueue.io/priority: \"2\"")}));
  ExpectState("ages-new", "Pending");
  Fluxqueue({"cancel", "e2e/ages-runs"});
  ExpectState("ages-new", "Succeeded");
  EXPECT_LT(AllocatedAt("ages-old"), AllocatedAt("ages-new"));
}

TEST_F(OrderTest, ChangedByAnnotations) {
  MakeQueue("one", "{limits: {queue: {runningJobs: 1}}}");
  Apply(JobYaml("one-runs", {.run_seconds = "60", .annotations = InQueue("one")}));
  ExpectState("one-runs", "Running");
  for (const char* name : {"one-a", "one-b", "one-c"}) {
    Apply(JobYaml(name, {.annotations = InQueue("one")}));
    ExpectState(name, "Pending");
  }
  // The first of a user's line is told what holds it.
  ExpectReason("one-a", "Limit");
  const auto annotate = [this](const std::string& job, const std::string& key) {
    const auto done =
        system_->Kubectl({"annotate", "--overwrite", "-n", "e2e", "job", job, key}, "");
    ASSERT_TRUE(done.ok()) << Message(done.status());
  };
  annotate("one-c", "fluxqueue.io/cancel=true");
  ExpectState("one-c", "Cancelled");
  annotate("one-b", "fluxqueue.io/priority=5");
  const auto priority = [this] {
    const auto of = system_->QueryOne("SELECT priority FROM queue.jobs WHERE name = 'one-b'");
    return of.ok() ? *of : Message(of.status());
  };
  const absl::Status raised =
      system_->WaitFor([&] { return priority() == "5"; }, std::chrono::seconds(20), priority);
  EXPECT_TRUE(raised.ok()) << Message(raised);
  Fluxqueue({"cancel", "e2e/one-runs"});
  ExpectState("one-a", "Succeeded");
  EXPECT_LT(AllocatedAt("one-b"), AllocatedAt("one-a"));
}

TEST_F(OrderTest, UsersShareAQueueFairly) {
  MakeQueue("fair", "{order: fair-share, halfLife: 1h, limits: {queue: {runningJobs: 1}}}");
  // One at a time: first all of ann's, then all of bob's are submitted.
  std::string of_ann;
  std::string of_bob;
  for (int i = 0; i < 4; ++i) {
    of_ann += JobYaml(fmt::format("fair-ann-{}", i),
                      {.run_seconds = "0.5", .annotations = InQueue("fair")});
    of_bob += JobYaml(fmt::format("fair-bob-{}", i),
                      {.run_seconds = "0.5", .annotations = InQueue("fair")});
  }
  ApplyAs("ann", of_ann);
  ApplyAs("bob", of_bob);
  for (int i = 0; i < 4; ++i) {
    ExpectState(fmt::format("fair-ann-{}", i), "Succeeded");
    ExpectState(fmt::format("fair-bob-{}", i), "Succeeded");
  }
  // The first two of bob's did not wait for the last of ann's.
  EXPECT_LT(StartOf("fair-bob-1"), StartOf("fair-ann-3"));
}

TEST_F(OrderTest, DependenciesByNameInAChain) {
  const auto after = [](const std::string& what) {
    return fmt::format("{{fluxqueue.io/depends-on: \"{}\"}}", what);
  };
  Apply(JobYaml("cleanup", {.annotations = after("afterany:compute")}) +
        JobYaml("compute", {.annotations = after("afterok:prepare")}));
  ExpectReason("compute", "Dependency");
  ExpectReason("cleanup", "Dependency");
  Apply(JobYaml("prepare"));
  ExpectState("cleanup", "Succeeded");
  EXPECT_EQ(StateOf("compute"), "Succeeded");
  EXPECT_LE(StartOf("prepare"), StartOf("compute"));
  EXPECT_LE(StartOf("compute"), StartOf("cleanup"));
  // After its end, and never.
  Apply(JobYaml("late", {.annotations = after("afterok:prepare")}) +
        JobYaml("never", {.annotations = after("afternotok:prepare")}));
  ExpectState("late", "Succeeded");
  ExpectState("never", "Cancelled");
  EXPECT_EQ(ReasonOf("never"), "DependencyNeverSatisfied");
  EXPECT_THAT(MessageOf("never"), HasSubstr("can never come true"));
}

TEST_F(OrderTest, NotBeforeItsBegin) {
  Apply(JobYaml("soon", {.annotations = "{fluxqueue.io/begin: \"+3s\"}"}));
  ExpectReason("soon", "NotYet");
  ExpectState("soon", "Succeeded");
  const auto waited =
      system_->QueryOne("SELECT start_ms - created_ms FROM queue.jobs WHERE name = 'soon'");
  ASSERT_TRUE(waited.ok()) << Message(waited.status());
  EXPECT_GE(std::stoll(*waited), 2000);
  const auto refused = system_->Kubectl(
      {"create", "-f", "-"}, JobYaml("bad", {.annotations = "{fluxqueue.io/begin: tomorrow}"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(Message(refused.status()),
              HasSubstr("fluxqueue.io/begin: \"tomorrow\" is no time to begin at"));
}

TEST_F(OrderTest, HeldMovedAndReleasedByCommands) {
  MakeQueue("closed", "{limits: {queue: {runningJobs: 0}}}");
  MakeQueue("open", "{}");
  Apply(JobYaml("mover", {.annotations = InQueue("closed")}));
  ExpectReason("mover", "Limit");
  Fluxqueue({"hold", "mover"});
  ExpectReason("mover", "Held");
  Fluxqueue({"move", "mover", "open"});
  const auto nowhere = system_->Fluxqueue({"move", "mover", "nowhere"});
  ASSERT_TRUE(nowhere.ok());
  EXPECT_NE(nowhere->exit_code, 0);
  EXPECT_THAT(nowhere->output, HasSubstr("there is no FluxQueue 'nowhere' in pool default"));
  EXPECT_EQ(StateOf("mover"), "Pending");
  Fluxqueue({"release", "mover"});
  ExpectState("mover", "Succeeded");
  const auto queue = system_->QueryOne("SELECT queue FROM queue.jobs WHERE name = 'mover'");
  ASSERT_TRUE(queue.ok());
  EXPECT_EQ(*queue, "open");
}

// Or the limits of a user would be another's, and a job could come and go.
TEST_F(OrderTest, WhatAdmissionWroteIsNotChanged) {
  Apply(JobYaml("kept", {.annotations = "{fluxqueue.io/hold: 'true'}"}));
  ExpectReason("kept", "Held");
  const auto refused = [this](const std::vector<std::string>& command) {
    const auto changed = system_->Kubectl(command, "");
    return changed.ok() ? "it was accepted" : Message(changed.status());
  };
  // A Job without any label is given those of its template.
  EXPECT_EQ(refused({"label", "-n", "e2e", "job", "kept", "team=mine"}), "it was accepted");
  EXPECT_THAT(refused({"label", "-n", "e2e", "job", "kept", "fluxqueue.io/held-"}),
              HasSubstr("the label fluxqueue.io/held is Fluxqueue's"));
  EXPECT_THAT(
      refused({"annotate", "-n", "e2e", "--overwrite", "job", "kept", "fluxqueue.io/user=bob"}),
      HasSubstr("says who made the object, and cannot be changed"));
  EXPECT_THAT(refused({"annotate", "-n", "e2e", "job", "kept", "fluxqueue.io/user-"}),
              HasSubstr("says who made the object, and cannot be changed"));
  Fluxqueue({"release", "kept"});
  ExpectState("kept", "Succeeded");
}

}  // namespace
}  // namespace fluxqueue::e2e
