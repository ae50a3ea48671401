// The thief of an account: of each service, and of a person who operates the queue. Each has more
// rights than a tenant; what they do not need for their work is refused by the API server.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/system_test_base.h"

#include "fmt/format.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::ContainerEq;
using ::testing::Contains;
using ::testing::HasSubstr;

const nlohmann::json kNone = nlohmann::json::array();

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

// By service, what its account may do in any namespace: "list,watch pods" of the API group before
// the slash. A right that is not here has to be written here first.
const std::map<std::string, std::vector<std::string>> kRights = {
    {"admission",
     {"get,list,watch /pods",
      "get,list,watch /namespaces",
      "get,list,watch /limitranges",
      "get,list,watch batch/jobs",
      "get apps/deployments",
      "get apps/replicasets",
      "get apps/statefulsets",
      "get /replicationcontrollers",
      "get,list,watch node.k8s.io/runtimeclasses",
      "get jobset.x-k8s.io/jobsets",
      "get kubeflow.org/mpijobs",
      "get kubeflow.org/pytorchjobs",
      "get kubeflow.org/tfjobs",
      "get kubeflow.org/xgboostjobs",
      "get ray.io/rayclusters",
      "get scheduling.k8s.io/podgroups",
      "get scheduling.volcano.sh/podgroups",
      "get scheduling.x-k8s.io/podgroups",
      "get sparkoperator.k8s.io/sparkapplications",
      "get,list,watch scheduling.k8s.io/priorityclasses",
      "get workload.codeflare.dev/appwrappers",
      "get,list,watch fluxqueue.io/fluxqueues",
      "get,list,watch fluxqueue.io/fluxwindows",
      "create events.k8s.io/events"}},
    {"queue",
     {"get,list,create,patch,delete fluxqueue.io/fluxjobs",
      "get fluxqueue.io/fluxqueues",
      "get /namespaces",
      "create events.k8s.io/events",
      "create authentication.k8s.io/tokenreviews",
      "create authorization.k8s.io/subjectaccessreviews"}},
    {"matcher", {}},
    {"binder",
     {"get,list,watch,patch,delete /pods",
      "create /pods/binding",
      "patch /pods/status",
      "get,list,patch batch/jobs",
      "get /nodes",
      "get apps/daemonsets",
      "list,watch /namespaces",
      "create,delete /podtemplates",
      "list,create,delete autoscaling.x-k8s.io/provisioningrequests",
      "create events.k8s.io/events"}},
    {"cleanup", {"get,list,watch /pods", "get,list,watch /nodes", "get,list,watch batch/jobs"}},
    {"graph",
     {"create authentication.k8s.io/tokenreviews",
      "create authorization.k8s.io/subjectaccessreviews"}},
    {"visibility", {}},
    {"cli",
     {"get,list,watch,patch /pods",
      "get,list,watch,patch /nodes",
      "get,list,watch /namespaces",
      "get,list,watch /events",
      "get,list,watch events.k8s.io/events",
      "get,list,watch,patch,create batch/jobs",
      "get,list,watch fluxqueue.io/fluxjobs",
      "get,list,watch fluxqueue.io/fluxqueues",
      "get,list,watch fluxqueue.io/fluxwindows",
      "get,list apiextensions.k8s.io/customresourcedefinitions",
      "get,list admissionregistration.k8s.io/mutatingwebhookconfigurations",
      "get,list admissionregistration.k8s.io/validatingadmissionpolicies",
      "get,list admissionregistration.k8s.io/validatingadmissionpolicybindings",
      "get,list apiregistration.k8s.io/apiservices",
      "create authorization.k8s.io/subjectaccessreviews"}},
};
// What they may do besides in one namespace.
const std::map<std::pair<std::string, std::string>, std::vector<std::string>> kRightsInOne = {
    {{"cli", "fluxqueue-system"},
     {"get,list /services",
      "get,list /configmaps",
      "get,list /pods/log",
      "get,list apps/deployments",
      "get,list discovery.k8s.io/endpointslices"}},
    {{"visibility", "kube-system"},
     {"get,list,watch /configmaps extension-apiserver-authentication"}},
};

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
  // Of an object in the namespace e2e.
  static std::vector<std::string> Patch(const std::string& kind,
                                        const std::string& name,
                                        const std::string& body,
                                        const std::string& subresource = "") {
    std::vector<std::string> arguments = {
        "patch", kind, name, "-n", "e2e", "--type=merge", "-p", body};
    if (!subresource.empty()) arguments.push_back("--subresource=" + subresource);
    return arguments;
  }
  // Of a SelfSubjectRulesReview, one right each: "list batch/jobs", "get /configmaps NAME".
  static void AddRule(const nlohmann::json& rule, std::set<std::string>* rights) {
    std::vector<std::string> names;
    for (const std::string name : rule.value("resourceNames", kNone)) names.push_back(" " + name);
    if (names.empty()) names.emplace_back();
    for (const std::string verb : rule["verbs"]) {
      for (const std::string path : rule.value("nonResourceURLs", kNone)) {
        rights->insert(fmt::format("{} URL {}", verb, path));
      }
      for (const std::string group : rule.value("apiGroups", kNone)) {
        for (const std::string resource : rule.value("resources", kNone)) {
          for (const std::string& name : names) {
            rights->insert(fmt::format("{} {}/{}{}", verb, group, resource, name));
          }
        }
      }
    }
  }
  // What an account may do in a namespace.
  std::set<std::string> RightsOf(const std::string& account, const std::string& space) {
    const auto answer =
        As(account,
           {"create", "--raw", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "-f", "-"},
           fmt::format(R"({{"apiVersion": "authorization.k8s.io/v1", "kind":
                               "SelfSubjectRulesReview", "spec": {{"namespace": "{}"}}}})",
                       space));
    EXPECT_TRUE(answer.ok()) << Message(answer.status());
    if (!answer.ok()) return {};
    std::set<std::string> rights;
    const nlohmann::json status = nlohmann::json::parse(*answer)["status"];
    EXPECT_FALSE(status.value("incomplete", true)) << status;
    for (const char* rules : {"resourceRules", "nonResourceRules"}) {
      for (const auto& rule : status.value(rules, kNone)) AddRule(rule, &rights);
    }
    return rights;
  }
  // "get,list /pods" into "get /pods" and "list /pods".
  static void Add(const std::vector<std::string>& rules, std::set<std::string>* rights) {
    for (const std::string& rule : rules) {
      const size_t space = rule.find(' ');
      std::istringstream verbs(rule.substr(0, space));
      for (std::string verb; std::getline(verbs, verb, ',');) {
        rights->insert(verb + rule.substr(space));
      }
    }
  }
  void LabelOthers(const std::string& label) {
    const auto labelled = system_->Kubectl({"label", "namespace", "others", label});
    ASSERT_TRUE(labelled.ok()) << Message(labelled.status());
  }
  // kubectl reads what it patches.
  void MayReadStatus() {
    for (const std::vector<std::string>& given : std::vector<std::vector<std::string>>{
             {"clusterrole", "reads-status", "--verb=get", "--resource=pods/status"},
             {"clusterrolebinding",
              "reads-status",
              "--clusterrole=reads-status",
              "--user=" + binder_}}) {
      std::vector<std::string> create = {"create"};
      create.insert(create.end(), given.begin(), given.end());
      const auto made = system_->Kubectl(create);
      ASSERT_TRUE(made.ok()) << Message(made.status());
    }
  }
  // Returns the name of its pod, which runs for ten minutes.
  std::string RunJob(const std::string& name) {
    Apply(JobYaml(name, {.run_seconds = "600"}));
    ExpectState(name, "Running");
    const auto pod = system_->Kubectl({"get",
                                       "pods",
                                       "-n",
                                       "e2e",
                                       "-l",
                                       "batch.kubernetes.io/job-name=" + name,
                                       "-o",
                                       "jsonpath={.items[0].metadata.name}"});
    EXPECT_TRUE(pod.ok()) << Message(pod.status());
    return pod.ok() ? *pod : "";
  }
  void Delete(const std::string& job) {
    const auto gone = system_->Kubectl({"delete", "job", job, "-n", "e2e"});
    EXPECT_TRUE(gone.ok()) << Message(gone.status());
    ExpectState(job, "Cancelled");
  }

  const std::string binder_ = AccountOf("binder");
};

