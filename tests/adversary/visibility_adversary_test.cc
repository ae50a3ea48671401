// The queue behind the API server: what a tenant sees and may do there, who else is answered, and
// that nothing of the cluster hangs on it. RBAC decides; here the role that mallory has in lab.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "libs/testing/shell.h"
#include "tests/adversary/tenant_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kApi = "/apis/visibility.fluxqueue.io/v1alpha1";
constexpr const char* kJobs = "jobs.visibility.fluxqueue.io";
constexpr const char* kHeld = "{fluxqueue.io/hold: \"true\"}";

class VisibilityTest : public TenantTest {
 protected:
  static void SetUpTestSuite() {
    TenantTest::SetUpTestSuite();
    if (system_ == nullptr) return;
    const auto alice =
        system_->Kubectl({"create", "-f", "-"}, JobYaml("alices", {.annotations = kHeld}));
    ASSERT_TRUE(alice.ok()) << Message(alice.status());
  }

  // A Job of mallory's in lab, and what the API server knows of it.
  void MakeMallorys(const std::string& name) {
    std::string yaml = JobYaml(name, {.annotations = kHeld});
    yaml.replace(yaml.find("namespace: e2e"), 14, "namespace: lab");
    Creates(yaml);
    ExpectState(name, "Pending");
  }
  std::string JobPath(const std::string& space, const std::string& name) {
    return fmt::format("{}/namespaces/{}/jobs/job-{}", kApi, space, name);
  }
  absl::StatusOr<std::string> MalloryAsks(const std::string& path) {
    return AsMallory({"get", "--raw", path});
  }
  absl::StatusOr<std::string> MalloryCommands(const std::string& path, const std::string& body) {
    return AsMallory({"create", "--raw", path, "-f", "-"}, body);
  }

  // What the front says to who comes past the API server, with mallory's name as a header.
  std::string Directly(const std::string& options, const std::string& path) {
    const std::string ports = system_->folder() + "/config/visibility-1.ports";
    int health = 0;
    int port = 0;
    std::ifstream(ports) >> health >> port;
    const auto answer =
        testing::RunAny(fmt::format("curl -skm 10 -H 'X-Remote-User: admin' -H 'X-Remote-Group: "
                                    "system:masters' {} https://127.0.0.1:{}{}",
                                    options,
                                    port,
                                    path));
    return answer.ok() ? answer->output : Message(answer.status());
  }

  std::string Showing(const std::string& certificate) {
    return fmt::format("--cert {0}.crt --key {0}.key",
                       system_->folder() + "/cluster/pki/" + certificate);
  }

  // The command line as mallory runs it: a kubeconfig, and nothing of the system's.
  testing::ShellResult CommandLine(const std::string& arguments,
                                   const std::string& program = FLUXQUEUE_BINARY_DIR
                                   "/bin/fluxqueue") {
    const std::string home = system_->folder() + "/mallory";
    std::filesystem::create_directories(home);
    const auto config = system_->Kubectl({"config", "view", "--raw", "--flatten", "-o", "json"});
    EXPECT_TRUE(config.ok()) << Message(config.status());
    nlohmann::json file = nlohmann::json::parse(*config);
    file["users"][0]["user"]["as"] = "mallory";
    file["contexts"][0]["context"]["namespace"] = "lab";
    std::ofstream(home + "/config") << file;
    const auto kubectl = testing::Run(testing::ShellCommand(
        {"bash",
         "-c",
         "cd \"$0\" && . lib/log.sh && . lib/cache.sh && printf %s \"$(kubernetes_home .)\"",
         FLUXQUEUE_SOURCE_DIR "/tools"}));
    EXPECT_TRUE(kubectl.ok()) << Message(kubectl.status());
    const auto answer = testing::RunAny(fmt::format(
        "HOME={0} FLUXQUEUE_STATE={0} FLUXQUEUE_CONFIG= KUBECONFIG={0}/config PATH={1}:$PATH "
        "{2} {3} 2>&1",
        home,
        kubectl.value_or(""),
        program,
        arguments));
    EXPECT_TRUE(answer.ok()) << Message(answer.status());
    return answer.value_or(testing::ShellResult());
  }
};

TEST_F(VisibilityTest, ATenantSeesAndCommandsHisOwnJobs) {
  MakeMallorys("own");
  const auto listed = AsMallory({"get", kJobs, "-n", "lab"});
  ASSERT_TRUE(listed.ok()) << Message(listed.status());
  EXPECT_THAT(*listed, HasSubstr("job-own"));
  const auto why = MalloryAsks(JobPath("lab", "own") + "/explanation");
  ASSERT_TRUE(why.ok()) << Message(why.status());
  EXPECT_THAT(*why, HasSubstr("Held"));
  const auto cancelled = MalloryCommands(JobPath("lab", "own") + "/cancel", "{}");
  ASSERT_TRUE(cancelled.ok()) << Message(cancelled.status());
  ExpectState("own", "Cancelled");
  EXPECT_EQ(Field("own", "message"), "cancelled by mallory");
}

