// Kafka loses what it had acknowledged, while one service had read it and another had not: each
// asks for what it lacks.
#include <array>
#include <chrono>
#include <string>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using std::chrono::seconds;

constexpr int kJobs = 20;

class LossesTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 10, .sections = {{"cleanup", "sweep_interval: 10s"}}});
  }

  // What was said before a loss is in no log any more: there is nothing to be replayed.
  void TearDown() override {
    if (system_ == nullptr) return;
    const auto clean = [&] {
      const auto verified = system_->Fluxqueue({"verify", "--no-replay"});
      verified_ = verified.ok() ? verified->output : Message(verified.status());
      if (!verified.ok()) return false;
      return verified->exit_code == 0 ||
             (begins_late_ && OnlyBeginningsAreLost(verified->output)) ||
             (told_twice_ && OnlyHistoryIsTwice(verified->output));
    };
    const absl::Status kept = system_->WaitFor(clean, seconds(60), [&] { return verified_; });
    EXPECT_TRUE(kept.ok()) << Message(kept);
    if (HasFailure()) fmt::print("bundle: {}\n", system_->SaveBundle());
  }

  void ApplyJobs(const std::string& prefix, const std::string& run_seconds = "0.2") {
    std::string yaml;
    for (int i = 0; i < kJobs; ++i) {
      yaml += JobYaml(fmt::format("{}-{}", prefix, i), {.run_seconds = run_seconds});
    }
    Apply(yaml);
  }

  int InState(const std::string& prefix, const std::string& state) {
    return Count(fmt::format("queue.jobs WHERE name LIKE '{}-%' AND state = '{}'", prefix, state));
  }
  std::string States(const std::string& prefix) {
    std::string states;
    const auto rows = system_->Query(
        fmt::format("SELECT state, reason, message, count(*), min(name) FROM queue.jobs "
                    "WHERE name LIKE '{}-%' GROUP BY 1, 2, 3",
                    prefix));
    if (!rows.ok()) return Message(rows.status());
    for (const auto& row : *rows) {
      states += fmt::format("{} {} ({}: {}), such as {}; ", row[3], row[0], row[1], row[2], row[4]);
    }
    return states;
  }
  void Await(const std::string& prefix, const std::string& state, seconds within = seconds(60)) {
    const absl::Status reached =
        system_->WaitFor([&] { return InState(prefix, state) == kJobs; },
                         within,
                         [&] { return fmt::format("{}: {}", state, States(prefix)); });
    ASSERT_TRUE(reached.ok()) << Message(reached);
  }
  void AwaitNone(const std::string& table, const std::string& what) {
    const absl::Status reached =
        system_->WaitFor([&] { return Count(table) == 0; }, seconds(60), [&] { return what; });
    ASSERT_TRUE(reached.ok()) << Message(reached);
  }
  // Kafka has acknowledged all that was said.
  void AwaitSent(const std::string& service) {
    AwaitNone(service + ".outbox", fmt::format("{} has unsent messages", service));
  }
  static int Names(const std::string& text, const std::string& prefix) {
    int names = 0;
    for (size_t at = 0; (at = text.find(prefix, at)) != text.npos; at += prefix.size()) ++names;
    return names;
  }
  void Kill(const std::string& service) { ASSERT_TRUE(system_->KillService(service).ok()); }
  void Start(const std::string& service) {
    const absl::Status started = system_->StartService(service);
    ASSERT_TRUE(started.ok()) << Message(started);
  }
  void LoseKafka() {
    ASSERT_TRUE(system_->LosePart("kafka").ok());
    ASSERT_TRUE(system_->StartPart("kafka").ok());
  }
  // Those that the loss hit, and others after it.
  void ExpectAllEnd(const std::string& prefix) {
    ApplyJobs(prefix + "-later");
    const int all = 2 * kJobs;
    const absl::Status reached =
        system_->WaitFor([&] { return InState(prefix, "Succeeded") == all; },
                         seconds(150),
                         [&] { return States(prefix); });
    EXPECT_TRUE(reached.ok()) << Message(reached);
    AwaitNone("matcher.allocations WHERE NOT released", "allocations are kept");
  }

  // Nothing is against the system but that jobs begin late in the jobs topic: their first facts
  // went with the log before the binder had read them, and no offset tells of that.
  static bool OnlyBeginningsAreLost(const std::string& output) {
    return Names(output, "✗") == 1 && Names(output, "✗ 7") == 1 &&
           Names(output, "jobs topic: version 2 follows 0") == Names(output, "     job e2e/");
  }

  // Nothing is against the system but invariant 7, and that of jobs that the database had
  // forgotten.
  static bool OnlyHistoryIsTwice(const std::string& output) {
    return Names(output, "✗") == 1 && Names(output, "✗ 7") == 1 &&
           Names(output, "jobs topic: version 1 follows") == Names(output, "job e2e/forgotten-");
  }

  std::string verified_;
  bool told_twice_ = false;
  bool begins_late_ = false;
};