TEST_F(ThiefTest, TheBindersAccountTouchesOnlyWhatIsHeld) {
  const std::string held = "touches only what is held";
  Refused(binder_, {"annotate", "pod", "free", "-n", "others", "fluxqueue.io/job-id=x"}, held);
  Refused(binder_, {"delete", "pod", "free", "-n", "others"}, held);
  // Strict is a namespace only if it is managed, too; and there it may delete, and no more.
  LabelOthers("fluxqueue.io/enforce=strict");
  Refused(binder_, {"delete", "pod", "free", "-n", "others"}, held);
  LabelOthers("fluxqueue.io/managed=true");
  Refused(binder_, {"annotate", "pod", "free", "-n", "others", "fluxqueue.io/job-id=x"}, held);
  LabelOthers("fluxqueue.io/managed-");
}

TEST_F(ThiefTest, TheBindersAccountChangesOfAPodWhatItHasTo) {
  MayReadStatus();
  const std::string pod = RunJob("held");
  Refused(binder_,
          {"set", "image", "pod/" + pod, "-n", "e2e", "main=evil"},
          "changes nothing of a pod but its gates");
  const std::string metadata = "writes no metadata but annotations";
  Refused(binder_, Patch("pod", pod, R"({"metadata": {"labels": {"team": "evil"}}})"), metadata);
  Refused(binder_,
          Patch("pod", pod, R"({"metadata": {"annotations": {"example.com/a": "b"}}})"),
          metadata);
  std::string many;
  for (int i = 0; i < 13; ++i) {
    many += fmt::format(R"({}"fluxqueue.io/x{}": "")", i == 0 ? "" : ", ", i);
  }
  Refused(binder_,
          Patch("pod", pod, fmt::format(R"({{"metadata": {{"annotations": {{{}}}}}}})", many)),
          metadata);
  for (const char* status : {R"({"phase": "Succeeded"})",
                             R"({"message": "evil"})",
                             R"({"reason": "Evicted"})",
                             R"({"startTime": "2020-01-01T00:00:00Z"})",
                             R"({"conditions": [{"type": "Ready", "status": "False"}]})"}) {
    Refused(binder_,
            Patch("pod", pod, fmt::format(R"({{"status": {}}})", status), "status"),
            "writes only the conditions DisruptionTarget and PodScheduled");
  }
  // As kubectl would: a list that is merged by type.
  const auto condition = [](const std::string& name, const std::string& status) {
    std::vector<std::string> patch =
        Patch("pod",
              name,
              fmt::format(
                  R"({{"status": {{"conditions": [{{"type": "PodScheduled", "status": "{}"}}]}}}})",
                  status),
              "status");
    std::ranges::replace(patch, std::string("--type=merge"), std::string("--type=strategic"));
    return patch;
  };
  const std::string waits = "says of a pod only that it is not scheduled";
  Refused(binder_, condition(pod, "False"), waits);
  Apply(R"(apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: e2e, annotations: {fluxqueue.io/hold: "true"}}
spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
)");
  ExpectState("waits", "Pending");
  Refused(binder_, condition("waits", "True"), waits);
  const auto told = As(binder_, condition("waits", "False"));
  EXPECT_TRUE(told.ok()) << Message(told.status());
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "waits", "-n", "e2e"}).ok());
  ExpectState("waits", "Cancelled");
  std::vector<std::string> disrupt = Patch(
      "pod",
      pod,
      R"({"status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "X"}]}})",
      "status");
  std::replace(
      disrupt.begin(), disrupt.end(), std::string("--type=merge"), std::string("--type=strategic"));
  const auto disrupted = As(binder_, disrupt);
  EXPECT_TRUE(disrupted.ok()) << Message(disrupted.status());
  const auto undone =
      system_->Kubectl({"delete", "clusterrole,clusterrolebinding", "reads-status"});
  EXPECT_TRUE(undone.ok()) << Message(undone.status());
  Delete("held");
}

