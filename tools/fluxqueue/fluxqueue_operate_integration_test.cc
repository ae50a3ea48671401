// What an operator does, against a real Kafka and a real Postgres: what the program shows, follows
// and sends elsewhere, and what becomes of dead letters.
#include <filesystem>
#include <fstream>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "libs/delivery/quarantine_store.h"
#include "libs/delivery/testing_loops.h"

#include "tools/fluxqueue/testing_stack.h"

namespace fluxqueue {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Stack* stack = nullptr;

class OperateTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { stack = new Stack; }
  static void TearDownTestSuite() { delete std::exchange(stack, nullptr); }

  static json Letters(const std::string& options = "") {
    return json::parse(stack->Run("dead-letters list -o json " + options).output);
  }
  static void AwaitLetters(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (Letters().size() != count) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << Letters().dump(2);
      std::this_thread::sleep_for(Millis(100));
    }
  }
};

TEST_F(OperateTest, SaysTheSameInYaml) {
  const YAML::Node jobs = YAML::Load(stack->Run("jobs --all -o yaml").output);
  ASSERT_EQ(jobs["jobs"].size(), 3U);
  EXPECT_EQ(jobs["jobs"][2]["id"].as<std::string>(), "waiting");
  EXPECT_EQ(YAML::Load(stack->Run("queues -o yaml").output)[0]["jobs"]["Pending"].as<int>(), 1);
  EXPECT_THAT(stack->Run("jobs -o wide").output, AllOf(HasSubstr("PRIORITY"), HasSubstr("main")));
}

// Each look that sees nothing new prints nothing, and who stops reading ends it.
TEST_F(OperateTest, WatchPrintsWhatHasChangedUntilNobodyReads) {
  const std::string output = stack->config() + ".watch";
  std::thread watcher([&] {
    stack->Call("jobs --watch --every 0.1 | tee " + output + " | head -4 >/dev/null",
                "FLUXQUEUE_CONFIG=" + stack->config());
  });
  const auto lines = [&] {
    std::ifstream file(output);
    return std::vector<std::string>(std::istream_iterator<std::string>(file), {});
  };
  const auto holds = [&](const std::string& word) {
    const auto words = lines();
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const auto await = [&](const std::string& word) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (!holds(word) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(Millis(20));
    }
    EXPECT_TRUE(holds(word)) << word;
  };
  await("Busy");
  stack->Sql("UPDATE queue.jobs SET reason = 'Other' WHERE job_id = 'waiting'");
  await("Other");
  stack->Sql("UPDATE queue.jobs SET reason = 'Busy' WHERE job_id = 'waiting'");
  watcher.join();
}

TEST_F(OperateTest, WithoutAConfigurationItRunsInTheCluster) {
  const std::string folder = stack->config() + ".bin";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/kubectl")
      << "#!/bin/sh\n"
         "test \"$1\" != get || { echo 'Error from server (NotFound): none' >&2; exit 1; }\n"
         "echo \"$@\"\n"
         "test -z \"$TROUBLE\" || { echo \"$TROUBLE\" >&2; exit 1; }\n"
         "echo command terminated with exit code 3 >&2\nexit 3\n";
  std::filesystem::permissions(folder + "/kubectl", std::filesystem::perms::owner_all);
  const std::string away = "FLUXQUEUE_STATE=/nowhere PATH=" + folder + ":$PATH ";
  const Result there =
      stack->Call("jobs --system-namespace hpc --context prod --queue a --width 99", away);
  EXPECT_EQ(there.status, 3);
  EXPECT_THAT(there.output,
              HasSubstr("--context=prod --namespace=hpc exec deploy/fluxqueue-cli -- fluxqueue "
                        "--colour=never --width=99 --utc-offset="));
  EXPECT_THAT(there.output, HasSubstr("jobs --queue a --width 99\n"));
  const Result refused =
      stack->Call("verify", away + "TROUBLE='Error from server (Forbidden): pods'");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.output, HasSubstr("fluxqueue-operator"));
  // 1 is what an invariant that is broken says.
  const Result unreached =
      stack->Call("verify", away + "TROUBLE='Unable to connect to the server: no such host'");
  EXPECT_EQ(unreached.status, 2);
  EXPECT_THAT(unreached.output, HasSubstr("no such host"));
  // What needs no system stays here.
  EXPECT_THAT(stack->Call("completion bash", away).output, HasSubstr("complete -F"));
}

