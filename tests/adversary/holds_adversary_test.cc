// To have the label by which everybody knows what is in the queue, and to run all the same; to
// change what is recorded of a job, or another's job; to have jobs that nobody has made.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/adversary/tenant_test_base.h"

#include "fmt/format.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

// Of one pod that runs for ten minutes. `labels` and `annotations`: of the Job.
std::string Job(const std::string& name,
                const std::string& labels,
                const std::string& annotations,
                const std::string& template_labels = "") {
  return fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata: {{name: {}, namespace: lab, labels: {{{}}}, annotations: {{{}}}}}
spec:
  backoffLimit: 0
  template:
    metadata: {{labels: {{{}}}, annotations: {{fluxqueue.io/run-seconds: "600"}}}}
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: 500m}}}}}}]
)",
                     name,
                     labels,
                     annotations,
                     template_labels);
}

class HoldsTest : public TenantTest {
 protected:
  static void SetUpTestSuite() {
    TenantTest::SetUpTestSuite();
    if (system_ == nullptr) return;
    const auto made = system_->Kubectl({"create",
                                        "rolebinding",
                                        "alice",
                                        "--namespace=lab",
                                        "--clusterrole=edit",
                                        "--user=alice"});
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }

  void RefusedToPatch(const std::string& what,
                      const std::string& patch,
                      const std::string& says,
                      const std::string& subresource = "") {
    std::vector<std::string> arguments = {
        "patch", what, "--namespace=lab", "--type=merge", "-p", patch};
    if (!subresource.empty()) arguments.push_back("--subresource=" + subresource);
    const auto patched = AsMallory(arguments);
    EXPECT_FALSE(patched.ok()) << patch;
    EXPECT_THAT(Message(patched.status()), HasSubstr(says));
  }
  void Delete(const std::string& what) {
    const auto gone = system_->Kubectl({"delete", what, "--namespace=lab"});
    EXPECT_TRUE(gone.ok()) << Message(gone.status());
  }
};

// Who looks for pods that bypass the queue leaves out what is held.
TEST_F(HoldsTest, ALabelAloneHoldsNothing) {
  GiveClusterRole("fluxqueue-bypass");
  Creates(Job("masked", "fluxqueue.io/managed: \"false\"", "", "fluxqueue.io/held: direct"));
  ExpectEvent("nothing holds the pod");
  EXPECT_EQ(Look("job", "masked", ".status.active"), "");
  Delete("job/masked");
  TakeClusterRole("fluxqueue-bypass");
}

TEST_F(HoldsTest, AStatusIsNoWayToWhatIsRecorded) {
  GiveMallory("get,patch", "jobs.batch/status");
  GiveMallory("get,patch", "pods/status");
  // A Job without any label is given those of its template.
  Creates(Job("his", "team: blue", ""));
  ExpectState("his", "Running");
  const std::string pod = "pod/" + PodOfJob("his");
  RefusedToPatch("job/his",
                 R"({"metadata": {"annotations": {"fluxqueue.io/user": "alice"}}})",
                 "says who made the object",
                 "status");
  RefusedToPatch("job/his",
                 R"({"metadata": {"labels": {"fluxqueue.io/held": null}}})",
                 "cannot be put on or taken off",
                 "status");
  RefusedToPatch(pod,
                 R"({"metadata": {"annotations": {"fluxqueue.io/job-id": "another"}}})",
                 "own record of the object",
                 "status");
  RefusedToPatch(pod,
                 R"({"metadata": {"labels": {"fluxqueue.io/managed": "false"}}})",
                 "goes past its queue",
                 "status");
  // What is his to write he may.
  const auto noted = AsMallory({"patch",
                                pod,
                                "--namespace=lab",
                                "--subresource=status",
                                "--type=merge",
                                "-p",
                                R"({"metadata": {"annotations": {"note": "mine"}}})"});
  EXPECT_TRUE(noted.ok()) << Message(noted.status());
  Delete("job/his");
  ExpectState("his", "Cancelled");
}

TEST_F(HoldsTest, WhoMovesAnothersJobAsksForItsPlaceInHisName) {
  MakeQueue("alices", "{subjects: [{kind: User, name: alice, verbs: [submit]}]}");
  const auto made = system_->Kubectl({"--as=alice", "create", "-f", "-"},
                                     Job("waits", "", "fluxqueue.io/hold: \"true\""));
  ASSERT_TRUE(made.ok()) << Message(made.status());
  ExpectReason("waits", "Held");
  const std::string says = "asks for that in his name";
  RefusedToPatch(
      "job/waits", R"({"metadata": {"labels": {"fluxqueue.io/queue": "alices"}}})", says);
  RefusedToPatch(
      "job/waits", R"({"metadata": {"annotations": {"fluxqueue.io/queue": "alices"}}})", says);
  RefusedToPatch(
      "job/waits", R"({"metadata": {"annotations": {"fluxqueue.io/qos": "urgent"}}})", says);
  EXPECT_EQ(Field("waits", "queue"), "default");
  // Alice may, and other things of it mallory may change as before.
  const auto noted = AsMallory({"annotate", "job/waits", "--namespace=lab", "note=his"});
  EXPECT_TRUE(noted.ok()) << Message(noted.status());
  const auto moved = system_->Kubectl(
      {"--as=alice", "label", "job/waits", "--namespace=lab", "fluxqueue.io/queue=alices"});
  ASSERT_TRUE(moved.ok()) << Message(moved.status());
  const absl::Status there = system_->WaitFor([&] { return Field("waits", "queue") == "alices"; },
                                              std::chrono::seconds(30),
                                              [] { return "alice's job to be in her queue"; });
  EXPECT_TRUE(there.ok()) << Message(there);
  Delete("job/waits");
  ExpectState("waits", "Cancelled");
}

TEST_F(HoldsTest, APodThatItsJobLetsGoIsNobodysJob) {
  Creates(Job("parent", "", "fluxqueue.io/hold: \"true\""));
  ExpectReason("parent", "Held");
  const absl::Status waits =
      system_->WaitFor([&] { return Look("job", "parent", ".status.active") == "1"; },
                       std::chrono::seconds(30),
                       [] { return "the Job to have its pod"; });
  ASSERT_TRUE(waits.ok()) << Message(waits);
  const std::string pod = PodOfJob("parent");
  const auto orphaned =
      AsMallory({"delete", "job", "parent", "--namespace=lab", "--cascade=orphan"});
  ASSERT_TRUE(orphaned.ok()) << Message(orphaned.status());
  ExpectState("parent", "Cancelled");
  ExpectEvent("nothing says who made it");
  EXPECT_EQ(Count(fmt::format("queue.jobs WHERE name = '{}'", pod)), 0);
  EXPECT_EQ(Look("pod", pod, ".spec.nodeName"), "");
  Delete("pod/" + pod);
}

}  // namespace
}  // namespace fluxqueue::e2e
