// The ways past the queue of a managed namespace: refused to mallory, seen where somebody went one
// all the same, and of no use in a namespace that is strict.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/adversary/tenant_test_base.h"

namespace fluxqueue::e2e {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Deployment(const std::string& name,
                       const std::string& space,
                       const std::string& label,
                       const std::string& spec = "") {
  return fmt::format(R"(apiVersion: apps/v1
kind: Deployment
metadata: {{name: {0}, namespace: {1}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    metadata: {{labels: {{app: {0}{2}}}}}
    spec:
      containers: [{{name: main, image: busybox}}]
      {3}
)",
                     name,
                     space,
                     label,
                     spec);
}

class BypassTest : public TenantTest {
 protected:
  // A pod that runs where its maker wants it.
  static std::string Pinned(const std::string& space,
                            const std::string& node,
                            const std::string& labels) {
    return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: past
  namespace: {}
  labels: {}
  annotations: {{fluxqueue.io/run-seconds: "600"}}
spec:
  nodeName: {}
  restartPolicy: Never
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: 500m}}}}}}]
)",
                       space,
                       labels,
                       node);
  }

  // Of the Events that say that something bypasses the queue there.
  static std::string Told(const std::string& space) {
    const auto notes = system_->Kubectl({"get",
                                         "events",
                                         "-n",
                                         space,
                                         "--field-selector=reason=BypassesQueue",
                                         "-o",
                                         "jsonpath={.items[*].message}"});
    EXPECT_TRUE(notes.ok()) << Message(notes.status());
    return notes.ok() ? *notes : "";
  }

  static bool IsThere(const std::string& space) {
    return system_->Kubectl({"get", "pod", "past", "-n", space}).ok();
  }
};

TEST_F(BypassTest, AManagedNamespaceHasNoWayPastTheQueue) {
  const std::string out = ", fluxqueue.io/managed: \"false\"";
  const std::string tolerates = "tolerations: [{key: fluxqueue.io/dedicated, operator: Exists}]";
  const std::string daemons = R"(apiVersion: apps/v1
kind: DaemonSet
metadata: {name: daemons, namespace: lab}
spec:
  selector: {matchLabels: {app: daemons}}
  template:
    metadata: {labels: {app: daemons}}
    spec: {containers: [{name: main, image: busybox}]}
)";
  const std::string pod = R"(apiVersion: v1
kind: Pod
metadata: {name: past, namespace: lab, labels: {fluxqueue.io/managed: "false"}}
spec: {containers: [{name: main, image: busybox}]}
)";
  const std::string pinned = R"(apiVersion: v1
