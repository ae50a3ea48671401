// A queue is a contract: queues on a whole system of three nodes, with the settings of a new
// installation. No job freezes another queue, what nothing can run now waits, and the first of a
// queue has its turn however many small jobs of other queues there are.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

class QueuesTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartSystem({.nodes = 3}); }

  void SetUp() override {
    SystemTest::SetUp();
    const auto names = system_->Kubectl(
        {"get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}"});
    ASSERT_TRUE(names.ok()) << Message(names.status());
    nodes_.clear();
    for (size_t at = 0; at < names->size();) {
      const size_t end = names->find('\n', at);
      nodes_.push_back(names->substr(at, end - at));
      at = end == std::string::npos ? end : end + 1;
    }
    ASSERT_EQ(nodes_.size(), 3U);
  }

  static std::string On(const std::string& node) {
    return "      nodeSelector: {kubernetes.io/hostname: " + node + "}\n";
  }
  static std::string In(const std::string& queue, const std::string& duration) {
    return fmt::format(
        "{{fluxqueue.io/queue: {}, fluxqueue.io/duration: \"{}\"}}", queue, duration);
  }
  // Takes whole nodes.
  void Submit(const std::string& queue,
              const std::string& name,
              const std::string& duration,
              const std::string& runs,
              const std::string& pod_spec = "",
              int nodes = 1) {
    Apply(JobYaml(name,
                  {.parallelism = nodes,
                   .completions = nodes,
                   .cpu = "7",
                   .run_seconds = runs,
                   .annotations = In(queue, duration),
                   .pod_spec = pod_spec}));
  }

  // By the API server.
  void ExpectConfigRefused(const std::string& spec, const std::string& names) {
    const auto refused = system_->Kubectl(
        {"create", "-f", "-"},
        "apiVersion: fluxqueue.io/v1alpha1\nkind: FluxQueue\nmetadata: {name: bad}\nspec: " + spec);
    EXPECT_FALSE(refused.ok()) << spec;
    EXPECT_THAT(Message(refused.status()), HasSubstr(names));
  }

  std::vector<std::string> nodes_;
};

TEST_F(QueuesTest, AJobThatCannotStartFreezesNoOtherQueue) {
  MakeQueue("a", "{strategy: fcfs}");
  MakeQueue("b", "{strategy: easy}");
  MakeQueue("c", "{}");
  // Without an end, for as long as this test takes.
  Submit("c", "endless", "0", "600", On(nodes_[0]));
  ExpectState("endless", "Running");
  Submit("a", "a-wants", "60s", "1", On(nodes_[0]));
  ExpectReason("a-wants", "Busy");
  // Its own line has stopped, as fcfs says.
  Submit("a", "a-behind", "60s", "1", On(nodes_[1]));
  // A promise of b is kept beside it.
  Submit("b", "b-long", "6s", "6", On(nodes_[1]));
  ExpectState("b-long", "Running");
  Submit("b", "b-promised", "5s", "1", On(nodes_[1]));
  ExpectReason("b-promised", "Reserved");
  const int64_t promised = StartOf("b-promised");
  // Empty nodes are for whoever asks, of this namespace and of others.
  Submit("b", "b-empty", "3s", "1", On(nodes_[2]));
  ExpectState("b-empty", "Succeeded");
  Apply(JobYaml("plain", {.run_seconds = "0.5"}));
  ExpectState("plain", "Succeeded");
  ExpectState("b-promised", "Succeeded");
  EXPECT_LT(StartOf("b-promised"), promised + 4000);
  // What it was told is kept, to the end.
  const std::string ledger =
      "queue.promises p JOIN queue.jobs j USING (job_id) WHERE j.name = "
      "'b-promised' AND NOT p.firm AND ";
  EXPECT_EQ(Count(ledger + "p.before_ms IS NULL AND p.start_ms IS NOT NULL"), 1);
  EXPECT_EQ(Count(ledger + "p.kept"), 1);
  EXPECT_EQ(StateOf("a-wants"), "Pending");
  EXPECT_EQ(StateOf("a-behind"), "Pending");
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "-n", "e2e", "endless"}).ok());
  ExpectState("a-wants", "Succeeded");
  ExpectState("a-behind", "Succeeded");
}