TEST_F(OperateTest, CompletesNamesOfTheLiveSystem) {
  const std::string environment = "FLUXQUEUE_CONFIG=" + stack->config();
  EXPECT_EQ(stack->Call("__complete job team/name-of-w", environment).output,
            "team/name-of-waiting\t\n:4\n");
  EXPECT_EQ(stack->Call("__complete move gang d", environment).output, "default\t\n:4\n");
  EXPECT_EQ(stack->Call("__complete drain n", environment).output, "n1\t\nn2\t\n:4\n");
  EXPECT_EQ(stack->Call("__complete events --pool ''", environment).output, "main\t\n:4\n");
}

TEST_F(OperateTest, TracesAJobFromTheLog) {
  const json trace = json::parse(stack->Run("job done --trace -o json").output);
  std::vector<std::string> names;
  for (const json& stage : trace["stages"]) {
    names.push_back(stage["stage"].get<std::string>().substr(0, 8));
  }
  EXPECT_THAT(names,
              ::testing::IsSupersetOf({"in line", "binding", "starting", "running", "Succeede"}));
  const auto cycle = std::find_if(trace["stages"].begin(),
                                  trace["stages"].end(),
                                  [](const json& stage) { return stage["within"] == true; });
  ASSERT_NE(cycle, trace["stages"].end());
  EXPECT_THAT((*cycle)["detail"].get<std::string>(), StartsWith("allocated"));
  EXPECT_THAT(stack->Run("job done --trace").output, HasSubstr("█"));
}

TEST_F(OperateTest, ReadsTheLog) {
  const Result gang = stack->Run("events gang");
  EXPECT_THAT(gang.output,
              AllOf(HasSubstr("job_submitted"),
                    HasSubstr("cycle_answered"),
                    HasSubstr("job_bound"),
                    HasSubstr("job_fact"),
                    Not(HasSubstr("name-of-waiting"))));
  const Result bound = stack->Run("events --type job_bound -o json");
  EXPECT_EQ(std::count(bound.output.begin(), bound.output.end(), '\n'), 2) << bound.output;
  EXPECT_EQ(json::parse(bound.output.substr(0, bound.output.find('\n')))["partition"], kPartition);
  EXPECT_EQ(stack->Run("events --since 10").status, 2);
}

TEST_F(OperateTest, DrawsTheGraph) {
  EXPECT_THAT(stack->Run("graph -o wide").output,
              AllOf(HasSubstr("pool main"), HasSubstr("└─ n2")));
  EXPECT_THAT(stack->Run("graph --dot").output, StartsWith("digraph"));
}

TEST_F(OperateTest, ADeadLetterIsShownRetriedAndDropped) {
  AwaitLetters(0);
  // The queue cannot know a strategy that does not exist.
  Envelope bad = queue_core::QueueMade("odd");
  bad.mutable_queue_configured()->set_strategy("luck");
  stack->Say("admission/watch", bad);
  AwaitLetters(1);
  const json letter = Letters()[0];
  EXPECT_EQ(letter["service"], "queue");
  EXPECT_EQ(letter["type"], "queue_configured");
  EXPECT_THAT(letter["reason"].get<std::string>(), HasSubstr("luck"));
  const auto number = letter["number"].get<int64_t>();
  EXPECT_THAT(stack->Run(fmt::format("dead-letters show {}", number)).output,
              HasSubstr("strategy: \"luck\""));
  // Taken again, by a stream of its own, and again not to be handled: the inbox did not drop it.
  EXPECT_EQ(stack->Run(fmt::format("dead-letters retry {}", number)).status, 0);
  AwaitLetters(1);
  const json again = Letters()[0];
  EXPECT_NE(again["number"], number);
  EXPECT_THAT(again["content"].get<std::string>(),
              HasSubstr(fmt::format("stream: \"retry/{}\"", number)));
  const Result twice = stack->Run(fmt::format("dead-letters retry {}", number));
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.output, HasSubstr("was retried already"));
  EXPECT_EQ(stack->Run("dead-letters drop --all").status, 0);
  EXPECT_EQ(Letters().size(), 0U);
  EXPECT_EQ(Letters("--all").size(), 2U);
  // The cores replay it as it was.
  const Result replay = stack->Run("replay");
  EXPECT_EQ(replay.status, 0) << replay.output;
}