kind: Pod
metadata: {name: pinned, namespace: lab}
spec: {nodeName: nope, containers: [{name: main, image: busybox}]}
)";
  IsRefused(pod, "goes past its queue");
  IsRefused(pinned, "spec.nodeName goes past its queue");
  IsRefused(Deployment("past", "lab", out), "goes past its queue");
  IsRefused(Deployment("past", "lab", "", "nodeName: nope"), "spec.nodeName goes past its queue");
  IsRefused(daemons, "the pods of a DaemonSet go past its queue");
  IsRefused(Deployment("past", "evil", "", tolerates), "are kept for what is queued");
  Creates(Deployment("web", "lab", ""));
  const auto changed = AsMallory({"apply", "-f", "-"}, Deployment("web", "lab", out));
  EXPECT_THAT(Message(changed.status()), HasSubstr("goes past its queue"));
  // Who has been given the right may, and what is there may be changed in other ways.
  GiveClusterRole("fluxqueue-bypass");
  Creates(Deployment("past", "lab", out));
  Creates(daemons);
  Creates(R"(apiVersion: batch/v1
kind: Job
metadata: {name: past, namespace: lab, labels: {fluxqueue.io/managed: "false"}}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}
)");
  TakeClusterRole("fluxqueue-bypass");
  for (const char* what : {"deployment/past", "daemonset/daemons"}) {
    const auto annotated = AsMallory({"annotate", "--namespace=lab", what, "note=mine"});
    EXPECT_TRUE(annotated.ok()) << Message(annotated.status());
  }
  const auto grown = [&](const char* what, const std::string& spec) {
    const auto patched = AsMallory({"patch", what, "--namespace=lab", "-p", spec});
    return std::string(Message(patched.status()));
  };
  EXPECT_THAT(grown("deployment/past", R"({"spec": {"replicas": 9}})"),
              HasSubstr("would take more: have an administrator do it"));
  EXPECT_THAT(
      grown("daemonset/daemons",
            R"({"spec": {"template": {"spec": {"containers": [{"name": "main", "resources":)"
            R"( {"requests": {"cpu": "9"}}}]}}}})"),
      HasSubstr("would take more: have an administrator do it"));
  EXPECT_THAT(grown("daemonset/daemons",
                    R"({"spec": {"template": {"spec": {"nodeSelector": {"kept": "yes"}}}}})"),
              HasSubstr("would take more: have an administrator do it"));
  EXPECT_THAT(grown("job/past", R"({"spec": {"parallelism": 9}})"),
              HasSubstr("would take more: have an administrator do it"));
  // Its pods are queued, as its template does not say it.
  Apply(R"(apiVersion: apps/v1
kind: Deployment
metadata: {name: marked, namespace: lab, labels: {fluxqueue.io/managed: "false"}}
spec:
  replicas: 0
  selector: {matchLabels: {app: marked}}
  template:
    metadata: {labels: {app: marked}}
    spec: {containers: [{name: main, image: busybox}]}
)");
  EXPECT_THAT(grown("deployment/marked",
                    R"({"spec": {"template": {"metadata": {"labels":)"
                    R"( {"fluxqueue.io/managed": "false"}}}}})"),
              HasSubstr("goes past its queue"));
  EXPECT_THAT(grown("deployment/past",
                    R"({"spec": {"template": {"metadata": {"labels":)"
                    R"( {"fluxqueue.io/managed": "true"}}}}})"),
              HasSubstr("goes past its queue"));
  const auto scaled = AsMallory({"scale", "deployment/past", "--namespace=lab", "--replicas=9"});
  EXPECT_THAT(Message(scaled.status()), HasSubstr("more of them would take more"));
  EXPECT_TRUE(AsMallory({"scale", "deployment/past", "--namespace=lab", "--replicas=0"}).ok());
  EXPECT_TRUE(AsMallory({"delete", "--namespace=lab", "daemonset/daemons", "job/past"}).ok());
}

// Its Jobs, and what they say, are made by the cluster's own controller.
TEST_F(BypassTest, ACronJobsJobsAreAskedAboutWithIt) {
  constexpr const char* cron = R"(apiVersion: batch/v1
kind: CronJob
metadata: {{name: nightly, namespace: lab}}
spec:
  schedule: "0 0 29 2 *"
  jobTemplate:
    metadata: {{labels: {{{}}}}}
    spec:
      template:
        spec: {{restartPolicy: Never, containers: [{{name: main, image: busybox}}]}}
)";
  const std::string out = "fluxqueue.io/managed: \"false\"";
  IsRefused(fmt::format(cron, out), "goes past its queue");
  Creates(fmt::format(cron, "team: blue"));
  const auto changed = AsMallory({"apply", "-f", "-"}, fmt::format(cron, out));
  EXPECT_THAT(Message(changed.status()), HasSubstr("goes past its queue"));
}