TEST_F(QueuesTest, JobsWaitWhileAllNodesAreTainted) {
  for (int i = 0; i < 3; ++i)
    Submit("default", fmt::format("fills-{}", i), "1h", i == 0 ? "5" : "9");
  for (int i = 0; i < 3; ++i) ExpectState(fmt::format("fills-{}", i), "Running");
  for (int i = 0; i < 3; ++i) Submit("default", fmt::format("waits-{}", i), "10s", "0.5");
  ExpectReason("waits-0", "Reserved");
  ASSERT_TRUE(system_->Kubectl({"taint", "nodes", "--all", "maintenance=true:NoSchedule"}).ok());
  ExpectState("fills-0", "Succeeded");
  for (int i = 0; i < 3; ++i) {
    ExpectReason(fmt::format("waits-{}", i), "Unsatisfiable");
    EXPECT_EQ(StateOf(fmt::format("waits-{}", i)), "Pending");
    EXPECT_THAT(MessageOf(fmt::format("waits-{}", i)), HasSubstr("maintenance"));
  }
  // Longer than the 5 s after which such jobs were once rejected for ever.
  for (int i = 1; i < 3; ++i) ExpectState(fmt::format("fills-{}", i), "Succeeded");
  ASSERT_TRUE(system_->Kubectl({"taint", "nodes", "--all", "maintenance-"}).ok());
  for (int i = 0; i < 3; ++i) ExpectState(fmt::format("waits-{}", i), "Succeeded");
}

// A device plugin that restarts takes its resource from the node for a while.
TEST_F(QueuesTest, AJobWaitsForADeviceThatIsAway) {
  const auto set = [this](const std::string& devices) {
    return system_->Kubectl(
        {"patch",
         "node",
         nodes_[0],
         "--subresource=status",
         "-p",
         fmt::format(R"({{"status": {{"capacity": {{"example.com/dongle": "{0}"}},
                                    "allocatable": {{"example.com/dongle": "{0}"}}}}}})",
                     devices)});
  };
  ASSERT_TRUE(set("0").ok());
  Apply(JobYaml("dongle", {.limits = "{example.com/dongle: 1}"}));
  ExpectReason("dongle", "Unsatisfiable");
  ASSERT_TRUE(set("1").ok());
  ExpectState("dongle", "Succeeded");
}

TEST_F(QueuesTest, TheFirstOfAQueueHasItsTurnInAStreamOfSmallJobs) {
  MakeQueue("patient", "{strategy: fcfs, reserveAfter: 2s}");
  MakeQueue("stream", "{strategy: easy, weight: 100}");
  constexpr int kSmall = 45;
  std::string stream;
  for (int i = 0; i < kSmall; ++i) {
    // Of lengths that differ, so that nodes come free one after the other.
    stream += JobYaml(fmt::format("small-{}", i),
                      {.cpu = "7",
                       .run_seconds = fmt::format("{:.1f}", 1 + i % 3 * 0.7),
                       .annotations = In("stream", "3s")});
  }
  Apply(stream);
  Submit("patient", "wide", "5s", "0.5", "", 3);
  ExpectState("wide", "Succeeded");
  EXPECT_GT(Count("queue.jobs WHERE name LIKE 'small-%' AND live"), 0);
  ExpectState(fmt::format("small-{}", kSmall - 1), "Succeeded", std::chrono::seconds(120));
}

