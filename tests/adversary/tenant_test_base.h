// A tenant, mallory, with the role `edit` in a managed namespace (lab) and in one that is not
// (evil), and nothing else. Alice's jobs run in the namespace e2e.
#pragma once

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
  static void SetUpTestSuite() {
    StartSystem({.nodes = 3});
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