TEST_F(BypassTest, AKeptNodeIsToleratedByWhatIsHeldAlone) {
  IsRefused(Deployment("keyless", "evil", "", "tolerations: [{operator: Exists}]"),
            "one without a key tolerates this taint, too");
  std::string many;
  for (int i = 0; i < 101; ++i) many += fmt::format("{}{{key: k{}}}", i == 0 ? "" : ", ", i);
  IsRefused(Deployment("many", "evil", "", "tolerations: [" + many + "]"),
            "of more than 100 nobody looks for it");
  // The label of a Deployment says nothing of its pods.
  std::string labelled =
      Deployment("masked", "evil", "", "tolerations: [{key: fluxqueue.io/dedicated}]");
  const std::string space = "namespace: evil";
  labelled.insert(labelled.find(space) + space.size(), ", labels: {fluxqueue.io/held: direct}");
  IsRefused(labelled, "are kept for what is queued");
  // The agents of nodes have such a toleration, and so may what waits for the queue.
  Apply(R"(apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: evil}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {tolerations: [{operator: Exists}], containers: [{name: main, image: busybox}]}
)");
  Creates(R"(apiVersion: v1
kind: Pod
metadata: {name: tolerant, namespace: lab, annotations: {fluxqueue.io/run-seconds: "0.2"}}
spec:
  restartPolicy: Never
  tolerations: [{operator: Exists}]
  containers: [{name: main, image: busybox, resources: {requests: {cpu: 500m}}}]
)");
  ExpectState("tolerant", "Succeeded");
  const auto gone = system_->Kubectl({"delete", "daemonset", "agent", "--namespace=evil"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

TEST_F(BypassTest, APodHasWhatItsJobAskedForAndNoMore) {
  GiveMallory("get,patch", "pods/resize");
  Creates(R"(apiVersion: v1
kind: Pod
metadata: {name: grows, namespace: lab, annotations: {fluxqueue.io/run-seconds: "600"}}
spec:
  restartPolicy: Never
  containers: [{name: main, image: busybox, resources: {requests: {cpu: 500m, memory: 64Mi}}}]
)");
  ExpectState("grows", "Running");
  // As a kubelet that can resize says it; kwok does not.
  const auto can = system_->Kubectl(
      {"patch",
       "pod",
       "grows",
       "--namespace=lab",
       "--subresource=status",
       "--type=json",
       "-p",
       R"([{"op": "add", "path": "/status/containerStatuses/0/resources", "value": {}}])"});
  ASSERT_TRUE(can.ok()) << Message(can.status());
  const auto resize = [&](const char* requests) {
    return AsMallory(
        {"patch",
         "pod",
         "grows",
         "--namespace=lab",
         "--subresource=resize",
         "-p",
         fmt::format(
             R"({{"spec": {{"containers": [{{"name": "main", "resources": {{"requests": {}}}}}]}}}})",
             requests)});
  };
  for (const char* more : {R"({"cpu": "4"})", R"({"cpu": "100m", "memory": "1Gi"})"}) {
    EXPECT_THAT(Message(resize(more).status()), HasSubstr("would take more of its node")) << more;
  }
  const auto less = resize(R"({"cpu": "100m"})");
  EXPECT_TRUE(less.ok()) << Message(less.status());
  EXPECT_TRUE(AsMallory({"delete", "pod", "grows", "--namespace=lab"}).ok());
  ExpectState("grows", "Failed");
}

TEST_F(BypassTest, AForgedOwnerIsNoWayPastTheQueue) {
  Creates("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner, namespace: lab}\n");
  const auto uid = system_->Kubectl(
      {"get", "configmap", "owner", "-n", "lab", "-o", "jsonpath={.metadata.uid}"});
  ASSERT_TRUE(uid.ok()) << Message(uid.status());
  const auto owned = [&](const std::string& name, const std::string& owner) {
    return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: lab
  annotations: {{fluxqueue.io/run-seconds: "600"}}
  ownerReferences: [{{{}, controller: true}}]
spec:
  restartPolicy: Never
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: 500m}}}}}}]
)",
                       name,
                       owner);
  };
  // What the API server has made of it: the garbage collector may take it away at once.
  const auto held = [&](const std::string& name, const std::string& owner) {
    const auto made =
        AsMallory({"create", "-f", "-", "-o", "jsonpath={.metadata.labels.fluxqueue\\.io/held}"},
                  owned(name, owner));
    EXPECT_TRUE(made.ok()) << Message(made.status());
    return made.ok() ? *made : "";
  };
  EXPECT_EQ(
      held("by-map", fmt::format("apiVersion: v1, kind: ConfigMap, name: owner, uid: {}", *uid)),
      "direct");
  EXPECT_EQ(held("by-set", "apiVersion: apps/v1, kind: DaemonSet, name: none, uid: no-such"),
            "direct");
}

