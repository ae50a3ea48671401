// The database is restored from a backup (deploy/docs/backup.md): what was bound since runs on.
#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>

#include "libs/testing/shell.h"
#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using std::chrono::seconds;

class RestoreTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 4, .sections = {{"binder", "start_timeout: 20s"}}});
  }

  // The log begins at the restore: nothing before it can be played again.
  void TearDown() override {
    if (system_ != nullptr && HasFailure()) fmt::print("bundle: {}\n", system_->SaveBundle());
  }

  // As the superuser: the backup says whose each table is.
  static std::string Dsn() {
    std::ifstream file(system_->folder() + "/postgres/dsn");
    std::string dsn;
    std::getline(file, dsn);
    return testing::ShellQuote(dsn.replace(dsn.find("fluxqueue@"), 9, "postgres"));
  }
  static std::string BackupFile() { return testing::ShellQuote(system_->folder() + "/backup"); }

  void Backup() {
    const absl::Status known =
        system_->WaitFor([&] { return Count("matcher.graph_nodes WHERE present") == 4; },
                         seconds(30),
                         [] { return "the nodes to be known"; });
    ASSERT_TRUE(known.ok()) << Message(known);
    const auto dumped =
        testing::Run(fmt::format("pg_dump -Fc -f {} -d {} 2>&1", BackupFile(), Dsn()));
    ASSERT_TRUE(dumped.ok()) << Message(dumped.status());
  }

  // All stops, and is as the backup says; the topics are gone.
  void LoseAllSince() {
    for (const char* service : kServices) ASSERT_TRUE(system_->KillService(service).ok());
    const auto dropped = system_->Query(fmt::format("DROP SCHEMA {} CASCADE", kSchemas));
    ASSERT_TRUE(dropped.ok()) << Message(dropped.status());
    const auto restored =
        testing::Run(fmt::format("pg_restore -d {} {} 2>&1", Dsn(), BackupFile()));
    ASSERT_TRUE(restored.ok()) << Message(restored.status());
    for (const char* reader : {"queue", "matcher", "binder"}) {
      const auto told = system_->Query(fmt::format("UPDATE {}.inbox SET truncated = true", reader));
      ASSERT_TRUE(told.ok()) << Message(told.status());
    }
    ASSERT_TRUE(system_->LosePart("kafka").ok());
    ASSERT_TRUE(system_->StartPart("kafka").ok());
  }

  // Cleanup comes last: the pods are bound again before it has counted them as others' use of their
  // nodes, so the matcher, which is not told of pods, places each job as it did before.
  void StartAll(const std::string& job, int slots) {
    for (const char* service : kServices) {
      if (std::string_view(service) == "cleanup") ExpectBound(job, slots);
      const absl::Status started = system_->StartService(service);
      ASSERT_TRUE(started.ok()) << Message(started);
    }
  }

  // What the binder gave to pods before proves nothing any more.
  void ChangeTheBindersKey() {
    const auto made = testing::Run(fmt::format("head -c 32 /dev/urandom > {}/config/proof.key",
                                               testing::ShellQuote(system_->folder())));
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }

  static std::string Gang(const std::string& name) {
    return JobYaml(name, {.parallelism = 4, .completions = 4, .cpu = "3", .run_seconds = "3600"});
  }

  void ExpectBound(const std::string& name, int slots) {
    const auto bound = [&] {
      return Count(
          fmt::format("binder.slots s JOIN queue.jobs j USING (job_id) "
                      "WHERE j.name = '{}' AND s.state = 'bound'",
                      name));
    };
    const absl::Status reached =
        system_->WaitFor([&] { return bound() == slots; },
                         seconds(90),
                         [&] {
                           return fmt::format("{} of {} slots of job {} are bound, it is {} ({})",
                                              bound(),
                                              slots,
                                              name,
                                              StateOf(name),
                                              MessageOf(name));
                         });
    EXPECT_TRUE(reached.ok()) << Message(reached);
  }

  // Name, uid, node, slot and proof of each.
  std::string Pods(const std::string& job) {
    const auto pods = system_->Kubectl(
        {"get",
         "pods",
         "-n",
         "e2e",
         "-l",
         "job-name=" + job,
         "--sort-by=.metadata.name",
         "-o",
         R"(jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.spec.nodeName} )"
         R"({.metadata.annotations.fluxqueue\.io/allocation} )"
         R"({.metadata.annotations.fluxqueue\.io/proof}{"\n"}{end})"});
    EXPECT_TRUE(pods.ok()) << Message(pods.status());
    return pods.value_or("");
  }

  void EndPods(const std::string& job) {
    const auto told = system_->Kubectl({"annotate",
                                        "pods",
                                        "-l",
                                        "job-name=" + job,
                                        "-n",
                                        "e2e",
                                        "--overwrite",
                                        "fluxqueue.io/run-seconds=0.1"});
    ASSERT_TRUE(told.ok()) << Message(told.status());
  }

  void ExpectRanOnce(const std::string& name) {
    EXPECT_EQ(Field(name, "attempt"), "1");
    EXPECT_EQ(Count(fmt::format("queue.job_events e JOIN queue.jobs j USING (job_id) "
                                "WHERE j.name = '{}' AND e.state = 'Stopping'",
                                name)),
              0);
  }

  static constexpr std::string_view kSchemas = "admission, queue, matcher, binder, cleanup";
  static constexpr std::array kServices = {
      "admission", "queue", "matcher", "binder", "cleanup", "graph"};
};

TEST_F(RestoreTest, AGangThatWasBoundSinceTheBackupRunsOn) {
  ASSERT_TRUE(system_->KillService("binder").ok());
  Apply(Gang("bound"));
  ExpectState("bound", "Allocated");
  Backup();
  ASSERT_TRUE(system_->StartService("binder").ok());
  ExpectBound("bound", 4);
  const std::string before = Pods("bound");
  LoseAllSince();
  StartAll("bound", 4);
  ExpectState("bound", "Running");
  EXPECT_EQ(Pods("bound"), before);
  EndPods("bound");
  ExpectState("bound", "Succeeded");
  ExpectRanOnce("bound");
  EXPECT_EQ(Pods("bound"), before);
}

TEST_F(RestoreTest, AGangThatCameSinceTheBackupRunsOn) {
  Backup();
  Apply(Gang("later"));
  ExpectBound("later", 4);
  const std::string before = Pods("later");
  LoseAllSince();
  StartAll("later", 4);
  ExpectState("later", "Running");
  EXPECT_EQ(Pods("later"), before);
  EndPods("later");
  ExpectState("later", "Succeeded");
  ExpectRanOnce("later");
  EXPECT_EQ(Pods("later"), before);
}

TEST_F(RestoreTest, PodsThatProveNothingAreMadeAgain) {
  Backup();
  Apply(Gang("unproven"));
  ExpectBound("unproven", 4);
  const std::string before = Pods("unproven");
  LoseAllSince();
  ChangeTheBindersKey();
  StartAll("unproven", 4);
  EXPECT_EQ(Field("unproven", "attempt"), "2");
  EXPECT_NE(Pods("unproven"), before);
  EndPods("unproven");
  ExpectState("unproven", "Succeeded");
}

}  // namespace
}  // namespace fluxqueue::e2e