TEST_F(LossesTest, SubmissionsThatTheMatcherHadNotRead) {
  Kill("matcher");
  ApplyJobs("specs");
  Await("specs", "Pending");
  begins_late_ = true;
  LoseKafka();
  Start("matcher");
  ExpectAllEnd("specs");
}

TEST_F(LossesTest, SubmissionsThatTheQueueHadNotRead) {
  Kill("queue");
  ApplyJobs("submissions");
  const absl::Status said = system_->WaitFor(
      [&] { return Count("admission.workloads WHERE name LIKE 'submissions-%'") == kJobs; },
      seconds(30),
      [] { return "admission has not said them"; });
  ASSERT_TRUE(said.ok()) << Message(said);
  AwaitSent("admission");
  LoseKafka();
  Start("queue");
  ExpectAllEnd("submissions");
}

TEST_F(LossesTest, AllocationsThatTheBinderHadNotHeardOf) {
  Kill("binder");
  ApplyJobs("facts");
  Await("facts", "Allocated");
  AwaitSent("queue");
  LoseKafka();
  Start("binder");
  ExpectAllEnd("facts");
}

TEST_F(LossesTest, EndsThatTheQueueHadNotRead) {
  ApplyJobs("ends", "8");
  Await("ends", "Running");
  Kill("queue");
  const absl::Status ended = system_->WaitFor(
      [&] {
        const auto jobs =
            system_->Kubectl({"get",
                              "jobs",
                              "-n",
                              "e2e",
                              "-o",
                              "jsonpath={.items[?(@.status.succeeded==1)].metadata.name}"});
        return jobs.ok() && Names(*jobs, "ends-") == kJobs;
      },
      seconds(60),
      [] { return "the Jobs have not ended"; });
  ASSERT_TRUE(ended.ok()) << Message(ended);
  std::this_thread::sleep_for(seconds(1));  // cleanup has seen it
  AwaitSent("cleanup");
  LoseKafka();
  Start("queue");
  ExpectAllEnd("ends");
}

TEST_F(LossesTest, ReleasesThatTheMatcherHadNotRead) {
  ApplyJobs("releases", "8");
  Await("releases", "Running");
  Kill("matcher");
  Await("releases", "Succeeded");
  AwaitSent("queue");
  LoseKafka();
  Start("matcher");
  ExpectAllEnd("releases");
}

// As when an asynchronous standby takes over, or a backup is put back: the database has forgotten
// what the log and the cluster know.
TEST_F(LossesTest, ADatabaseThatWentBack) {
  // The log has the forgotten jobs' history as it was told before, and after.
  told_twice_ = true;
  ASSERT_TRUE(system_->KeepPart("postgres").ok());
  ApplyJobs("forgotten");
  Await("forgotten", "Succeeded");
  ASSERT_TRUE(system_->Kubectl({"delete", "jobs", "-n", "e2e", "--all"}).ok());
  const absl::Status back = system_->TakePartBack("postgres");
  ASSERT_TRUE(back.ok()) << Message(back);
  ApplyJobs("back");
  ExpectAllEnd("back");
}

}  // namespace
}  // namespace fluxqueue::e2e