// With the command line's account, on the tables as a shard keeps them; what the shard makes of the
// mark is in integration.delivery_quarantine.
TEST_F(OperateTest, AnObjectThatIsLeftOutIsShownAndRetried) {
  AwaitLetters(0);
  const delivery::QuarantineRow odd{
      .object = {.kind = "Pod", .space = "team", .name = "odd", .uid = "u-odd", .version = "7"},
      .reason = "it threw: stoi",
      .times = 1,
      .held = true};
  delivery::QuarantineRow other = odd;
  other.object.uid = "u-other";
  const delivery::Quarantine::Changes changes{.upserts = {odd, other}, .deletes = {}};
  const auto say = [&odd](const std::string& service) {
    stack->Produce("fluxqueue.dead-letter",
                   0,
                   delivery::MakeRecord(delivery::MakeLetter(odd, service + "/watch"), service));
  };
  const auto retry = [] {
    return stack->Run("dead-letters retry " + Letters().back()["number"].dump());
  };
  for (const std::string service : {"cleanup", "admission"}) {
    stack->As(service, [&](pqxx::transaction_base& tx) {
      delivery::WriteQuarantine(tx, "watch", changes);
      return absl::OkStatus();
    });
    say(service);
    AwaitLetters(1);
    EXPECT_EQ(Letters()[0]["type"], "Pod");
    const std::string left_out =
        fmt::format("of objects that are left out: Pod team/odd ({})", service);
    EXPECT_THAT(stack->Run("doctor").output, HasSubstr(left_out));
    const Result retried = retry();
    EXPECT_EQ(retried.status, 0) << retried.output;
    EXPECT_THAT(retried.output, HasSubstr("(Pod of Pod team/odd): retried"));
    AwaitLetters(0);
    EXPECT_THAT(stack->Run("doctor").output, Not(HasSubstr("left out")));
    stack->As(service, [](pqxx::transaction_base& tx) {
      EXPECT_THAT(delivery::TakeRetried(tx, "watch"),
                  ::testing::ElementsAre(delivery::Quarantine::Key{"Pod", "u-odd"}));
      EXPECT_EQ(delivery::LoadQuarantine(tx, "watch").size(), 1U);
      return absl::OkStatus();
    });
    // It was handled meanwhile.
    say(service);
    AwaitLetters(1);
    const Result again = retry();
    EXPECT_EQ(again.status, 2);
    EXPECT_THAT(again.output, HasSubstr("Pod team/odd is not left out any more"));
    EXPECT_EQ(stack->Run("dead-letters drop --all").status, 0);
  }
  // Whoever may write letters makes one up.
  say("queue");
  AwaitLetters(1);
  EXPECT_THAT(retry().output, HasSubstr("handles the object again when it changes"));
  EXPECT_EQ(stack->Run("dead-letters drop --all").status, 0);
}

TEST_F(OperateTest, AMessageIsLeftOut) {
  EXPECT_THAT(stack->Run("log skip queue 3 0 --why late").output,
              HasSubstr("OFFSET 0: the queue has handled it, what came of it stays, and the queue "
                        "stands at"));
  EXPECT_THAT(stack->Run("log skip queue 3 1000000 --why early").output,
              HasSubstr("has no such message"));
  EXPECT_THAT(stack->Run("log skip queue 99 0 --why elsewhere").output, HasSubstr("PARTITION 99"));
  EXPECT_THAT(stack->Run("log skip cleanup 3 0 --why it").output, HasSubstr("cleanup not in"));
  EXPECT_THAT(stack->Run("log skip queue 3 0 --why ''").output, HasSubstr("--why: 1 to 500"));
  EXPECT_THAT(stack->Run("log list").output, HasSubstr("every service has handled"));
  AwaitLetters(0);
  stack->StopQueue();
  stack->Say("admission/watch", queue_core::QueueMade("left-out"));
  const json standing = json::parse(stack->Run("log list -o json").output);
  const auto queue = std::find_if(standing.begin(), standing.end(), [](const json& place) {
    return place["service"] == "queue";
  });
  ASSERT_NE(queue, standing.end()) << standing.dump();
  EXPECT_EQ((*queue)["next"], "queue_configured");
  const auto offset = (*queue)["offset"].get<int64_t>();
  std::thread back([] { stack->StartQueue(); });
  const Result skipped = stack->Run(fmt::format("log skip queue 3 {} --why 'it is odd'", offset));
  back.join();
  EXPECT_EQ(skipped.status, 0) << skipped.output;
  EXPECT_THAT(skipped.output, HasSubstr("the queue has gone on"));
  AwaitLetters(1);
  EXPECT_EQ(Letters()[0]["reason"], "left out by fluxqueue_cli: it is odd");
  EXPECT_EQ(stack->Run("dead-letters drop --all").status, 0);
  const Result replay = stack->Run("replay");
  EXPECT_EQ(replay.status, 0) << replay.output;
}