TEST_F(QueuesTest, ARejectedJobRunsWhenItIsHandedInAgain) {
  MakeQueue("impatient", "{rejectAfter: 1s}");
  const std::string wants = "      nodeSelector: {disk: fast}\n";
  Submit("impatient", "by-command", "10s", "0.5", wants);
  Submit("impatient", "by-hand", "10s", "0.5", wants, 2);
  Submit("impatient", "moved", "10s", "0.5", wants);
  Apply(R"(apiVersion: v1
kind: Pod
metadata:
  name: alone
  namespace: e2e
  labels: {fluxqueue.io/queue: impatient}
  annotations: {fluxqueue.io/run-seconds: "0.5"}
spec:
  restartPolicy: Never
  nodeSelector: {disk: fast}
  containers: [{name: main, image: busybox}]
)");
  for (const char* name : {"by-command", "by-hand", "moved", "alone"}) {
    ExpectState(name, "Rejected");
  }
  const auto retry = [this](const std::string& job) {
    const auto said = system_->Fluxqueue({"retry", job});
    EXPECT_TRUE(said.ok()) << Message(said.status());
    return said.ok() ? said->output : "";
  };
  // Nothing has changed: it is rejected again, and is not handed in a second time for one value.
  EXPECT_THAT(retry("e2e/by-command"), HasSubstr("attempt 2: "));
  ExpectState("by-command", "Rejected");
  EXPECT_EQ(Field("by-command", "attempt"), "2");

  ASSERT_TRUE(system_->Kubectl({"label", "nodes", nodes_[0], nodes_[1], "disk=fast"}).ok());
  EXPECT_THAT(retry("e2e/by-command"), HasSubstr("attempt 3"));
  EXPECT_THAT(retry("e2e/alone"), HasSubstr("attempt 2"));
  ASSERT_TRUE(
      system_->Kubectl({"annotate", "job/by-hand", "-n", "e2e", "fluxqueue.io/retry=x"}).ok());
  ASSERT_TRUE(
      system_
          ->Kubectl(
              {"annotate", "--overwrite", "job/moved", "-n", "e2e", "fluxqueue.io/queue=default"})
          .ok());
  for (const char* name : {"by-command", "by-hand", "moved", "alone"}) {
    ExpectState(name, "Succeeded");
  }
  EXPECT_EQ(Field("by-hand", "attempt"), "2");
  EXPECT_EQ(Field("moved", "queue"), "default");
  EXPECT_THAT(retry("e2e/moved"), HasSubstr("it is Succeeded: only what is Rejected can be"));
}

TEST_F(QueuesTest, TheAccountOfTheCommandLineChangesNothingButTheKeyRetry) {
  const auto applied = system_->Kubectl({"apply", "-f", FLUXQUEUE_SOURCE_DIR "/k8s/rbac/cli.yaml"});
  ASSERT_TRUE(applied.ok()) << Message(applied.status());
  Apply(JobYaml("guarded", {.annotations = "{fluxqueue.io/hold: \"true\"}"}));
  ExpectReason("guarded", "Held");
  const auto change = [this](const std::string& what, const std::string& key) {
    return system_
        ->Kubectl({"--as=system:serviceaccount:fluxqueue-system:fluxqueue-cli",
                   what,
                   "--overwrite",
                   "job/guarded",
                   "-n",
                   "e2e",
                   key})
        .status();
  };
  // It takes the API server a moment to know its policy.
  absl::Status refused;
  const absl::Status known = system_->WaitFor(
      [&] {
        refused = change("annotate", "note=x");
        return !refused.ok();
      },
      std::chrono::seconds(30),
      [&] { return "the policy to be known"; });
  ASSERT_TRUE(known.ok()) << Message(known);
  EXPECT_THAT(Message(refused), HasSubstr("changes nothing of a workload but the annotation"));
  for (const auto& [what, key] : {std::pair("label", "fluxqueue.io/priority=9"),
                                  std::pair("annotate", "fluxqueue.io/hold-"),
                                  std::pair("annotate", "fluxqueue.io/hold=false")}) {
    EXPECT_FALSE(change(what, key).ok()) << key;
  }
  for (const char* key : {"fluxqueue.io/retry=1", "fluxqueue.io/retry=2", "fluxqueue.io/retry-"}) {
    const absl::Status allowed = change("annotate", key);
    EXPECT_TRUE(allowed.ok()) << Message(allowed);
  }
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "-n", "e2e", "guarded"}).ok());
}