TEST_F(ThiefTest, TheBindersAccountMakesAndDeletesItsOwnPodTemplates) {
  // What says that it is of an object that is not there is soon collected.
  ASSERT_TRUE(system_->Kubectl({"create", "job", "owner", "-n", "others", "--image=busybox"}).ok());
  const auto owner =
      system_->Kubectl({"get", "job", "owner", "-n", "others", "-o", "jsonpath={.metadata.uid}"});
  ASSERT_TRUE(owner.ok()) << Message(owner.status());
  const auto pods =
      [&](const char* name, const char* manager, bool owned, const char* space = "others") {
        const std::string job =
            fmt::format("[{{apiVersion: batch/v1, kind: Job, name: owner, uid: {}}}]", *owner);
        return fmt::format(R"(apiVersion: v1
kind: PodTemplate
metadata:
  name: {}
  namespace: {}
  labels: {{app.kubernetes.io/managed-by: {}}}
  ownerReferences: {}
template: {{spec: {{containers: [{{name: main, image: busybox}}]}}}}
)",
                           name,
                           space,
                           manager,
                           owned ? job : "[]");
      };
  const std::string only = "makes and deletes only PodTemplates and ProvisioningRequests";
  const std::vector<std::string> create = {"create", "-f", "-"};
  const auto remove = [](const char* name) {
    // It may not read what it deletes, so kubectl must not wait for its end.
    return std::vector<std::string>{"delete", "podtemplate", name, "-n", "others", "--wait=false"};
  };
  for (const auto& [name, manager, owned] :
       std::vector<std::tuple<const char*, const char*, bool>>{{"fluxqueue-a", "Helm", true},
                                                               {"fluxqueue-b", "fluxqueue", false},
                                                               {"mine", "fluxqueue", true}}) {
    Refused(binder_, create, only, pods(name, manager, owned));
    Apply(pods(name, manager, owned));
    Refused(binder_, remove(name), only);
  }
  Refused(binder_,
          create,
          "asks for no nodes in the cluster's own namespace",
          pods("fluxqueue-own", "fluxqueue", true, "kube-system"));
  const auto made = As(binder_, create, pods("fluxqueue-own", "fluxqueue", true));
  EXPECT_TRUE(made.ok()) << Message(made.status());
  const auto deleted = As(binder_, remove("fluxqueue-own"));
  EXPECT_TRUE(deleted.ok()) << Message(deleted.status());
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "owner", "-n", "others"}).ok());
}