// The queue is about to commit the message when the operator's word comes.
TEST_F(OperateTest, AMessageIsHandledBeforeItCanBeLeftOut) {
  AwaitLetters(0);
  stack->StopQueue();
  stack->Say("admission/watch", queue_core::QueueMade("late"));
  const std::string next = stack->Value("SELECT next_offset FROM queue.inbox WHERE partition = 3");
  delivery::Freezer freezer(delivery::Freezer::Offset{std::stoll(next)});
  stack->StartQueue(&freezer);
  ASSERT_TRUE(freezer.WaitFrozen());
  auto skipping = std::async(std::launch::async, [&next] {
    return stack->Run(fmt::format("log skip queue 3 {} --why 'it is odd'", next));
  });
  stack->Await("SELECT count(*) FROM queue.skips WHERE at_offset = " + next, "1");
  freezer.Release();
  const Result skipped = skipping.get();
  EXPECT_EQ(skipped.status, 1) << skipped.output;
  EXPECT_THAT(skipped.output,
              HasSubstr("too late: the queue was handling it before it read of this. What came of "
                        "it stays, and replay has it, too"));
  // So it is: also for who begins with the rows.
  stack->StopQueue();
  stack->StartQueue();
  stack->Await("SELECT count(*) FROM queue.skips", "0");
  stack->Await("SELECT count(*) FROM queue.queues WHERE queue = 'late'", "1");
  AwaitLetters(0);
  const Result replay = stack->Run("replay");
  EXPECT_EQ(replay.status, 0) << replay.output;
}

// Admission has a new key, which the queue learns of when it starts again.
TEST_F(OperateTest, WhatTheQueueCouldNotCheckIsSaidAgain) {
  AwaitLetters(0);
  const auto keys = [] {
    return std::make_shared<const signing::Keys>(*signing::Keys::Read(stack->keys().keys()));
  };
  const auto old = keys();
  stack->keys().Make("admission-2", "admission");
  stack->StopQueue();
  stack->StartQueue(nullptr, old);
  const auto say = [](const std::string& queue) {
    stack->Say("admission/watch", queue_core::QueueMade(queue), "admission-2");
  };
  const auto known = [] {
    return stack->Value(
        "SELECT coalesce(string_agg(queue, ' ' ORDER BY queue), '') "
        "FROM queue.queues WHERE queue LIKE 'k_'");
  };
  say("k1");
  say("k2");
  AwaitLetters(2);
  const std::string number = Letters()[0]["number"].dump();
  const Result refused = stack->Run("dead-letters retry " + number);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.output, HasSubstr("fluxqueue log repeat queue 3"));
  // Whoever may write into the log says what he likes.
  Envelope forged = queue_core::QueueMade("k9");
  forged.set_stream("admission/watch");
  forged.set_sequence(1'000'000);
  stack->Produce("fluxqueue.pool", kPartition, forged);
  AwaitLetters(3);
  std::ofstream(stack->config() + ".signed")
      << std::ifstream(stack->config()).rdbuf()
      << fmt::format("signing: {{keys: \"{}\"}}\n", stack->keys().keys());
  const auto repeat = [] {
    return stack->Call("log repeat queue 3 --config " + stack->config() + ".signed");
  };
  // It still has the keys of before.
  const Result early = repeat();
  EXPECT_EQ(early.status, 1) << early.output;
  EXPECT_THAT(early.output,
              AllOf(HasSubstr("2 messages were said again"),
                    HasSubstr("the queue has not taken those of admission/watch: restart it")));
  stack->StopQueue();
  stack->StartQueue(nullptr, keys());
  say("k3");
  const Result late = repeat();
  EXPECT_EQ(late.status, 0) << late.output;
  EXPECT_THAT(late.output,
              AllOf(HasSubstr("3 messages were said again"), HasSubstr("has taken them")));
  EXPECT_EQ(known(), "k1 k2 k3");
  say("k4");
  stack->Await("SELECT count(*) FROM queue.queues WHERE queue = 'k4'", "1");
  EXPECT_EQ(known(), "k1 k2 k3 k4");
  EXPECT_THAT(repeat().output, HasSubstr("0 messages were said again"));
  // What nobody has signed still waits for an answer.
  AwaitLetters(1);
  EXPECT_EQ(Letters()[0]["reason"], "it is not signed by admission");
  EXPECT_EQ(stack->Run("dead-letters drop --all").status, 0);
  stack->StopQueue();
  stack->StartQueue();
  const Result replay = stack->Run("replay");
  EXPECT_EQ(replay.status, 0) << replay.output;
}

