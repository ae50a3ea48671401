// Pods that keep rules between each other, and host ports, on a whole system.
#include <string>
#include <vector>

#include <absl/strings/str_split.h>
#include <gmock/gmock.h>

#include "tests/e2e/workloads_fixture.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

// A pod that runs until it is deleted.
std::string PodYaml(const std::string& name, const std::string& app, const std::string& spec) {
  return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: e2e
  labels: {{app: {}}}
  annotations: {{fluxqueue.io/run-seconds: "600"}}
spec:
  restartPolicy: Never
  containers: [{{name: main, image: busybox}}]
  {}
---
)",
                     name,
                     app,
                     spec);
}

std::string Rule(const std::string& kind, const std::string& app) {
  return fmt::format(
      "affinity: {{{}: {{requiredDuringSchedulingIgnoredDuringExecution: "
      "[{{topologyKey: kubernetes.io/hostname, "
      "labelSelector: {{matchLabels: {{app: {}}}}}}}]}}}}",
      kind,
      app);
}

TEST_F(WorkloadsTest, PodsKeepTheRulesBetweenThem) {
  Apply(fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata: {{name: apart, namespace: e2e, annotations: {{fluxqueue.io/run-seconds: "600"}}}}
spec:
  parallelism: 3
  completions: 3
  template:
    metadata: {{labels: {{app: apart}}, annotations: {{fluxqueue.io/run-seconds: "600"}}}}
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: busybox}}]
      {}
)",
                    Rule("podAntiAffinity", "apart")));
  ExpectState("apart", "Running");
  const std::vector<std::string> taken = NodesOf("apart");
  EXPECT_EQ(taken.size(), 3u) << "each pod of the gang has a node of its own";
  // Its rule keeps away those that have none; and theirs keeps them from it.
  Apply(PodYaml("like", "apart", "terminationGracePeriodSeconds: 0"));
  Apply(PodYaml("shy", "shy", Rule("podAntiAffinity", "apart")));
  Apply(PodYaml("friend", "friend", Rule("podAffinity", "apart")));
  ExpectState("friend", "Running");
  EXPECT_THAT(taken, Contains(NodesOf("friend").at(0)));
  // One of these two has the fourth node, and the other waits for it.
  ExpectOneWaits("name IN ('like', 'shy')", 1, "%rules between pods%");
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "apart", "-n", "e2e"}).ok());
  ExpectState("apart", "Cancelled", std::chrono::seconds(60));
  ExpectState("like", "Running");
  ExpectState("shy", "Running");
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "like", "shy", "friend", "-n", "e2e"}).ok());
}

// The pool's policy would put them on one node.
TEST_F(WorkloadsTest, PodsGoWhereTheyPreferToBe) {
  Apply(R"(apiVersion: apps/v1
kind: Deployment
metadata: {name: spread, namespace: e2e}
spec:
  replicas: 4
  selector: {matchLabels: {app: spread}}
  template:
    metadata: {labels: {app: spread}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: busybox}]
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: {matchLabels: {app: spread}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: rather-apart, namespace: e2e}
spec:
  parallelism: 4
  completions: 4
  template:
    metadata: {labels: {app: rather}, annotations: {fluxqueue.io/run-seconds: "1"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector: {matchLabels: {app: rather}}
)");
  ExpectState("rather-apart", "Succeeded");
  ExpectShown(
      {"get", "deployment", "spread", "-n", "e2e", "-o", "jsonpath={.status.readyReplicas}"},
      "4",
      std::chrono::seconds(60));
  EXPECT_THAT(PodNodes("app=spread"), SizeIs(4));
  EXPECT_THAT(PodNodes("app=rather"), SizeIs(4));
  ASSERT_TRUE(system_->Kubectl({"delete", "deployment", "spread", "-n", "e2e"}).ok());
}

TEST_F(WorkloadsTest, AHostPortIsOnceOnANode) {
  // A pod that is not ours has the port of one node.
  const std::string port = "ports: [{containerPort: 80, hostPort: 8080}]";
  const auto nodes = system_->Kubectl({"get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"});
  ASSERT_TRUE(nodes.ok()) << Message(nodes.status());
  std::string foreign = PodYaml("foreign", "foreign", "nodeName: " + *nodes);
  const auto with_port = [&port](std::string yaml) {
    yaml.replace(yaml.find("image: busybox"), 14, "image: busybox, " + port);
    return yaml;
  };
  foreign.replace(
      foreign.find("app: foreign"), 12, "app: foreign, fluxqueue.io/managed: \"false\"");
  Apply(with_port(foreign));
  const absl::Status seen = system_->WaitFor(
      [&] {
        return Count(
                   "matcher.graph_nodes WHERE encode(node, 'escape') LIKE '%hostport-8080-tcp%'") ==
               1;
      },
      std::chrono::seconds(60),
      [] { return "cleanup says that the port is taken"; });
  EXPECT_TRUE(seen.ok()) << Message(seen);
  for (int i = 0; i < 4; ++i) {
    Apply(
        with_port(PodYaml(fmt::format("port-{}", i), "port", "terminationGracePeriodSeconds: 0")));
  }
  ExpectOneWaits("name LIKE 'port-%'", 3, "hostport-8080-tcp:%");
  EXPECT_THAT(NodesOf("port-%"), SizeIs(3));
  ASSERT_TRUE(
      system_
          ->Kubectl(
              {"delete", "pod", "foreign", "port-0", "port-1", "port-2", "port-3", "-n", "e2e"})
          .ok());
  for (int i = 0; i < 4; ++i) {
    ExpectState(fmt::format("port-{}", i), "Cancelled", std::chrono::seconds(60));
  }
}

}  // namespace
}  // namespace fluxqueue::e2e
