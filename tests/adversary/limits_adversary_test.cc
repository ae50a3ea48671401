// Objects that are dear to change, and pods that do not end: neither keeps slots, nor the binder
// from others' jobs.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/adversary/tenant_test_base.h"

#include "fmt/format.h"

namespace fluxqueue::e2e {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// `"x0": "", "x1": ""`
std::string Annotations(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}\"x{}\": \"\"", i == 0 ? "" : ", ", i);
  return text;
}

// `inner`: annotations of its pods. `grace`: terminationGracePeriodSeconds.
std::string Job(const std::string& name,
                const std::string& annotations,
                const std::string& inner = "",
                int grace = 30) {
  return fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata: {{name: {}, namespace: lab, annotations: {{{}}}}}
spec:
  backoffLimit: 0
  template:
    metadata: {{annotations: {{fluxqueue.io/run-seconds: "600"{}}}}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: {}
      containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: 500m}}}}}}]
)",
                     name,
                     annotations,
                     inner.empty() ? "" : ", " + inner,
                     grace);
}

class LimitsTest : public TenantTest {
 protected:
  static constexpr int kYear = 31'536'000;

  // `user`: empty for the administrator.
  static absl::StatusOr<std::string> Annotate(const std::string& user,
                                              const std::string& job,
                                              int count) {
    std::vector<std::string> arguments = {
        "patch", "job", job, "--namespace=lab", "--type=merge", "--patch-file=/dev/stdin"};
    if (!user.empty()) arguments.insert(arguments.begin(), "--as=" + user);
    return system_->Kubectl(
        arguments, fmt::format(R"({{"metadata": {{"annotations": {{{}}}}}}})", Annotations(count)));
  }

  // A policy is in force some time after it was made.
  static absl::Status AwaitRefusal(std::vector<std::string> arguments, std::string_view why) {
    arguments.push_back("--dry-run=server");
    return system_->WaitFor(
        [&] {
          const auto tried = system_->Kubectl(arguments);
          return Message(tried.status()).find(why) != std::string_view::npos;
        },
        seconds(60),
        [] { return "the policy to be in force"; });
  }
};