// By its own activeDeadlineSeconds, which uses up no backoffLimit.
TEST_F(QueuesTest, AJobIsEndedForItsTime) {
  MakeQueue("bound", "{enforceDuration: end, enforceGrace: 1s, maxDuration: 1h}");
  // Its user raises its deadline, which nothing forbids.
  Submit("bound", "raises", "2s", "600");
  ExpectState("raises", "Running");
  ASSERT_TRUE(system_
                  ->Kubectl({"patch",
                             "job",
                             "-n",
                             "e2e",
                             "raises",
                             "-p",
                             "{\"spec\": {\"activeDeadlineSeconds\": 600}}"})
                  .ok());
  Submit("bound", "runs-over", "2s", "600");
  Submit("bound", "in-time", "20s", "1");
  ExpectState("runs-over", "Failed");
  ExpectState("in-time", "Succeeded");
  const auto job = [this](const std::string& name, const std::string& path) {
    const auto read =
        system_->Kubectl({"get", "job", "-n", "e2e", name, "-o", "jsonpath={" + path + "}"});
    EXPECT_TRUE(read.ok()) << Message(read.status());
    return read.value_or("");
  };
  EXPECT_EQ(job("runs-over", ".status.conditions[?(@.type==\"Failed\")].reason"),
            "DeadlineExceeded");
  EXPECT_EQ(job("runs-over", ".spec.activeDeadlineSeconds"), "3");
  EXPECT_EQ(job("in-time", ".spec.activeDeadlineSeconds"), "21");
  // Once Kubernetes has had its time.
  ExpectState("raises", "Failed");
  EXPECT_EQ(ReasonOf("raises"), "Overran");
}

TEST_F(QueuesTest, OfAJobThatOverrunsItIsSaid) {
  MakeQueue("lenient", "{enforceGrace: 1s}");
  Submit("lenient", "lingers", "2s", "8");
  ExpectReason("lingers", "Overran");
  EXPECT_EQ(StateOf("lingers"), "Running");
  ExpectState("lingers", "Succeeded");
}

TEST_F(QueuesTest, ANewQueueSaysWhoMayUseIt) {
  ExpectConfigRefused("{strategy: easy}", "a new FluxQueue says who may use it");
  // One of before that rule can be changed and stays open.
  MakeQueue("open", "{}");
  const auto changed =
      system_->Kubectl({"patch",
                        "fluxqueue",
                        "open",
                        "--type=json",
                        "--patch",
                        R"([{"op": "remove", "path": "/spec/namespaceSelector"}])"});
  EXPECT_TRUE(changed.ok()) << Message(changed.status());
  Submit("open", "in-the-open", "60s", "1");
  ExpectState("in-the-open", "Succeeded");
}

TEST_F(QueuesTest, AQueueThatEndsJobsWantsABound) {
  const auto made = system_->Kubectl({"apply", "-f", "-"},
                                     R"(apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: boundless}
spec: {enforceDuration: end}
)");
  EXPECT_FALSE(made.ok());
  EXPECT_THAT(std::string(Message(made.status())),
              HasSubstr("allowed with end is a maxDuration above 0"));
}