TEST_F(OperateTest, ChecksConfigurations) {
  const std::string queues = std::string(FLUXQUEUE_SOURCE_DIR) + "/k8s/queues/";
  const Result good = stack->Call(
      fmt::format("config check {0}default.yaml {0}department.yaml {0}accounts.yaml", queues));
  EXPECT_EQ(good.status, 0) << good.output;
  const std::string bad = stack->config() + ".queue.yaml";
  std::ofstream(bad)
      << "kafka: {bootstrap: \"a:1\"}\npostgres: {dsn: x}\nqueue:\n  retention: soon\n";
  const Result service = stack->Call("config check " + bad);
  EXPECT_EQ(service.status, 1);
  EXPECT_THAT(service.output, AllOf(HasSubstr(":4"), HasSubstr("retention"), HasSubstr("soon")));
  const auto billed = [&bad](const std::string& billing) {
    std::ofstream(bad) << "kafka: {bootstrap: \"a:1\"}\npostgres: {dsn: x}\n"
                       << "kubernetes: {kubeconfig: x}\nadmission:\n"
                       << "  webhook: {certificate: x, key: x}\n  pool: {billing: [" << billing
                       << "]}\n";
    return stack->Call("config check " + bad);
  };
  EXPECT_EQ(billed("memory=0.5, gpu=2").status, 0) << billed("memory=0.5, gpu=2").output;
  for (const char* wrong : {"memory=-1", "memory=1e9", "memory", "=1", "cpu=1x"}) {
    EXPECT_THAT(billed(wrong).output,
                HasSubstr(fmt::format("billing \"{}\": allowed are a resource and its weight from "
                                      "0 to 1000",
                                      wrong)));
  }
  EXPECT_THAT(billed("cpu=1, cpu=2").output, HasSubstr("cpu stands twice"));
}

TEST_F(OperateTest, TheDoctorLooksAtTheStores) {
  const Result result = stack->Run("doctor");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("ok    Postgres"),
                    HasSubstr("ok    tables of cleanup"),
                    HasSubstr("ok    topic fluxqueue.pool"),
                    HasSubstr("ok    outbox of queue"),
                    HasSubstr("warn  Kubernetes"),
                    HasSubstr("set kubernetes.kubeconfig")));
  stack->Sql(
      "UPDATE queue.migrations SET name = name || '-' WHERE name = "
      "(SELECT max(name) FROM queue.migrations WHERE name LIKE 'queue/%')");
  const Result old = stack->Run("doctor");
  stack->Sql("UPDATE queue.migrations SET name = rtrim(name, '-') WHERE name LIKE '%-'");
  EXPECT_EQ(old.status, 1);
  EXPECT_THAT(old.output, HasSubstr("fail  tables of queue"));
}

TEST_F(OperateTest, ABundleHoldsWhatHelpsAndNoPasswords) {
  const std::string file = stack->config() + ".tar.gz";
  const Result made = stack->Run("support-bundle " + file);
  EXPECT_EQ(made.status, 0) << made.output;
  const auto sh = [&](const std::string& command) {
    Result result = stack->Call("help >/dev/null; " + command);
    return result.output;
  };
  EXPECT_THAT(sh("tar -tzf " + file),
              AllOf(HasSubstr("README.txt"),
                    HasSubstr("commands/doctor.txt"),
                    HasSubstr("tables/queue.jobs.csv"),
                    HasSubstr("events.jsonl"),
                    HasSubstr("config/fluxqueue.yaml")));
  EXPECT_THAT(sh("tar -xOzf " + file + " --wildcards '*/tables/queue.jobs.csv'"),
              HasSubstr("name-of-waiting"));
  EXPECT_THAT(sh("tar -xOzf " + file + " --wildcards '*/README.txt'"),
              HasSubstr("missing: cluster"));
}

}  // namespace
}  // namespace fluxqueue