// Whoever made them would wait for a queue that does not know them.
TEST_F(BypassTest, WhatWaitsInANamespaceThatIsLabelledLaterIsNamed) {
  const std::string nowhere = "nodeSelector: {is: nowhere}, ";
  const auto pod_spec = [](const std::string& more) {
    return "{" + more + "restartPolicy: Never, containers: [{name: main, image: busybox}]}";
  };
  Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: later}\n");
  Apply("apiVersion: v1\nkind: Pod\nmetadata: {name: bare, namespace: later}\nspec: " +
        pod_spec(nowhere));
  const auto job = [&](const std::string& name, const std::string& more) {
    return fmt::format(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {}, namespace: later}}\n"
        "spec: {{{}template: {{spec: {}}}}}\n",
        name,
        more,
        pod_spec(nowhere));
  };
  Apply(job("waits", ""));
  Apply(job("suspended", "suspend: true, "));
  std::string web = Deployment("web", "later", "", "nodeSelector: {is: nowhere}");
  Apply(web.replace(web.find("replicas: 0"), 11, "replicas: 5"));
  const auto pods = [&] {
    return system_
        ->Kubectl({"get", "pods", "-n", "later", "-o", "jsonpath={.items[*].metadata.name}"})
        .value_or("");
  };
  const auto spaces = [&] {
    const std::string names = pods();
    return std::count(names.begin(), names.end(), ' ');
  };
  const absl::Status there = system_->WaitFor(
      [&] { return spaces() == 6; }, seconds(30), [&] { return "seven pods, not " + pods(); });
  ASSERT_TRUE(there.ok()) << Message(there);
  const auto labelled =
      system_->Kubectl({"label", "namespace", "later", "fluxqueue.io/managed=true"});
  ASSERT_TRUE(labelled.ok()) << Message(labelled.status());
  const auto told = [] {
    return system_
        ->Kubectl({"get",
                   "events",
                   "-n",
                   "later",
                   "--field-selector=reason=NotQueued",
                   "--sort-by=.involvedObject.name",
                   "-o",
                   "jsonpath={range .items[*]}{.involvedObject.kind} {.message}{\"\\n\"}{end}"})
        .value_or("");
  };
  const absl::Status named = system_->WaitFor(
      [&] {
        const std::string notes = told();
        return std::count(notes.begin(), notes.end(), '\n') == 4;
      },
      seconds(30),
      [&] { return "two Jobs, and a pod of each other owner, not " + told(); });
  EXPECT_TRUE(named.ok()) << Message(named);
  const std::string before = " is not in the queue of its namespace: it was made before";
  EXPECT_THAT(told(),
              AllOf(HasSubstr("Pod bare" + before),
                    HasSubstr("Job suspended" + before),
                    HasSubstr("Job waits" + before),
                    HasSubstr("makes another, which is\n")));
  // What is made from then on is queued.
  Apply(job("new", ""));
  const auto held = [](const char* what) {
    return system_
        ->Kubectl({"get",
                   "pods,jobs",
                   "-n",
                   "later",
                   "-l",
                   what,
                   "-o",
                   "jsonpath={range .items[*]}{.kind} {end}"})
        .value_or("");
  };
  EXPECT_THAT(held("fluxqueue.io/held"), HasSubstr("Job "));
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "-n", "later", "-l", "app=web"}).ok());
  const absl::Status queued =
      system_->WaitFor([&] { return held("app=web,fluxqueue.io/held") == "Pod Pod Pod Pod Pod "; },
                       seconds(30),
                       [&] { return "five pods that are held, not " + held("app=web"); });
  EXPECT_TRUE(queued.ok()) << Message(queued);
  ASSERT_TRUE(system_->Kubectl({"delete", "namespace", "later"}).ok());
}

// The administrator may name a node. So it is as with policies that are away.
TEST_F(BypassTest, WhatRunsPastTheQueueIsSeenAndOfNoUseWhereItIsStrict) {
  for (const char* space : {"strict", "meant"}) {
    Apply(
        fmt::format("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n  labels: "
                    "{{fluxqueue.io/managed: \"true\", fluxqueue.io/enforce: strict}}\n",
                    space));
  }
  const std::string node = NodeOf(0);
  Apply(Pinned("meant", node, "{fluxqueue.io/managed: \"false\"}"));
  Apply(Pinned("lab", node, "{}"));
  Apply(Pinned("strict", node, "{}"));
  const absl::Status stopped = system_->WaitFor(
      [] { return !IsThere("strict") && Told("strict") != "" && Told("lab") != ""; },
      seconds(30),
      [] { return "the pod of the strict namespace to be stopped, and both to be told of"; });
  EXPECT_TRUE(stopped.ok()) << Message(stopped);
  EXPECT_THAT(Told("strict"), HasSubstr("past is stopped: it has not been through the queue"));
  EXPECT_THAT(Told("lab"), HasSubstr("past runs in a managed namespace"));
  EXPECT_EQ(Told("meant"), "");
  EXPECT_TRUE(IsThere("lab"));
  EXPECT_TRUE(IsThere("meant"));
  const auto doctor = system_->Fluxqueue({"doctor"});
  ASSERT_TRUE(doctor.ok()) << Message(doctor.status());
  EXPECT_THAT(doctor->output,
              AllOf(HasSubstr("have not been through it: lab/past\n"), Not(HasSubstr("meant"))));
  ExpectAllLive("after-bypass");
}

}  // namespace
}  // namespace fluxqueue::e2e
