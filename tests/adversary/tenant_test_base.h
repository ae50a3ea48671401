// A tenant, mallory, with the role `edit` in a managed namespace (lab) and in one that is not
// (evil), and nothing else. Alice's jobs run in the namespace e2e.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {

inline constexpr const char* kTenants = R"(apiVersion: v1
kind: Namespace
metadata: {name: evil}
---
apiVersion: v1
kind: Namespace
metadata: {name: lab, labels: {fluxqueue.io/managed: "true"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mallory, namespace: evil}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mallory, namespace: lab}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
)";

class TenantTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartTenants("kill_wait: 5s\n"); }

  // `binder`: lines of YAML for its own section.
  static void StartTenants(const std::string& binder) {
    StartSystem({.nodes = 3, .sections = {{"binder", binder}}});
    if (system_ == nullptr) return;
    const auto made = system_->Kubectl({"apply", "-f", "-"}, kTenants);
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }

  absl::StatusOr<std::string> AsMallory(std::vector<std::string> arguments,
                                        const std::string& input = "") {
    arguments.insert(arguments.begin(), "--as=mallory");
    return system_->Kubectl(arguments, input);
  }
  // He may, and it is done.
  void Creates(const std::string& yaml) {
    const auto made = AsMallory({"create", "-f", "-"}, yaml);
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }
  void IsRefused(const std::string& yaml, const std::string& says) {
    const auto made = AsMallory({"create", "-f", "-"}, yaml);
    EXPECT_FALSE(made.ok()) << yaml;
    EXPECT_THAT(Message(made.status()), ::testing::HasSubstr(says));
  }

  // More rights than the role `edit` has, in the namespace lab. `verbs`: "get,patch".
  void GiveMallory(const std::string& verbs, const std::string& resource) {
    const std::string name = "mallory-" + resource.substr(resource.find('/') + 1) + "-of-" +
                             resource.substr(0, resource.find('/'));
    const auto role = system_->Kubectl(
        {"create", "role", name, "--namespace=lab", "--verb=" + verbs, "--resource=" + resource});
    ASSERT_TRUE(role.ok()) << Message(role.status());
    const auto bound = system_->Kubectl(
        {"create", "rolebinding", name, "--namespace=lab", "--role=" + name, "--user=mallory"});
    ASSERT_TRUE(bound.ok()) << Message(bound.status());
  }

  // A right over the whole cluster, until it is taken.
  void GiveClusterRole(const std::string& role) {
    const auto given = system_->Kubectl(
        {"create", "clusterrolebinding", role, "--clusterrole=" + role, "--user=mallory"});
    ASSERT_TRUE(given.ok()) << Message(given.status());
  }
  void TakeClusterRole(const std::string& role) {
    const auto taken = system_->Kubectl({"delete", "clusterrolebinding", role});
    ASSERT_TRUE(taken.ok()) << Message(taken.status());
  }

  // Of the object, "" when it is not there; `path`: ".spec.nodeName".
  static std::string Look(const std::string& kind,
                          const std::string& name,
                          const std::string& path,
                          const std::string& space = "lab") {
    const auto found = system_->Kubectl(
        {"get", kind, name, "--namespace=" + space, "-o", "jsonpath={" + path + "}"});
    return found.ok() ? *found : "";
  }
  // The name of the first pod of the Job.
  static std::string PodOfJob(const std::string& job, const std::string& space = "lab") {
    const auto pod = system_->Kubectl({"get",
                                       "pods",
                                       "--namespace=" + space,
                                       "--selector=batch.kubernetes.io/job-name=" + job,
                                       "-o",
                                       "jsonpath={.items[0].metadata.name}"});
    EXPECT_TRUE(pod.ok()) << Message(pod.status());
    return pod.ok() ? *pod : "";
  }
  void ExpectEvent(const std::string& says, const std::string& space = "lab") {
    const absl::Status told = system_->WaitFor(
        [&] {
          const auto events =
              system_->Kubectl({"get", "events", "--namespace=" + space, "-o", "json"});
          return events.ok() && events->find(says) != std::string::npos;
        },
        std::chrono::seconds(60),
        [&] { return fmt::format("an Event in {} that says: {}", space, says); });
    EXPECT_TRUE(told.ok()) << Message(told);
  }

  std::string NodeOf(int number) {
    const auto name = system_->Kubectl(
        {"get", "nodes", "-o", fmt::format("jsonpath={{.items[{}].metadata.name}}", number)});
    EXPECT_TRUE(name.ok()) << Message(name.status());
    return name.ok() ? *name : "";
  }
  std::string JobIdOf(const std::string& name) { return Field(name, "job_id"); }
  std::string AttemptOf(const std::string& name) { return Field(name, "attempt"); }

  // Time enough for a pod to be seen and for what follows from it; then a job of alice's runs from
  // one end to the other, which takes every service.
  void ExpectAllLive(const std::string& job) {
    Apply(JobYaml(job));
    ExpectState(job, "Succeeded");
    for (const char* service : {"admission", "queue", "matcher", "binder", "cleanup"}) {
      const auto ready = system_->Readiness(service);
      EXPECT_TRUE(ready.ok()) << service << ": " << Message(ready.status());
    }
  }
};

}  // namespace fluxqueue::e2e
