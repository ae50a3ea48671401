// One system of four nodes for all tests of workloads, and the objects that they make.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {

class WorkloadsTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 4,
                 .sections = {{"queue", "flux_jobs: {told_after: 1s}\n"},
                              {"binder", "provision: [default=atomic.example.com]\n"}}});
  }

  // Of the queue's Events on the Job: their reasons, and what they say, one a line.
  static std::string EventsOf(const std::string& job) {
    const auto events = system_->Kubectl({"get",
                                          "events",
                                          "-n",
                                          "e2e",
                                          "--field-selector",
                                          "involvedObject.kind=Job,involvedObject.name=" + job,
                                          "-o",
                                          "jsonpath={range .items[?(@.reportingComponent=="
                                          "\"fluxqueue.io/queue\")]}{.reason}: {.message}{\"\\n\"}"
                                          "{end}"});
    return events.ok() ? *events : std::string(Message(events.status()));
  }

  // What kubectl says, in the end.
  static void ExpectShown(const std::vector<std::string>& command,
                          const std::string& wanted,
                          std::chrono::seconds deadline = std::chrono::seconds(30)) {
    std::string shown;
    const absl::Status status = system_->WaitFor(
        [&] {
          shown = system_->Kubectl(command).value_or("");
          return absl::StripAsciiWhitespace(shown) == wanted;
        },
        deadline,
        [&] { return fmt::format("'{}', not '{}'", wanted, shown); });
    EXPECT_TRUE(status.ok()) << Message(status);
  }

  // Each once, of the slots of jobs whose names are LIKE this.
  static std::vector<std::string> NodesOf(const std::string& jobs) {
    const auto nodes =
        system_->QueryOne(fmt::format("SELECT string_agg(DISTINCT s.node, ' ') FROM binder.slots s "
                                      "JOIN queue.jobs j USING (job_id) WHERE j.name LIKE '{}'",
                                      jobs));
    return absl::StrSplit(nodes.value_or(""), ' ');
  }

  // Each once, of the pods that the selector selects.
  static std::set<std::string> PodNodes(const std::string& selector) {
    const auto nodes = system_->Kubectl(
        {"get", "pods", "-n", "e2e", "-l", selector, "-o", "jsonpath={.items[*].spec.nodeName}"});
    return absl::StrSplit(nodes.value_or(""), ' ', absl::SkipEmpty());
  }

  // In the end `run` of the jobs that meet the condition run, and one waits with a message that
  // is LIKE this.
  void ExpectOneWaits(const std::string& jobs, int run, const std::string& message) {
    const std::string of = "queue.jobs WHERE " + jobs;
    const absl::Status status = system_->WaitFor(
        [&] {
          return Count(of + " AND state = 'Running'") == run &&
                 Count(of + " AND state = 'Pending' AND message LIKE '" + message + "'") == 1;
        },
        std::chrono::seconds(60),
        [&] {
          return system_
              ->QueryOne("SELECT string_agg(name || ' ' || state || ' ' || message, '; ') FROM " +
                         of)
              .value_or("");
        });
    EXPECT_TRUE(status.ok()) << Message(status);
  }

  // A kind of which nothing is checked.
  static void DefineKind(const std::string& kind,
                         const std::string& plural,
                         const std::string& group,
                         const std::string& version) {
    const std::string name = fmt::format("{}.{}", plural, group);
    const auto made = system_->Kubectl({"create", "-f", "-"},
                                       fmt::format(R"(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {}, annotations: {{api-approved.kubernetes.io: "unapproved, a test"}}}}
spec:
  group: {}
  scope: Namespaced
  names: {{kind: {}, plural: {}, singular: {}}}
  versions:
    - name: {}
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
)",
                                                   name,
                                                   group,
                                                   kind,
                                                   plural,
                                                   absl::AsciiStrToLower(kind),
                                                   version));
    ASSERT_TRUE(made.ok()) << Message(made.status());
    const auto served = system_->Kubectl({"wait", "crd", name, "--for=condition=established"});
    ASSERT_TRUE(served.ok()) << Message(served.status());
  }

  // `labels`: of their pods.
  static std::string JobOf(const std::string& name,
                           int pods,
                           const std::string& labels,
                           const std::string& owners = "[]") {
    return fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata: {{name: {}, namespace: e2e, ownerReferences: {}}}
spec:
  parallelism: {}
  completions: {}
  template:
    metadata: {{labels: {}, annotations: {{fluxqueue.io/run-seconds: "1"}}}}
    spec: {{restartPolicy: Never, containers: [{{name: main, image: busybox}}]}}
---
)",
                       name,
                       owners,
                       pods,
                       pods,
                       labels);
  }
  static std::string PodOf(const std::string& name, const std::string& labels) {
    return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: e2e
  labels: {}
  annotations: {{fluxqueue.io/run-seconds: "1"}}
spec: {{restartPolicy: Never, containers: [{{name: main, image: busybox}}]}}
---
)",
                       name,
                       labels);
  }
};

}  // namespace fluxqueue::e2e
