// To have others charged for what a controller makes, and to submit in their name.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/adversary/tenant_test_base.h"

#include "fmt/format.h"

namespace fluxqueue::e2e {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// Alice has the same rights in the namespace lab as mallory.
constexpr const char* kAlice = R"(apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: alice, namespace: lab}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
)";

// `annotations`: of the template.
std::string Deployment(const std::string& name,
                       const std::string& annotations = "",
                       const std::string& space = "lab") {
  return fmt::format(R"(apiVersion: apps/v1
kind: Deployment
metadata: {{name: {0}, namespace: {2}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    metadata:
      labels: {{app: {0}}}
      annotations: {{fluxqueue.io/run-seconds: "600"{1}}}
    spec:
      containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: 500m}}}}}}]
)",
                     name,
                     annotations,
                     space);
}

class StampsTest : public TenantTest {
 protected:
  static void SetUpTestSuite() {
    TenantTest::SetUpTestSuite();
    if (system_ == nullptr) return;
    const auto made = system_->Kubectl({"apply", "-f", "-"}, kAlice);
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }

  absl::StatusOr<std::string> As(const std::string& user,
                                 std::vector<std::string> arguments,
                                 const std::string& input = "") {
    arguments.insert(arguments.begin(), "--as=" + user);
    return system_->Kubectl(arguments, input);
  }
  absl::StatusOr<std::string> Patch(const std::string& user,
                                    const std::string& name,
                                    const std::string& annotations) {
    return As(user,
              {"patch",
               "deployment",
               name,
               "-n",
               "lab",
               "-p",
               fmt::format(R"({{"spec":{{"template":{{"metadata":{{"annotations":{{{}}}}}}}}}}})",
                           annotations)});
  }
  std::string StampOf(const std::string& kind, const std::string& name, const std::string& path) {
    const auto stamp =
        system_->Kubectl({"get",
                          kind,
                          name,
                          "-n",
                          "lab",
                          "-o",
                          "jsonpath={" + path + R"(.metadata.annotations.fluxqueue\.io/user})"});
    EXPECT_TRUE(stamp.ok()) << Message(stamp.status());
    return stamp.ok() ? *stamp : "";
  }
  void ExpectJobOf(const std::string& name, const std::string& user) {
    const auto jobs = [&] {
      return Count(
          fmt::format("queue.jobs WHERE name LIKE '{}-%' AND username = '{}'", name, user));
    };
    const absl::Status counted =
        system_->WaitFor([&] { return jobs() > 0; },
                         seconds(60),
                         [&] { return fmt::format("a pod of {} to be a job of {}", name, user); });
    EXPECT_TRUE(counted.ok()) << Message(counted);
  }
};

TEST_F(StampsTest, WhoMakesADeploymentIsChargedForItsPods) {
  Creates(Deployment("forged", ", fluxqueue.io/user: alice"));
  EXPECT_EQ(StampOf("deployment", "forged", ".spec.template"), "mallory");
  ExpectJobOf("forged", "mallory");
  Creates(R"(apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: lab}
spec:
  schedule: "0 0 29 2 *"
  jobTemplate:
    metadata: {annotations: {fluxqueue.io/user: alice}}
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
)");
  EXPECT_EQ(StampOf("cronjob", "nightly", ".spec.jobTemplate"), "mallory");
}

TEST_F(StampsTest, ATemplateNamesNobodyElse) {
  Creates(Deployment("mine"));
  const auto renamed = Patch("mallory", "mine", R"("fluxqueue.io/user":"alice")");
  EXPECT_THAT(Message(renamed.status()), HasSubstr("for whom its pods are made"));
  const auto admitted = Patch("mallory", "mine", R"("fluxqueue.io/admitted-to":"hers")");
  EXPECT_THAT(Message(admitted.status()), HasSubstr("own record"));
  // Where the webhook does not look, before the namespace becomes a managed one.
  IsRefused(Deployment("early", ", fluxqueue.io/user: alice", "evil"),
            "for whom its pods are made");
  IsRefused(Deployment("early", ", fluxqueue.io/admitted-to: hers", "evil"), "own record");
  // Without a name its pods are the namespace's, which is one user, however many owners it has.
  const auto dropped = Patch("mallory", "mine", R"("fluxqueue.io/user":null)");
  ASSERT_TRUE(dropped.ok()) << Message(dropped.status());
  ExpectJobOf("mine", "namespace:lab");
}