TEST_F(ThiefTest, TheBindersAccountChangesOfAJobWhatItHasTo) {
  RunJob("whole");
  for (const char* spec :
       {R"({"parallelism": 7})", R"({"backoffLimit": 100})", R"({"ttlSecondsAfterFinished": 1})"}) {
    Refused(binder_,
            Patch("job", "whole", fmt::format(R"({{"spec": {}}})", spec)),
            "changes nothing of a Job but");
  }
  const auto limited =
      As(binder_, Patch("job", "whole", R"({"spec": {"activeDeadlineSeconds": 3600}})"));
  EXPECT_TRUE(limited.ok()) << Message(limited.status());
  Delete("whole");
}

TEST_F(ThiefTest, TheBindersAccountBindsOnlyWhatMayBeOurs) {
  const auto bind = [](const std::string& space, const std::string& pod) {
    return std::vector<std::string>{
        "create",
        "--raw",
        fmt::format("/api/v1/namespaces/{}/pods/{}/binding", space, pod),
        "-f",
        "-"};
  };
  const auto binding = [](const std::string& pod) {
    return fmt::format(R"({{"apiVersion": "v1", "kind": "Binding", "metadata": {{"name": "{}"}},
                            "target": {{"kind": "Node", "name": "nope"}}}})",
                       pod);
  };
  const std::string says = "binds no pods of the cluster's own";
  Refused(binder_, bind("kube-system", "system"), says, binding("system"));
  Refused(
      binder_, bind("fluxqueue-system", "fluxqueue-queue-0"), says, binding("fluxqueue-queue-0"));
  LabelOthers("fluxqueue.io/managed=false");
  Refused(binder_, bind("others", "free"), says, binding("free"));
  LabelOthers("fluxqueue.io/managed-");
}

TEST_F(ThiefTest, TheCommandLinesAccountCordonsNodesAndNoMore) {
  const std::string cli = AccountOf("cli");
  const auto name = system_->Kubectl({"get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"});
  ASSERT_TRUE(name.ok()) << Message(name.status());
  const std::string says = "changes nothing of a node but";
  Refused(cli, {"label", "node", *name, "fluxqueue.io/pool=evil"}, says);
  Refused(cli, {"annotate", "node", *name, "example.com/a=b"}, says);
  Refused(cli, {"taint", "node", *name, "example.com/a=b:NoExecute"}, says);
  for (const std::vector<std::string>& may :
       std::vector<std::vector<std::string>>{{"cordon", *name},
                                             {"uncordon", *name},
                                             {"annotate", "node", *name, "fluxqueue.io/drain=wait"},
                                             {"annotate", "node", *name, "fluxqueue.io/drain-"}}) {
    const auto done = As(cli, may);
    EXPECT_TRUE(done.ok()) << Message(done.status());
  }
}

// The API server itself says what an account may do. What every account may is left out.
TEST_F(ThiefTest, AnAccountHasTheRightsOfTheListAndNoOthers) {
  for (const auto& [service, rules] : kRights) {
    const auto there = system_->Kubectl(
        {"get", "serviceaccount", "-n", "fluxqueue-system", "fluxqueue-" + service});
    EXPECT_TRUE(there.ok()) << Message(there.status());
  }
  for (const std::string space : {"fluxqueue-system", "kube-system", "others"}) {
    const std::set<std::string> everybody =
        RightsOf(fmt::format("system:serviceaccount:{}:nobody", space), space);
    EXPECT_THAT(everybody, Contains("get URL /version"));
    for (const std::string& right : everybody) {
      EXPECT_TRUE(right.find(" URL /") != std::string::npos ||
                  right.find("/self") != std::string::npos ||
                  right.ends_with(" visibility.fluxqueue.io/queues"))
          << "every account may " << right << " in " << space;
    }
    for (const auto& [service, rules] : kRights) {
      std::set<std::string> listed;
      Add(rules, &listed);
      const auto here = kRightsInOne.find({service, space});
      if (here != kRightsInOne.end()) Add(here->second, &listed);
      std::set<std::string> has = RightsOf(AccountOf(service), space);
      std::erase_if(has, [&](const std::string& right) { return everybody.contains(right); });
      EXPECT_THAT(has, ContainerEq(listed)) << service << " in " << space;
    }
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