// The log that the tests before this one have written.
// An account: whose jobs a queue takes, what one of them may ask for, and what all may use.
TEST_F(QueuesTest, AnAccountHasMembersClassesAndBudgets) {
  MakeQueue("lab",
            "{members: {namespaces: [e2e]}, defaultQos: normal, qos: [{name: normal, maxPriority: "
            "5}, {name: high, maxPriority: 50, members: {users: [ann]}}], "
            "budgets: [{resource: cpu, hours: 0}]}");
  MakeQueue("lab-train", "{parent: lab, limits: {perJob: {cpu: 4}}}");
  MakeQueue("others", "{members: {users: [ann]}}");
  const auto refusal = [this](const std::string& annotations) {
    const auto refused = system_->Kubectl(
        {"create", "-f", "-"}, JobYaml("refused", {.annotations = "{" + annotations + "}"}));
    EXPECT_FALSE(refused.ok());
    return Message(refused.status());
  };
  EXPECT_THAT(refusal("fluxqueue.io/queue: others"),
              HasSubstr("FluxQueue 'others' takes jobs of its members"));
  EXPECT_THAT(refusal("fluxqueue.io/queue: lab-train, fluxqueue.io/priority: \"6\""),
              HasSubstr("6 is more than class 'normal' of QOS allows; allowed: up to 5"));
  EXPECT_THAT(refusal("fluxqueue.io/queue: lab-train, fluxqueue.io/qos: high"),
              HasSubstr("class 'high' is for its members"));
  EXPECT_THAT(refusal("fluxqueue.io/queue: lab-train, fluxqueue.io/qos: gold"),
              HasSubstr("has no such class of QOS; allowed: normal, high"));

  Apply(JobYaml("large", {.cpu = "5", .annotations = In("lab-train", "10s")}));
  ExpectReason("large", "Limit");
  EXPECT_THAT(MessageOf("large"),
              HasSubstr("it asks for cpu 5, and a job of queue lab-train may ask for at most 4"));
  Apply(JobYaml("spends", {.cpu = "2", .annotations = In("lab-train", "10s")}));
  ExpectReason("spends", "Limit");
  EXPECT_THAT(MessageOf("spends"),
              HasSubstr("queue lab has used up its budget of 0 cpu-hours for this month (UTC)"));
  MakeQueue("lab", "{members: {namespaces: [e2e]}, budgets: [{resource: cpu, hours: 1000}]}");
  ExpectState("spends", "Succeeded");
  EXPECT_EQ(StateOf("large"), "Pending");
  MakeQueue("lab-train", "{parent: lab}");
  ExpectState("large", "Succeeded");

  const auto told = [this](const std::vector<std::string>& command) {
    const auto result = system_->Fluxqueue(command);
    EXPECT_TRUE(result.ok() && result->exit_code == 0);
    return result.ok() ? result->output : "";
  };
  EXPECT_THAT(told({"queues"}), HasSubstr("cpu 0 of 1000 h/month"));
  EXPECT_THAT(told({"report", "--by", "account,queue", "-o", "csv"}), HasSubstr("lab,lab-train,2"));
  EXPECT_THAT(told({"stats"}), ::testing::ContainsRegex("lab-train +[1-9]"));
  ExpectConfigRefused("{budgets: [{resource: gpu, hours: -1}]}", "budgets[0].hours");
  ExpectConfigRefused("{users: [{name: ann, weight: 1001}]}", "users[0].weight");
  ExpectConfigRefused("{weight: 3000000000}", "spec.weight: Invalid value: 3000000000");
  ExpectConfigRefused("{maxDuration: 10000000h}",
                      "spec.maxDuration: Invalid value: \"string\": '10000000h' is more than a "
                      "century; allowed is up to 876000h");
  ExpectConfigRefused("{defaultDuration: 200y}", "spec.defaultDuration: Invalid value: \"200y\"");
  ExpectConfigRefused("{enforceDuration: end, maxDuration: 0h0m}",
                      "enforceDuration: 'end' beside maxDuration: '0h0m', which is without limit; "
                      "allowed with end is a maxDuration above 0");
}

TEST_F(QueuesTest, TheSimulatorDecidesAsTheServicesDid) {
  ExpectSimulatorAgrees();
}

}  // namespace
}  // namespace fluxqueue::e2e
