// Fluxqueue goes for good (deploy/docs/uninstall.md): what it held is let go of, but not what
// somebody else holds, and pods that name its scheduler are placed by a kube-scheduler of that
// name.
#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/testing/shell.h"
#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr const char* kVolume =
    "volumes: [{name: data, persistentVolumeClaim: {claimName: claim}}]";

// `more`: of its spec.
std::string PodYaml(const std::string& name, const std::string& more = "restartPolicy: Never") {
  return fmt::format(R"(apiVersion: v1
kind: Pod
metadata: {{name: {}, namespace: e2e}}
spec:
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: "2"}}}}}}]
  {}
)",
                     name,
                     more);
}

constexpr const char* kWeb = R"(apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: e2e}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: busybox, resources: {requests: {cpu: "2"}}}]}
)";

class UninstallTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 3, .sections = {{"admission", "hold_pods: 1\n"}}});
  }

  // Nothing is promised any more when it is over.
  void TearDown() override {
    if (system_ != nullptr && HasFailure()) fmt::print("bundle: {}\n", system_->SaveBundle());
  }

  static std::string Gang(const std::string& name, JobOptions options = {}) {
    options.parallelism = options.completions = 2;
    options.cpu = "2";
    options.run_seconds = "3600";
    return JobYaml(name, options);
  }

  static std::string Kube(const std::vector<std::string>& arguments,
                          const std::string& input = "") {
    const auto said = system_->Kubectl(arguments, input);
    EXPECT_TRUE(said.ok()) << Message(said.status());
    return said.value_or("");
  }
  static std::string Of(const std::string& what, const std::string& path) {
    return Kube({"get", what, "-n", "e2e", "-o", "jsonpath={" + path + "}"});
  }
  static std::string Suspended() {
    return Kube({"get",
                 "jobs",
                 "-n",
                 "e2e",
                 "-o",
                 "jsonpath={.items[?(@.spec.suspend==true)].metadata.name}"});
  }

  // What the command says of each object: its fate by name, without what is behind a dash in those
  // of controllers' pods. `*report`: all that it says.
  // `kubeconfig`: as whom; empty: the system's administrator.
  static std::map<std::string, std::string> Uninstall(bool yes,
                                                      int exit_code,
                                                      json* report,
                                                      const std::string& kubeconfig = "") {
    std::vector<std::string> words = {"uninstall", "--release-workloads", "-o", "json"};
    if (yes) words.emplace_back("--yes");
    if (!kubeconfig.empty()) words.push_back("--kubeconfig=" + kubeconfig);
    const auto said = system_->Fluxqueue(words);
    EXPECT_TRUE(said.ok()) << Message(said.status());
    if (!said.ok()) return {};
    EXPECT_EQ(said->exit_code, exit_code) << said->output;
    *report = json::parse(said->output, nullptr, false);
    EXPECT_TRUE(report->is_object()) << said->output;
    std::map<std::string, std::string> fates;
    for (const json& object : report->value("objects", json::array())) {
      const auto name = object["name"].get<std::string>();
      const auto owner = object["owner"].get<std::string>();
      fates[owner.empty() ? name : owner.substr(0, owner.find_first_of("-", owner.find(' ')))] =
          object["fate"].get<std::string>();
      EXPECT_EQ(object["error"], "") << name;
    }
    return fates;
  }

  // Of the pods with this selector so many have a node.
  void ExpectBound(const std::string& selector, int pods) {
    const auto bound = [&] {
      const std::string nodes = Kube({"get",
                                      "pods",
                                      "-n",
                                      "e2e",
                                      "-l",
                                      selector,
                                      "-o",
                                      "jsonpath={range .items[*].spec.nodeName}{\"bound \"}{end}"});
      return std::count(nodes.begin(), nodes.end(), ' ');
    };
    const absl::Status reached = system_->WaitFor(
        [&] { return bound() == pods; },
        seconds(60),
        [&] { return fmt::format("{} of {} pods {} are bound", bound(), pods, selector); });
    EXPECT_TRUE(reached.ok()) << Message(reached);
  }
  void ExpectBoundPod(const std::string& name) {
    const absl::Status reached =
        system_->WaitFor([&] { return !Of("pod/" + name, ".spec.nodeName").empty(); },
                         seconds(60),
                         [&] { return "pod " + name + " is not bound"; });
    EXPECT_TRUE(reached.ok()) << Message(reached);
  }

  static std::string ClusterFolder() { return system_->folder() + "/cluster"; }
  // Of tools/lib/proc.sh, in the cluster's folder.
  static void Proc(const std::string& function, const std::vector<std::string>& words) {
    const std::string lib = std::string(FLUXQUEUE_SOURCE_DIR) + "/tools/lib";
    std::vector<std::string> arguments = {ClusterFolder()};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const auto ran =
        testing::Run(fmt::format("bash -euc '. {0}/log.sh; . {0}/proc.sh; {1} \"$@\"' "
                                 "x {2} 2>&1",
                                 lib,
                                 function,
                                 testing::ShellCommand(arguments)));
    EXPECT_TRUE(ran.ok()) << Message(ran.status());
  }
  // Of an account in kube-system.
  static std::string KubeconfigOf(const std::string& account) {
    const std::string token = Kube({"create", "token", account, "-n", "kube-system"});
    std::string kubeconfig =
        Written(account + ".kubeconfig", Kube({"config", "view", "--raw", "--flatten"}));
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"config", "set-credentials", account, "--token=" + token},
             {"config", "set-context", "--current", "--user=" + account}}) {
      const auto set = testing::Run(testing::KubectlCommand(kubeconfig, words));
      EXPECT_TRUE(set.ok()) << Message(set.status());
    }
    return kubeconfig;
  }

  // What the control plane's own is.
  static std::string Scheduler() {
    const auto home = testing::Run(
        fmt::format("bash -c 'cd {}/tools && . lib/log.sh && . lib/cache.sh && kubernetes_home .'",
                    FLUXQUEUE_SOURCE_DIR));
    EXPECT_TRUE(home.ok()) << Message(home.status());
    const std::string folder = home.value_or("");
    return folder.substr(0, folder.find('\n')) + "/kube-scheduler";
  }
  static std::string FileOf(const std::string& name) {
    std::ifstream file(fmt::format("{}/k8s/without/{}", FLUXQUEUE_SOURCE_DIR, name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string Replaced(std::string text, const std::string& what, const std::string& by) {
    const size_t at = text.find(what);
    EXPECT_NE(at, text.npos) << what;
    return at == text.npos ? text : text.replace(at, what.size(), by);
  }
  static std::string Written(const std::string& name, const std::string& text) {
    std::string path = fmt::format("{}/{}", ClusterFolder(), name);
    std::ofstream(path) << text;
    return path;
  }

  static constexpr std::array kServices = {
      "admission", "queue", "matcher", "binder", "cleanup", "graph"};
};

// Every kind of hold, and everything that is not ours to start.
TEST_F(UninstallTest, ThereIsMuchThatWaits) {
  Apply(kClaimYaml);
  JobOptions full{.parallelism = 3, .completions = 3, .cpu = "7", .run_seconds = "3600"};
  Apply(JobYaml("full", full));
  ExpectState("full", "Running");
  for (const char* name : {"gang", "kept", "cancelled"}) Apply(Gang(name));
  Apply(Gang("pinned", {.pod_spec = fmt::format("      {}\n", kVolume)}));
  Apply(Replaced(Gang("users"), "  parallelism", "  suspend: true\n  parallelism"));
  Apply(PodYaml("bare"));
  Apply(PodYaml("bare-pinned", kVolume));
  Apply(kWeb);
  for (const char* name : {"gang", "kept", "cancelled", "pinned", "bare", "bare-pinned"}) {
    ExpectState(name, "Pending");
  }
  const absl::Status queued =
      system_->WaitFor([&] { return Count("queue.jobs WHERE name LIKE 'web-%'") == 1; },
                       seconds(30),
                       [] { return "the Deployment's pod to be queued"; });
  EXPECT_TRUE(queued.ok()) << Message(queued);
  EXPECT_EQ(system_->Fluxqueue({"hold", "e2e/kept"})->exit_code, 0);
  EXPECT_EQ(system_->Fluxqueue({"cancel", "e2e/cancelled"})->exit_code, 0);
  ExpectReason("kept", "Held");
  ExpectState("cancelled", "Cancelled");
  const absl::Status told = system_->WaitFor(
      [&] {
        // It may not be there yet.
        const auto says = [](const std::string& job, const std::string& path) {
          return system_
              ->Kubectl({"get", "fluxjob", job, "-n", "e2e", "-o", "jsonpath={" + path + "}"})
              .value_or("");
        };
        // Each has one a second after it was first heard of.
        const auto all = system_->Kubectl({"get", "fluxjobs", "-n", "e2e", "--no-headers"});
        return says("job-kept", ".status.reason") == "Held" &&
               says("job-cancelled", ".status.state") == "Cancelled" &&
               std::ranges::count(all.value_or(""), '\n') == 8;
      },
      seconds(30),
      [] { return "the FluxJobs to say so"; });
  EXPECT_TRUE(told.ok()) << Message(told);
}

TEST_F(UninstallTest, WhileFluxqueueIsThereNothingIsLetGo) {
  json report;
  for (const bool yes : {false, true}) {
    EXPECT_THAT(Uninstall(yes, 1, &report),
                UnorderedElementsAre(Pair("full", "coming"),
                                     Pair("Job full", "unmark"),
                                     Pair("gang", "resume"),
                                     Pair("pinned", "resume"),
                                     Pair("users", "keep"),
                                     Pair("kept", "keep"),
                                     Pair("cancelled", "keep"),
                                     Pair("bare", "scheduler"),
                                     Pair("bare-pinned", "ungate"),
                                     Pair("ReplicaSet web", "scheduler")))
        << report.dump();
    EXPECT_EQ(report["done"], false);
    ASSERT_EQ(report["inTheWay"].size(), 2) << report;
    EXPECT_THAT(report["inTheWay"][0]["todo"].get<std::string>(),
                HasSubstr("kubectl delete mutatingwebhookconfiguration fluxqueue"));
    EXPECT_THAT(report["inTheWay"][1]["what"].get<std::string>(), HasSubstr("fluxqueue-keys"));
  }
  EXPECT_EQ(Suspended(), "cancelled gang kept pinned users");
}

TEST_F(UninstallTest, WhoMayNotIsToldSoBeforeAnythingIsTried) {
  Kube({"create", "serviceaccount", "looker", "-n", "kube-system"});
  Kube({"create",
        "clusterrole",
        "looker",
        "--verb=get,list",
        "--resource=pods,jobs.batch,fluxjobs.fluxqueue.io,"
        "mutatingwebhookconfigurations.admissionregistration.k8s.io,"
        "validatingadmissionpolicies.admissionregistration.k8s.io"});
  Kube({"create",
        "clusterrolebinding",
        "looker",
        "--clusterrole=looker",
        "--serviceaccount=kube-system:looker"});
  json report;
  EXPECT_THAT(Uninstall(true, 1, &report, KubeconfigOf("looker")),
              Contains(Pair("gang", "resume")));
  ASSERT_EQ(report["inTheWay"].size(), 4) << report;
  EXPECT_EQ(report["inTheWay"][0]["what"], "you may not patch pods in all namespaces");
  EXPECT_EQ(report["inTheWay"][1]["what"], "you may not patch jobs in all namespaces");
  EXPECT_EQ(report["done"], false);
}

TEST_F(UninstallTest, ThenWhatItHeldIsLetGoAndWhatOthersHoldStays) {
  for (const char* service : kServices) ASSERT_TRUE(system_->KillService(service).ok());
  Kube({"delete", "mutatingwebhookconfiguration", "fluxqueue"});
  Kube({"delete",
        "validatingadmissionpolicy,validatingadmissionpolicybinding",
        "-l",
        "app.kubernetes.io/part-of=fluxqueue"});
  json report;
  const auto fates = Uninstall(true, 1, &report);
  EXPECT_EQ(report["done"], true);
  EXPECT_THAT(fates, Contains(Pair("gang", "resume")));
  EXPECT_THAT(fates, Contains(Pair("bare", "scheduler")));
  EXPECT_EQ(Suspended(), "cancelled kept users");
  EXPECT_EQ(Of("job/gang", ".metadata.labels.fluxqueue\\.io/held"), "");
  EXPECT_EQ(Of("job/pinned", ".spec.template.spec.schedulingGates"), "");
  Kube({"delete", "job", "full", "-n", "e2e"});
  ExpectBoundPod("bare-pinned");
  ExpectBound("job-name=pinned", 2);
  EXPECT_EQ(Of("pod/bare", ".spec.nodeName"), "") << "nobody is there whom it names";
}

TEST_F(UninstallTest, AKubeSchedulerBesideTheClustersOwnPlacesWhatNamesOurs) {
  Kube({"apply", "-f", "-"},
       Replaced(FileOf("second-scheduler.yaml"),
                "kube-scheduler:${KUBERNETES_VERSION}",
                "kube-scheduler:v1.34.4"));
  // What its pod would be: its account, and its configuration.
  const std::string kubeconfig = KubeconfigOf("without-fluxqueue");
  const std::string config = Kube({"get",
                                   "configmap",
                                   "without-fluxqueue",
                                   "-n",
                                   "kube-system",
                                   "-o",
                                   "jsonpath={.data.config\\.yaml}"}) +
                             fmt::format("clientConnection: {{kubeconfig: {}}}\n", kubeconfig);
  Proc("proc_start",
       {"without", Scheduler(), "--config", Written("without.yaml", config), "--secure-port", "0"});
  ExpectBoundPod("bare");
  ExpectBound("app=web", 1);
  ExpectBound("job-name=gang", 2);
  Proc("proc_stop", {"without"});
}

TEST_F(UninstallTest, SoDoesTheClustersOwnWithASecondProfile) {
  Proc("proc_stop", {"kube-scheduler"});
  Apply(PodYaml("names-us", "schedulerName: fluxqueue"));
  Apply(PodYaml("names-nobody"));
  const std::string config = Replaced(FileOf("scheduler-config.yaml"),
                                      "/etc/kubernetes/scheduler.conf",
                                      ClusterFolder() + "/pki/kube-scheduler.kubeconfig");
  Proc("proc_start",
       {"kube-scheduler",
        Scheduler(),
        "--config",
        Written("scheduler-config.yaml", config),
        "--secure-port",
        "0"});
  ExpectBoundPod("names-us");
  ExpectBoundPod("names-nobody");
}

TEST_F(UninstallTest, InTheEndOnlyWhatOthersHoldIsLeft) {
  json report;
  Uninstall(true, 0, &report);
  EXPECT_THAT(
      Uninstall(true, 0, &report),
      UnorderedElementsAre(Pair("users", "keep"), Pair("kept", "keep"), Pair("cancelled", "keep")));
  EXPECT_EQ(Kube({"get", "pods,jobs", "-A", "-l", "fluxqueue.io/held", "-o", "name"}),
            "job.batch/cancelled\njob.batch/kept\njob.batch/users\n");
}

}  // namespace
}  // namespace fluxqueue::e2e