TEST_F(LimitsTest, WhatIsInTheQueueHasSoManyAnnotationsAndNoMore) {
  const std::string many = Annotations(600);
  IsRefused(Job("many", many), "these are 600, and what is queued may have 500");
  IsRefused(Job("many", "", many), "spec.template.metadata.annotations: these are 601");
  IsRefused(fmt::format(R"(apiVersion: apps/v1
kind: Deployment
metadata: {{name: many, namespace: lab}}
spec:
  selector: {{matchLabels: {{app: many}}}}
  template:
    metadata: {{labels: {{app: many}}, annotations: {{{}}}}}
    spec: {{containers: [{{name: main, image: busybox}}]}}
)",
                        many),
            "these are 600");
  Creates(Job("few", "fluxqueue.io/hold: \"true\""));
  ExpectReason("few", "Held");
  const auto more = Annotate("mallory", "few", 600);
  EXPECT_THAT(Message(more.status()), HasSubstr("has up to 500 annotations"));
  const auto gone = AsMallory({"delete", "job", "few", "--namespace=lab"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
  ExpectState("few", "Cancelled");
}

// Its binder waits longer before it deletes pods itself: a change of such a Job takes the API
// server 4 s, and more on a busy machine.
class DearTest : public LimitsTest {
 protected:
  static void SetUpTestSuite() { StartTenants("kill_wait: 60s\n"); }
};

// From before there was a bound. A loop over them took the API server 13 s more for each change,
// which is longer than the binder waits for an answer.
TEST_F(DearTest, AJobOfManyAnnotationsIsStoppedAsAnyOther) {
  Creates(Job("dear", ""));
  ExpectState("dear", "Running");
  const auto away =
      system_->Kubectl({"delete", "validatingadmissionpolicybinding", "fluxqueue-keys"});
  ASSERT_TRUE(away.ok()) << Message(away.status());
  absl::StatusOr<std::string> dear;
  const absl::Status grown = system_->WaitFor(
      [&] { return (dear = Annotate("", "dear", 40'000)).ok(); },
      seconds(60),
      [&] { return "the Job to have many annotations: " + std::string(Message(dear.status())); });
  ASSERT_TRUE(grown.ok()) << Message(grown);
  Apply(R"(apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: fluxqueue-keys}
spec: {policyName: fluxqueue-keys, validationActions: [Deny]}
)");
  const absl::Status in_force =
      AwaitRefusal({"--as=mallory", "annotate", "job/dear", "--namespace=lab", "more=than-before"},
                   "has up to 500 annotations");
  ASSERT_TRUE(in_force.ok()) << Message(in_force);
  const auto cancelled =
      AsMallory({"label", "job/dear", "--namespace=lab", "fluxqueue.io/cancel=true"});
  ASSERT_TRUE(cancelled.ok()) << Message(cancelled.status());
  ExpectState("dear", "Cancelled", seconds(90));
  EXPECT_EQ(Look("job", "dear", ".spec.suspend"), "true");
  ExpectAllLive("after-dear");
  const auto gone = AsMallory({"delete", "job", "dear", "--namespace=lab"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

// The API server refuses to change it for good.
TEST_F(LimitsTest, AJobThatCannotBeSuspendedKeepsNoSlots) {
  Apply(R"(apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: stubborn}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {operations: [UPDATE], apiGroups: [batch], apiVersions: [v1], resources: [jobs]}
  validations:
    - {expression: "object.metadata.name != 'stubborn' || !object.spec.suspend", message: never}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: stubborn}
spec: {policyName: stubborn, validationActions: [Deny]}
)");
  Creates(Job("stubborn", ""));
  ExpectState("stubborn", "Running");
  const absl::Status in_force = AwaitRefusal(
      {"patch", "job", "stubborn", "--namespace=lab", R"(--patch={"spec": {"suspend": true}})"},
      "never");
  ASSERT_TRUE(in_force.ok()) << Message(in_force);
  const auto cancelled =
      AsMallory({"annotate", "job/stubborn", "--namespace=lab", "fluxqueue.io/cancel=true"});
  ASSERT_TRUE(cancelled.ok()) << Message(cancelled.status());
  ExpectState("stubborn", "Cancelled", seconds(90));
  EXPECT_EQ(Look("job", "stubborn", ".spec.suspend"), "false");
  for (const char* kind :
       {"validatingadmissionpolicybinding/stubborn", "validatingadmissionpolicy/stubborn"}) {
    EXPECT_TRUE(system_->Kubectl({"delete", kind}).ok());
  }
  EXPECT_TRUE(AsMallory({"delete", "job", "stubborn", "--namespace=lab"}).ok());
}

// The binder waits for 5 s here (tenant_test_base.h).
TEST_F(LimitsTest, AGraceOfAYearEndsWithTheStop) {
  Creates(Job("year", "", "", kYear));
  ExpectState("year", "Running");
  const auto gone = AsMallory({"delete", "job", "year", "--namespace=lab", "--wait=false"});
  ASSERT_TRUE(gone.ok()) << Message(gone.status());
  ExpectState("year", "Cancelled", seconds(60));
}

// It has been told to go, and does not: it keeps its slot as long as its job may run, and no
// longer.
TEST_F(LimitsTest, APodThatItsUserDeletedRunsOnUntilItsJobIsStopped) {
  Creates(fmt::format(R"(apiVersion: v1
kind: Pod
metadata: {{name: going, namespace: lab, annotations: {{fluxqueue.io/run-seconds: "600"}}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: {}
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: 500m}}}}}}]
)",
                      kYear));
  ExpectState("going", "Running");
  const auto gone = AsMallory({"delete", "pod", "going", "--namespace=lab", "--wait=false"});
  ASSERT_TRUE(gone.ok()) << Message(gone.status());
  ExpectAllLive("beside-going");
  EXPECT_EQ(StateOf("going"), "Running");
  const auto cancelled =
      AsMallory({"annotate", "pod/going", "--namespace=lab", "fluxqueue.io/cancel=true"});
  ASSERT_TRUE(cancelled.ok()) << Message(cancelled.status());
  ExpectState("going", "Cancelled", seconds(60));
  EXPECT_EQ(Look("pod", "going", ".metadata.name"), "");
}

}  // namespace
}  // namespace fluxqueue::e2e