TEST_F(StampsTest, WhoMovesAnothersDeploymentAsksForItself) {
  MakeQueue("hers", "{subjects: [{kind: User, name: alice, verbs: [submit]}]}");
  const auto made = As("alice", {"create", "-f", "-"}, Deployment("hers"));
  ASSERT_TRUE(made.ok()) << Message(made.status());
  const auto moved = Patch("mallory", "hers", R"("fluxqueue.io/queue":"hers")");
  EXPECT_THAT(Message(moved.status()), HasSubstr("asks for that in his name"));
  const auto own =
      Patch("mallory", "hers", R"("fluxqueue.io/queue":"hers","fluxqueue.io/user":"mallory")");
  EXPECT_THAT(Message(own.status()), HasSubstr("asks for that in his name"));
  const auto urgent =
      Patch("mallory", "hers", R"("fluxqueue.io/qos":"urgent","fluxqueue.io/user":"alice")");
  EXPECT_FALSE(urgent.ok());
  // Alice may.
  const auto back =
      Patch("alice", "hers", R"("fluxqueue.io/queue":"hers","fluxqueue.io/user":"alice")");
  ASSERT_TRUE(back.ok()) << Message(back.status());
  ExpectJobOf("hers", "alice");
}

// His requests would be hers: more pods, larger ones, earlier ones.
TEST_F(StampsTest, WhoMakesAnothersWorkLargerAsksForItself) {
  const auto made = As("alice", {"create", "-f", "-"}, Deployment("large"));
  ASSERT_TRUE(made.ok()) << Message(made.status());
  ExpectJobOf("large", "alice");
  const auto patch = [&](const std::string& user, const char* what, const std::string& spec) {
    return As(user, {"patch", what, "-n", "lab", "-p", R"({"spec":)" + spec + "}"});
  };
  const auto scale = [&](const std::string& user, int replicas) {
    return As(user,
              {"scale", "deployment/large", "-n", "lab", fmt::format("--replicas={}", replicas)});
  };
  // The controller of Deployments would scale what there is of the old template, too.
  const std::string pods = R"({"template":{"spec":{"containers":[{"name":"main",)";
  for (const std::string& more : std::vector<std::string>{
           R"({"replicas":3})",
           R"({"template":{"metadata":{"annotations":{"fluxqueue.io/user":"mallory"}}}})",
           R"({"template":{"metadata":{"annotations":{"fluxqueue.io/priority":"900"}}}})",
           R"({"template":{"spec":{"priorityClassName":"system-cluster-critical"}}})",
           R"({"strategy":{"rollingUpdate":{"maxSurge":1000}}})",
           pods + R"("resources":{"requests":{"cpu":"2"}}}]}}})",
           pods + R"("image":"b:2"}],"initContainers":[{"name":"side","image":"b",)"
                  R"("restartPolicy":"Always"}]}}})"}) {
    EXPECT_THAT(Message(patch("mallory", "deployment/large", more).status()),
                HasSubstr("asks for that in his name"))
        << more;
  }
  EXPECT_THAT(Message(scale("mallory", 3).status()), HasSubstr("asks for these in his name"));
  const auto autoscale = [&](const std::string& user) {
    return As(user, {"create", "--dry-run=server", "-f", "-"}, R"(apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: large, namespace: lab}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: large}
  minReplicas: 3
  maxReplicas: 9
)");
  };
  EXPECT_THAT(Message(autoscale("mallory").status()), HasSubstr("asks for these in his name"));
  const auto hers = autoscale("alice");
  EXPECT_TRUE(hers.ok()) << Message(hers.status());
  GiveClusterRole("fluxqueue-autoscaler");
  const absl::Status may = system_->WaitFor([&] { return autoscale("mallory").ok(); },
                                            seconds(20),
                                            [] { return "a trusted autoscaler to be let"; });
  EXPECT_TRUE(may.ok()) << Message(may);
  TakeClusterRole("fluxqueue-autoscaler");
  const absl::Status not_any_more = system_->WaitFor([&] { return !autoscale("mallory").ok(); },
                                                     seconds(20),
                                                     [] { return "mallory's right to be gone"; });
  EXPECT_TRUE(not_any_more.ok()) << Message(not_any_more);
  // What asks for no more, anybody may have who may change it; an administrator, an autoscaler
  // more.
  for (const auto& [user, replicas] :
       std::vector<std::pair<std::string, int>>{{"mallory", 0}, {"alice", 1}}) {
    const auto scaled = scale(user, replicas);
    EXPECT_TRUE(scaled.ok()) << user << ": " << Message(scaled.status());
  }
  for (const std::string user :
       {"admin", "system:serviceaccount:kube-system:horizontal-pod-autoscaler"}) {
    const auto scaled = system_->Kubectl({"scale",
                                          "deployment/large",
                                          "-n",
                                          "lab",
                                          "--replicas=2",
                                          "--current-replicas=1",
                                          "--as=" + user,
                                          "--as-group=system:masters"});
    EXPECT_TRUE(scaled.ok()) << user << ": " << Message(scaled.status());
    EXPECT_TRUE(scale("alice", 1).ok());
  }
  const auto image = patch("mallory", "deployment/large", pods + R"("image":"b:2"}]}}})");
  EXPECT_TRUE(image.ok()) << Message(image.status());
  const auto job = As("alice", {"create", "-f", "-"}, R"(apiVersion: batch/v1
kind: Job
metadata: {name: wide, namespace: lab, annotations: {fluxqueue.io/hold: "true"}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
)");
  ASSERT_TRUE(job.ok()) << Message(job.status());
  EXPECT_THAT(Message(patch("mallory", "job/wide", R"({"parallelism":3})").status()),
              HasSubstr("asks for that in his name"));
  EXPECT_THAT(Message(patch("mallory", "job/wide", R"({"activeDeadlineSeconds":60})").status()),
              HasSubstr("asks for that in his name"));
  const auto urgent =
      As("mallory", {"annotate", "job/wide", "-n", "lab", "fluxqueue.io/priority=900"});
  EXPECT_THAT(Message(urgent.status()), HasSubstr("asks for that in his name"));
  const auto wider = patch("alice", "job/wide", R"({"parallelism":3})");
  EXPECT_TRUE(wider.ok()) << Message(wider.status());
}

// What her template was admitted to by her name is not his when he puts his own there.
TEST_F(StampsTest, WhoTakesATemplateOverDoesNotGetItsRights) {
  MakeQueue("club", "{subjects: [{kind: User, name: alice, verbs: [submit]}]}");
  const auto made =
      As("alice", {"create", "-f", "-"}, Deployment("club", ", fluxqueue.io/queue: club"));
  ASSERT_TRUE(made.ok()) << Message(made.status());
  ExpectJobOf("club", "alice");
  const auto taken = Patch("mallory", "club", R"("fluxqueue.io/user":"mallory")");
  EXPECT_THAT(Message(taken.status()), HasSubstr("own record of its maker"));
  const auto classed = Patch("mallory", "club", R"("fluxqueue.io/qos":"urgent")");
  EXPECT_THAT(Message(classed.status()), HasSubstr("asks for that in his name"));
}

// A Job takes what its own keys do not say from those of its pods.
TEST_F(StampsTest, ACronJobIsNotMovedByTheTemplateOfItsPods) {
  const auto made = As("alice", {"create", "-f", "-"}, R"(apiVersion: batch/v1
kind: CronJob
metadata: {name: weekly, namespace: lab}
spec:
  schedule: "0 0 29 2 *"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
)");
  ASSERT_TRUE(made.ok()) << Message(made.status());
  const auto moved = As("mallory",
                        {"patch",
                         "cronjob",
                         "weekly",
                         "-n",
                         "lab",
                         "-p",
                         R"({"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"annotations":)"
                         R"({"fluxqueue.io/queue":"hers"}}}}}}})"});
  EXPECT_THAT(Message(moved.status()), HasSubstr("asks for that in his name"));
  for (const char* more : {R"({"schedule":"* * * * *"})",
                           R"({"jobTemplate":{"spec":{"parallelism":9}}})",
                           R"({"jobTemplate":{"spec":{"completions":9}}})"}) {
    const auto larger = As(
        "mallory",
        {"patch", "cronjob", "weekly", "-n", "lab", "-p", fmt::format(R"({{"spec":{}}})", more)});
    EXPECT_THAT(Message(larger.status()), HasSubstr("asks for that in his name")) << more;
  }
  const auto suspended = As(
      "mallory", {"patch", "cronjob", "weekly", "-n", "lab", "-p", R"({"spec":{"suspend":true}})"});
  EXPECT_TRUE(suspended.ok()) << Message(suspended.status());
  const auto resumed =
      As("mallory",
         {"patch", "cronjob", "weekly", "-n", "lab", "-p", R"({"spec":{"suspend":false}})"});
  EXPECT_THAT(Message(resumed.status()), HasSubstr("asks for that in his name"));
}