TEST_F(VisibilityTest, HeSeesAndCommandsNoOthers) {
  for (const std::string& path : {JobPath("e2e", "alices"),
                                  JobPath("e2e", "alices") + "/explanation",
                                  fmt::format("{}/namespaces/e2e/jobs", kApi),
                                  fmt::format("{}/jobs", kApi),
                                  fmt::format("{}/claims", kApi)}) {
    EXPECT_THAT(Message(MalloryAsks(path).status()), HasSubstr("forbidden")) << path;
  }
  for (const char* command : {"cancel", "hold", "priority", "move"}) {
    const auto done =
        MalloryCommands(fmt::format("{}/{}", JobPath("e2e", "alices"), command), "{}");
    EXPECT_THAT(Message(done.status()), HasSubstr("forbidden")) << command;
  }
  // Nor by a path that only looks like one of his namespace.
  const auto climbed =
      MalloryAsks(fmt::format("{}/namespaces/lab/jobs/..%2F..%2Fe2e%2Fjobs", kApi));
  EXPECT_FALSE(climbed.ok());
  EXPECT_THAT(Message(MalloryAsks(JobPath("lab", "alices")).status()), HasSubstr("NotFound"));
  EXPECT_EQ(StateOf("alices"), "Pending");
}

// Whoever reaches the port names whom he likes; only the API server's front proxy is believed.
TEST_F(VisibilityTest, OnlyTheApiServerIsAnswered) {
  const std::string jobs = fmt::format("{}/jobs", kApi);
  ASSERT_TRUE(std::filesystem::exists(system_->folder() + "/cluster/pki/admin.crt"));
  EXPECT_THAT(Directly("", jobs), HasSubstr("certificate is wanted"));
  EXPECT_THAT(Directly(Showing("admin"), jobs), Not(HasSubstr("JobList")));
  EXPECT_THAT(Directly("", "/apis"), HasSubstr("certificate is wanted"));
  EXPECT_THAT(Directly(Showing("front-proxy/client"), jobs), HasSubstr("JobList"));
}

// With the proxy's certificate, as if the API server had let all of it pass.
TEST_F(VisibilityTest, WhatIsSaidTwiceOrAmissIsRefused) {
  const auto ask = [this](const std::string& path, const std::string& options = "") {
    return Directly(Showing("front-proxy/client") + " --path-as-is " + options, kApi + path);
  };
  const auto command = [&ask](const std::string& path, const std::string& type, const char* body) {
    return ask(path, fmt::format("-H 'Content-Type: {}' -d '{}'", type, body));
  };
  EXPECT_THAT(ask("/jobs", "-H 'X-Remote-User: eve'"), HasSubstr("more than once"));
  EXPECT_THAT(ask("/jobs", "-H 'X-Remote-Extra-Scopes: " + std::string(17000, 'a') + "'"),
              HasSubstr("what is said besides"));
  EXPECT_THAT(ask("/jobs", "-H 'X-Remote-Extra-Scopes: view'"), HasSubstr("JobList"));
  EXPECT_THAT(ask("/namespaces/lab/jobs/..%2F..%2Fe2e"), HasSubstr("no name of one of the jobs"));
  EXPECT_THAT(ask("/namespaces/lab/jobs/../jobs"), HasSubstr("NotFound"));
  EXPECT_THAT(ask("/jobs?%77atch=true"), HasSubstr("FluxJobs can be watched"));
  EXPECT_THAT(ask("/jobs?continue=zzz"), HasSubstr("\"items\":[]"));
  const std::string alices = "/namespaces/e2e/jobs/job-alices";
  EXPECT_THAT(command(alices + "/cancel", "text/plain", "{}"), HasSubstr("application/json"));
  EXPECT_THAT(command(alices + "/hold", "application/json", "{\"held\":false}"),
              HasSubstr("held: allowed: apiVersion, kind, metadata, spec"));
  // By its id, as if it were a claim.
  const auto uid =
      system_->Kubectl({"get", "job", "alices", "-n", "e2e", "-o", "jsonpath={.metadata.uid}"});
  ASSERT_TRUE(uid.ok()) << Message(uid.status());
  EXPECT_THAT(command(fmt::format("/claims/{}/cancel", *uid), "application/json", "{}"),
              HasSubstr("there is no claim"));
  EXPECT_EQ(StateOf("alices"), "Pending");
}

// Each says that it lasts a century: the last of them starts after the year 9999.
TEST_F(VisibilityTest, NoLineIsTooLongToBeToldOf) {
  const auto job = system_->Kubectl(
      {"create", "-f", "-"},
      JobYaml("late", {.annotations = "{fluxqueue.io/begin: \"9999-12-31T23:59:59-20:00\"}"}));
  ASSERT_TRUE(job.ok()) << Message(job.status());
  ExpectState("late", "Pending");
  const auto shown = system_->Kubectl({"get", "--raw", JobPath("e2e", "late")});
  EXPECT_TRUE(shown.ok()) << Message(shown.status());
  EXPECT_THAT(Field("late", "message"), HasSubstr("9999-12-31T23:59:59Z"));
}

