// The thief of an account: of each service, and of a person who operates the queue. Each has more
// rights than a tenant; what they do not need for their work is refused by the API server.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

// A pod of another namespace that is not held, one that is named as a service's, and one of the
// cluster's own. They stay unbound: what is bound to no node that there is, is removed in time.
constexpr const char* kPods = R"(apiVersion: v1
kind: Namespace
metadata: {name: others}
---
apiVersion: v1
kind: Pod
metadata: {name: free, namespace: others}
spec: {schedulerName: none, containers: [{name: main, image: busybox}]}
---
apiVersion: v1
kind: Pod
metadata: {name: fluxqueue-queue-0, namespace: fluxqueue-system}
spec:
  schedulerName: none
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: main
      image: busybox
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Pod
metadata: {name: system, namespace: kube-system}
spec: {schedulerName: none, containers: [{name: main, image: busybox}]}
)";

class ThiefTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 1});
    if (system_ == nullptr) return;
    const auto made = system_->Kubectl({"apply", "-f", "-"}, kPods);
    ASSERT_TRUE(made.ok()) << Message(made.status());
    const auto cli = system_->Kubectl({"apply", "-f", FLUXQUEUE_SOURCE_DIR "/k8s/rbac/cli.yaml"});
    ASSERT_TRUE(cli.ok()) << Message(cli.status());
  }

  absl::StatusOr<std::string> As(const std::string& account,
                                 std::vector<std::string> arguments,
                                 const std::string& input = "") {
    arguments.insert(arguments.begin(), "--as=" + account);
    return system_->Kubectl(arguments, input);
  }
  static std::string AccountOf(const std::string& service) {
    return "system:serviceaccount:fluxqueue-system:fluxqueue-" + service;
  }
  void Refused(const std::string& account,
               const std::vector<std::string>& arguments,
               const std::string& says = "orbidden",
               const std::string& input = "") {
    const auto made = As(account, arguments, input);
    EXPECT_FALSE(made.ok()) << account << ": " << fmt::format("{}", fmt::join(arguments, " "));
    EXPECT_THAT(Message(made.status()), HasSubstr(says));
  }
};

TEST_F(ThiefTest, TheBindersAccountTouchesOnlyWhatIsHeld) {
  const std::string binder = AccountOf("binder");
  // kubectl reads what it patches.
  for (const std::vector<std::string>& given : std::vector<std::vector<std::string>>{
           {"clusterrole", "reads-status", "--verb=get", "--resource=pods/status"},
           {"clusterrolebinding",
            "reads-status",
            "--clusterrole=reads-status",
            "--user=" + binder}}) {
    std::vector<std::string> create = {"create"};
    create.insert(create.end(), given.begin(), given.end());
    const auto made = system_->Kubectl(create);
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }
  const std::string held = "touches only what is held";
  Refused(binder, {"annotate", "pod", "free", "-n", "others", "fluxqueue.io/job-id=x"}, held);
  Refused(binder, {"delete", "pod", "free", "-n", "others"}, held);
  // Strict is a namespace only if it is managed, too; and there it may delete, and no more.
  const auto label = [&](const char* labels) {
    const auto labelled = system_->Kubectl({"label", "namespace", "others", labels});
    ASSERT_TRUE(labelled.ok()) << Message(labelled.status());
  };
  label("fluxqueue.io/enforce=strict");
  Refused(binder, {"delete", "pod", "free", "-n", "others"}, held);
  label("fluxqueue.io/managed=true");
  Refused(binder, {"annotate", "pod", "free", "-n", "others", "fluxqueue.io/job-id=x"}, held);
  label("fluxqueue.io/managed-");
  Apply(JobYaml("held", {.run_seconds = "600"}));
  ExpectState("held", "Running");
  const auto pod = system_->Kubectl({"get",
                                     "pods",
                                     "-n",
                                     "e2e",
                                     "-l",
                                     "batch.kubernetes.io/job-name=held",
                                     "-o",
                                     "jsonpath={.items[0].metadata.name}"});
  ASSERT_TRUE(pod.ok()) << Message(pod.status());
  const auto patch = [&](const std::string& kind,
                         const std::string& name,
                         const std::string& body) {
    return std::vector<std::string>{"patch", kind, name, "-n", "e2e", "--type=merge", "-p", body};
  };
  Refused(binder,
          {"set", "image", "pod/" + *pod, "-n", "e2e", "main=evil"},
          "changes nothing of a pod but its gates");
  Refused(binder,
          patch("pod", *pod, R"({"metadata": {"labels": {"team": "evil"}}})"),
          "writes no metadata but annotations");
  Refused(binder,
          patch("pod", *pod, R"({"metadata": {"annotations": {"example.com/a": "b"}}})"),
          "writes no metadata but annotations");
  Refused(binder,
          patch("job", "held", R"({"spec": {"parallelism": 7}})"),
          "changes nothing of a Job but");
  Refused(binder,
          {"patch",
           "pod",
           *pod,
           "-n",
           "e2e",
           "--subresource=status",
           "--type=merge",
           "-p",
           R"({"status": {"phase": "Succeeded"}})"},
          "writes only conditions");
  Refused(binder,
          {"create", "--raw", "/api/v1/namespaces/kube-system/pods/system/binding", "-f", "-"},
          "binds no pods of the cluster's own",
          R"({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "system"},
              "target": {"kind": "Node", "name": "nope"}})");
  const auto gone = system_->Kubectl({"delete", "job", "held", "-n", "e2e"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
  ExpectState("held", "Cancelled");
}

TEST_F(ThiefTest, NoAccountReadsSecretsOrTakesMoreRights) {
  for (const char* service : {"admission", "queue", "matcher", "binder", "cleanup", "cli"}) {
    const std::string account = AccountOf(service);
    Refused(account, {"get", "secrets", "-A"});
    Refused(account,
            {"create", "clusterrolebinding", "x", "--clusterrole=cluster-admin", "--user=x"});
    Refused(account, {"delete", "node", "--all"});
    Refused(account, {"create", "-f", "-"}, "orbidden", R"(apiVersion: v1
kind: Pod
metadata: {name: made, namespace: others}
spec: {containers: [{name: main, image: busybox}]}
)");
    if (std::string(service) == "binder") continue;
    Refused(account, {"delete", "pod", "free", "-n", "others"});
    Refused(account,
            {"create", "--raw", "/api/v1/namespaces/others/pods/free/binding", "-f", "-"},
            "orbidden",
            R"({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "free"},
                "target": {"kind": "Node", "name": "nope"}})");
  }
}

TEST_F(ThiefTest, AnOperatorRunsNothingInAService) {
  const auto bound = system_->Kubectl({"create",
                                       "rolebinding",
                                       "operators",
                                       "-n",
                                       "fluxqueue-system",
                                       "--role=fluxqueue-operator",
                                       "--user=olga"});
  ASSERT_TRUE(bound.ok()) << Message(bound.status());
  Refused("olga",
          {"exec", "-n", "fluxqueue-system", "fluxqueue-queue-0", "--", "sh"},
          "are no place for commands");
}

}  // namespace
}  // namespace fluxqueue::e2e