// A deadline of ours is no wish of his, so that one that he says is ours would hide his own.
TEST_F(StampsTest, OurRecordOfAJobIsNotHisToWrite) {
  const auto job = [](const char* name, const char* space, const char* held, const char* more) {
    return fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata:
  name: {}
  namespace: {}
  labels: {{fluxqueue.io/queue: default{}}}
  annotations: {{fluxqueue.io/user: mallory{}}}
spec:
  activeDeadlineSeconds: 7200
  template:
    metadata: {{labels: {{team: blue{}}}, annotations: {{fluxqueue.io/job-id: other}}}}
    spec:
      schedulerName: fluxqueue
      restartPolicy: Never
      containers: [{{name: main, image: busybox}}]
)",
                       name,
                       space,
                       held,
                       more,
                       held);
  };
  const char* deadline = ", fluxqueue.io/deadline: \"7200\", fluxqueue.io/fenced: \"1\"";
  Creates(job("recorded", "lab", "", deadline));
  const auto annotations =
      system_->Kubectl({"get",
                        "job",
                        "recorded",
                        "-n",
                        "lab",
                        "-o",
                        "jsonpath={.metadata.annotations}{.spec.template.metadata.annotations}"});
  ASSERT_TRUE(annotations.ok()) << Message(annotations.status());
  EXPECT_THAT(*annotations, HasSubstr(R"("fluxqueue.io/user":"mallory")"));
  // Its own job's id we may have written since.
  for (const char* forged : {"deadline", "fenced", R"("fluxqueue.io/job-id":"other")"}) {
    EXPECT_THAT(*annotations, Not(HasSubstr(forged)));
  }
  // Past the webhook, where it may be away.
  ASSERT_TRUE(system_->KillService("admission").ok());
  const char* held = ", fluxqueue.io/held: direct";
  IsRefused(job("recorded", "evil", held, deadline), "own record of what it has taken in");
  IsRefused(job("recorded", "evil", held, ""), "own record of what it has taken in");
  ASSERT_TRUE(system_->StartService("admission").ok());
}

// In a namespace that is not managed, where a pod is made while the webhook is away.
TEST_F(StampsTest, WhosePlaceAPodTakesIsNotHisToSay) {
  ASSERT_TRUE(system_->KillService("admission").ok());
  IsRefused(R"(apiVersion: v1
kind: Pod
metadata:
  name: executor
  namespace: evil
  labels: {fluxqueue.io/held: direct, fluxqueue.io/queue: default}
  annotations: {fluxqueue.io/user: mallory, fluxqueue.io/place-of: of-another}
spec:
  schedulerName: fluxqueue
  containers: [{name: main, image: busybox}]
)",
            "own record of pods that it has taken in");
  ASSERT_TRUE(system_->StartService("admission").ok());
}

}  // namespace
}  // namespace fluxqueue::e2e