TEST_F(VisibilityTest, WhatIsAskedIsBounded) {
  const std::string cancel = JobPath("lab", "none") + "/priority";
  EXPECT_THAT(Message(MalloryCommands(cancel, R"({"spec":{"priority":1}})").status()),
              HasSubstr("orbidden"));  // the role edit does not have it
  const std::string large(100'000, ' ');
  const auto refused = system_->Kubectl(
      {"create", "--raw", JobPath("lab", "none") + "/cancel", "-f", "-"}, "{" + large + "}");
  EXPECT_THAT(Message(refused.status()), HasSubstr("status code 413"));
  const auto selector =
      system_->Kubectl({"get", kJobs, "-A", "--field-selector", "metadata.name=x"});
  EXPECT_THAT(Message(selector.status()), HasSubstr("allowed: ended=true, queue=NAME"));
}

TEST_F(VisibilityTest, TheCommandLineAsksAsThePerson) {
  MakeMallorys("typed");
  const testing::ShellResult jobs = CommandLine("jobs");
  EXPECT_EQ(jobs.exit_code, 0) << jobs.output;
  EXPECT_THAT(jobs.output, HasSubstr("lab/typed"));
  EXPECT_THAT(jobs.output, HasSubstr("of namespace lab"));
  EXPECT_THAT(jobs.output, Not(HasSubstr("alices")));
  const testing::ShellResult job = CommandLine("job typed");
  EXPECT_EQ(job.exit_code, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr("History"));
  EXPECT_THAT(CommandLine("explain lab/typed").output, HasSubstr("Held"));
  EXPECT_THAT(CommandLine("release typed").output, HasSubstr("is released"));
  ExpectState("typed", "Succeeded");
  const testing::ShellResult others = CommandLine("cancel e2e/alices");
  EXPECT_EQ(others.exit_code, 2);
  EXPECT_THAT(others.output, HasSubstr("forbidden"));
  EXPECT_THAT(CommandLine("job nothing").output, HasSubstr("there is no job nothing"));
}

// The script for machines on which the program does not run.
TEST_F(VisibilityTest, TheScriptAsksAsThePerson) {
  MakeMallorys("scripted");
  const auto script = [this](const std::string& arguments) {
    return CommandLine(arguments, FLUXQUEUE_SOURCE_DIR "/deploy/kubectl-fluxqueue");
  };
  const testing::ShellResult jobs = script("jobs");
  EXPECT_EQ(jobs.exit_code, 0) << jobs.output;
  EXPECT_THAT(jobs.output, HasSubstr("of your own namespace"));
  EXPECT_THAT(jobs.output, HasSubstr("job-scripted"));
  EXPECT_THAT(jobs.output, Not(HasSubstr("alices")));
  EXPECT_THAT(script("jobs -n lab --queue default --all -o wide").output, HasSubstr("MESSAGE"));
  EXPECT_THAT(script("job scripted").output, HasSubstr("kind: Job"));
  const testing::ShellResult why = script("explain lab/scripted");
  EXPECT_EQ(why.exit_code, 0) << why.output;
  EXPECT_THAT(why.output, HasSubstr("lab/scripted ("));
  EXPECT_THAT(why.output, HasSubstr("): Pending (Held)\n"));
  EXPECT_THAT(why.output, Not(HasSubstr("<no value>")));
  EXPECT_THAT(script("cancel scripted").output, HasSubstr("scripted: is being cancelled"));
  ExpectState("scripted", "Cancelled");
  EXPECT_EQ(Field("scripted", "message"), "cancelled by mallory");
  const testing::ShellResult others = script("cancel e2e/alices");
  EXPECT_EQ(others.exit_code, 2);
  EXPECT_THAT(others.output, HasSubstr("forbidden"));
}

// Kubernetes asks every API group what a namespace holds before it ends one.
TEST_F(VisibilityTest, ANamespaceEndsWhileTheQueueAndItsStoresAreAway) {
  ASSERT_TRUE(system_->KillService("queue").ok());
  ASSERT_TRUE(system_->StopPart("kafka").ok());
  ASSERT_TRUE(system_->StopPart("postgres").ok());
  ASSERT_TRUE(system_->Kubectl({"create", "namespace", "short"}).ok());
  const auto ended = system_->Kubectl({"delete", "namespace", "short", "--timeout=60s"});
  EXPECT_TRUE(ended.ok()) << Message(ended.status());
  const auto jobs = system_->Kubectl({"get", kJobs, "-A"});
  EXPECT_THAT(Message(jobs.status()), HasSubstr("the queue"));
  ASSERT_TRUE(system_->StartPart("postgres").ok());
  ASSERT_TRUE(system_->StartPart("kafka").ok());
  ASSERT_TRUE(system_->StartService("queue").ok());
  const absl::Status back = system_->WaitFor(
      [&] {
        return system_->Kubectl({"get", kJobs, "-A"}).ok();
      },
      std::chrono::seconds(60),
      [] { return std::string("the queue to be reached again"); });
  EXPECT_TRUE(back.ok()) << Message(back);
}

}  // namespace
}  // namespace fluxqueue::e2e
