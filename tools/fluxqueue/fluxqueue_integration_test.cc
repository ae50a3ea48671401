// The program against a real Kafka and a real Postgres. Each tampering must be named.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/fluxqueue/testing_stack.h"

namespace fluxqueue {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Stack* stack = nullptr;

class CliTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { stack = new Stack; }
  static void TearDownTestSuite() { delete std::exchange(stack, nullptr); }

  // The numbers of the invariants that `verify` calls broken.
  static std::vector<int> Broken(const std::string& arguments) {
    const Result result = stack->Run("verify -o json " + arguments);
    const json report = json::parse(result.output, nullptr, false);
    if (report.is_discarded()) {
      ADD_FAILURE() << result.output;
      return {};
    }
    std::vector<int> numbers;
    for (const json& check : report["invariants"]) {
      if (!check["ok"]) numbers.push_back(check["number"]);
    }
    EXPECT_EQ(result.status, numbers.empty() ? 0 : 1);
    return numbers;
  }
};

TEST_F(CliTest, ListsJobs) {
  const Result live = stack->Run("jobs");
  EXPECT_EQ(live.status, 0) << live.output;
  EXPECT_THAT(live.output,
              AllOf(HasSubstr("team/name-of-gang"),
                    HasSubstr(stack->NodeOf("gang", 0) + "," + stack->NodeOf("gang", 1)),
                    Not(HasSubstr("name-of-done"))));
  const json all = json::parse(stack->Run("jobs --all -o json").output);
  ASSERT_EQ(all["jobs"].size(), 3U);
  EXPECT_EQ(all["jobs"][2]["id"], "waiting");
  EXPECT_EQ(all["jobs"][2]["position"], 1);
  EXPECT_EQ(json::parse(stack->Run("jobs --state Succeeded -o json").output)["jobs"].size(), 1U);
  EXPECT_EQ(json::parse(stack->Run("jobs --queue other -o json").output)["jobs"].size(), 0U);
  const Result bad = stack->Run("jobs --state Sleeping");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.output, HasSubstr("there is no such state; there are Submitted, Pending"));
}

TEST_F(CliTest, ReportsWhatWasUsed) {
  const json report = json::parse(stack->Run("report -o json").output);
  ASSERT_EQ(report["rows"].size(), 1U);
  EXPECT_EQ(report["rows"][0]["user"], "ann");
  EXPECT_EQ(report["rows"][0]["jobs"], 1) << "the others live";
  EXPECT_EQ(report["rows"][0]["success"], 1.0);
  EXPECT_GT(report["rows"][0]["cpuHours"], 0.0);
  EXPECT_THAT(stack->Run("report --by queue,month").output,
              AllOf(HasSubstr("QUEUE    MONTH"), HasSubstr("default  20"), HasSubstr("100.0 %")));
  EXPECT_THAT(stack->Run("report --by namespace -o csv").output,
              AllOf(HasSubstr("namespace,jobs,"), HasSubstr("\nteam,1,1,0,1,1,")));
  EXPECT_THAT(stack->Run("report --user bob").output, HasSubstr("no job has ended from 20"));
}

TEST_F(CliTest, RefusesWhatIsNoReport) {
  const struct {
    const char* arguments;
    const char* sentence;
  } kCases[] = {
      {"report --since yesterday", "--since yesterday: want a day (2026-11-01), a month (2026-11)"},
      {"report --since 2026-11 --until 2026-10", "--since 2026-11 is not before --until 2026-10"},
      {"report --by user,user", "--by user: named twice"},
      {"report --by team", "--by"},
      {"jobs --until noon", "--until noon: want a day"},
      {"jobs --limit 0 --all", "--limit"},
      {"jobs -o csv", "-o csv: only report has it"},
  };
  for (const auto& c : kCases) {
    const Result result = stack->Run(c.arguments);
    EXPECT_EQ(result.status, 2) << c.arguments;
    EXPECT_THAT(result.output, HasSubstr(c.sentence)) << c.arguments;
  }
}

TEST_F(CliTest, ListsJobsOfATime) {
  const auto ids = [](const std::string& arguments) {
    const json jobs = json::parse(stack->Run("jobs -o json " + arguments).output)["jobs"];
    std::vector<std::string> list;
    for (const json& job : jobs) list.push_back(job["id"]);
    std::sort(list.begin(), list.end());
    return fmt::format("{}", fmt::join(list, " "));
  };
  EXPECT_EQ(ids("--user ann"), "gang waiting");
  EXPECT_EQ(ids("--user bob --all"), "");
  EXPECT_EQ(ids("--since 1h"), "done gang waiting");
  // Long after it has left queue.jobs it is still in the accounting.
  stack->Sql("UPDATE queue.jobs SET job_id = 'gone', username = 'nobody' WHERE job_id = 'done'");
  EXPECT_EQ(ids("--since 1h --user ann"), "done gang waiting");
  EXPECT_EQ(ids("--since 1h --user ann --state Succeeded"), "done");
  EXPECT_EQ(ids("--since 1h --user ann --state Pending"), "waiting");
  EXPECT_EQ(ids("--since 1h --user ann --limit 1").find(' '), std::string::npos);
  EXPECT_THAT(stack->Run("jobs --since 1h --user ann --limit 1").output,
              HasSubstr("the 1 newest jobs of that time; --limit"));
  stack->Sql("UPDATE queue.jobs SET job_id = 'done', username = 'ann' WHERE job_id = 'gone'");
}

TEST_F(CliTest, ShowsAJob) {
  for (const char* name : {"gang", "name-of-gang", "team/name-of-gang"}) {
    const Result result = stack->Run(fmt::format("job {}", name));
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_THAT(
        result.output,
        AllOf(
            HasSubstr("Job team/name-of-gang"), HasSubstr("Allocated"), HasSubstr("team/gang-1")));
  }
  const json done = json::parse(stack->Run("job done -o json").output);
  EXPECT_EQ(done["events"].size(), 5U);
  EXPECT_EQ(done["events"][4]["state"], "Succeeded");
  EXPECT_EQ(done["placement"][0]["released"], true);
  const Result none = stack->Run("job name-of-gong");
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.output, HasSubstr("did you mean team/name-of-gang"));
}

TEST_F(CliTest, ListsQueuesAndNodes) {
  const json queues = json::parse(stack->Run("queues -o json").output);
  ASSERT_EQ(queues.size(), 1U);
  EXPECT_EQ(queues[0]["jobs"]["Pending"], 1);
  EXPECT_THAT(stack->Run("queues").output, HasSubstr("default"));
  const json nodes = json::parse(stack->Run("nodes -o json").output);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]["held"]["cpu"], 3000);
  EXPECT_EQ(nodes[0]["jobs"]["gang"], 1);
  EXPECT_THAT(stack->Run("nodes -o wide").output, HasSubstr("3/4"));
  EXPECT_THAT(stack->Run("nodes").output, HasSubstr("▇▇\n2 nodes: █ default 2"));
}

TEST_F(CliTest, SaysWhatToDoWithoutAConfiguration) {
  // Nothing here, and no kubectl to go elsewhere with.
  const Result nothing = stack->Call("jobs", "FLUXQUEUE_STATE=/nowhere PATH=/nowhere");
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.output,
              AllOf(HasSubstr("/nowhere/fluxqueue.yaml"),
                    HasSubstr("kubectl is not on the PATH"),
                    HasSubstr("--config")));
  const Result missing = stack->Call("jobs --config /nowhere/it.yaml");
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.output, AllOf(HasSubstr("/nowhere/it.yaml"), HasSubstr("tools/up")));
  EXPECT_EQ(stack->Call("queues", "FLUXQUEUE_CONFIG=" + stack->config()).status, 0);
}

// Only where neither store answers it is the system that does not run (tests/tools/where_test.sh).
TEST_F(CliTest, AStoreThatIsAwayIsNamed) {
  std::ifstream config(stack->config());
  std::string postgres;
  std::string kafka;
  std::getline(config, postgres);
  std::getline(config, kafka);
  const std::string half = stack->config() + ".half";
  std::ofstream(half) << "postgres: {dsn: \"postgresql://me@127.0.0.1:1/db\"}\n" << kafka << "\n";
  const Result result = stack->Call("jobs --config " + half);
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("connect to Postgres user=me dbname=db host=127.0.0.1 port=1"),
                    Not(HasSubstr("does not run"))));
}

TEST_F(CliTest, AHealthySystemIsFoundHealthy) {
  const Result replay = stack->Run("replay -v");
  EXPECT_EQ(replay.status, 0) << replay.output;
  EXPECT_THAT(replay.output, HasSubstr("cycle_answered"));
  const json counts = json::parse(stack->Run("replay --pool main -o json").output);
  EXPECT_GT(counts["decisions"], 10);
  EXPECT_EQ(counts["decisions"], counts["identical"]);
  EXPECT_EQ(counts["inFlight"], 0);
  // The log, kept, gives the same decisions without the system.
  const std::string dump = stack->config() + ".log.gz";
  const Result dumped = stack->Run("events dump main " + dump);
  EXPECT_EQ(dumped.status, 0) << dumped.output;
  EXPECT_THAT(dumped.output, HasSubstr("records of pool main\n"));
  const Result kept = stack->Call(fmt::format("replay --file {} -o json", dump));
  EXPECT_EQ(kept.status, 0) << kept.output;
  EXPECT_EQ(json::parse(kept.output)["identical"], counts["identical"]);
  const Result played = stack->Run(fmt::format("simulate --format events --jobs {} -o json", dump));
  EXPECT_EQ(played.status, 0) << played.output;
  EXPECT_EQ(json::parse(played.output)["replay"]["identical"], counts["identical"]);
  // So does the archive, which grows by what is new.
  const std::string archive = stack->config() + ".archive";
  EXPECT_THAT(stack->Run("events archive " + archive).output, HasSubstr(" records of pool main\n"));
  EXPECT_THAT(stack->Run("events archive " + archive).output,
              HasSubstr("0 records of pool main\n"));
  EXPECT_THAT(stack->Run("events archive").output, HasSubstr("or archive.folder in "));
  const std::string named = stack->config() + ".named";
  std::ofstream(named) << std::ifstream(stack->config()).rdbuf()
                       << fmt::format("archive: {{folder: \"{}\"}}\n", archive);
  EXPECT_EQ(stack->Call("events archive --config " + named).output, "0 records of pool main\n");
  const Result archived = stack->Call(fmt::format("replay --file {}/main -o json", archive));
  EXPECT_EQ(archived.status, 0) << archived.output;
  EXPECT_EQ(json::parse(archived.output)["identical"], counts["identical"]);
  EXPECT_EQ(stack->Run(fmt::format("events dump main {} --to 2020-01", dump)).status, 0);
  EXPECT_THAT(stack->Call("replay --file " + dump).output, HasSubstr("has no record"));
  const json now = json::parse(stack->Run("replay --inspect -o json").output);
  EXPECT_FALSE(now["allocations"].empty());
  const json story = json::parse(stack->Run("replay --job gang -o json").output);
  EXPECT_EQ(story["id"], "gang");
  EXPECT_EQ(story["steps"][0]["cause"]["type"], "job_submitted");
  EXPECT_THAT(stack->Run("replay --pool other").output, HasSubstr("there are: main"));
  const Result verify = stack->Run("verify");
  EXPECT_EQ(verify.status, 0) << verify.output;
  EXPECT_THAT(verify.output, AllOf(HasSubstr("✓ 1"), HasSubstr("✓ 8"), Not(HasSubstr("✗"))));
}

// Each pair takes the row back afterwards.
TEST_F(CliTest, TamperedRowsAreNamed) {
  const std::string gang = " WHERE job_id = 'gang'";
  struct Tampering {
    std::string change;
    std::string back;
    std::vector<int> broken;
  };
  const Tampering kTamperings[] = {
      {"CREATE TABLE kept AS SELECT * FROM matcher.graph_nodes WHERE name = 'n2';"
       "DELETE FROM matcher.graph_nodes WHERE name = 'n2'",
       "INSERT INTO matcher.graph_nodes SELECT * FROM kept; DROP TABLE kept",
       {1}},
      {"UPDATE matcher.specs SET slots = 3" + gang,
       "UPDATE matcher.specs SET slots = 2" + gang,
       {2}},
      {"UPDATE matcher.allocations SET attempt = 2" + gang +
           "; UPDATE binder.slots SET attempt = 2" + gang,
       "UPDATE matcher.allocations SET attempt = 1" + gang +
           "; UPDATE binder.slots SET attempt = 1" + gang,
       {3}},
      {"UPDATE binder.slots SET node = node || 'x'" + gang,
       "UPDATE binder.slots SET node = rtrim(node, 'x')" + gang,
       {4}},
      {fmt::format("UPDATE binder.slots SET job_id = 'done', node = '{}' WHERE slot = 0",
                   stack->NodeOf("done", 0)),
       fmt::format("UPDATE binder.slots SET job_id = 'gang', node = '{}' WHERE slot = 0",
                   stack->NodeOf("gang", 0)),
       {2, 5}},
      {"UPDATE admission.workloads SET job_id = 'lost'" + gang,
       "UPDATE admission.workloads SET job_id = 'gang' WHERE job_id = 'lost'",
       {6}},
      {"UPDATE queue.job_events SET version = 9 WHERE job_id = 'waiting' AND version = 1",
       "UPDATE queue.job_events SET version = 1 WHERE job_id = 'waiting' AND version = 9",
       {7}},
  };
  for (const Tampering& tampering : kTamperings) {
    stack->Sql(tampering.change);
    EXPECT_EQ(Broken("--no-replay"), tampering.broken) << tampering.change;
    stack->Sql(tampering.back);
  }
  EXPECT_EQ(Broken(""), std::vector<int>{});
}

TEST_F(CliTest, TablesAreRebuiltFromTheLogOrASnapshot) {
  // All that a core is restored from.
  const auto tables = [] {
    std::string text;
    for (const char* table : {"queue.jobs",
                              "queue.queues",
                              "queue.usage",
                              "queue.pools",
                              "matcher.allocations",
                              "matcher.graph_nodes",
                              "matcher.specs",
                              "matcher.reservations"}) {
      text += table + stack->Value(fmt::format(
                          "SELECT string_agg(t::text, chr(10) ORDER BY t::text) FROM {} t", table));
    }
    return text + stack->Value("SELECT row::text || forecast::text FROM matcher.pools");
  };
  const auto rebuild = [](const std::string& options) {
    return stack->Call(fmt::format("rebuild main --yes --config {} {}", stack->config(), options),
                       fmt::format("FLUXQUEUE_POSTGRES_DSN='{}'", stack->owner_dsn()));
  };
  const std::string snapshot = stack->config() + ".snapshot.gz";
  EXPECT_EQ(stack->Run("replay --pool main --save " + snapshot).status, 0);
  stack->Say("admission/watch", queue_core::QueueMade("later"));
  stack->Await("SELECT count(*) FROM queue.queues WHERE queue = 'later'", "1");
  stack->Await(
      "SELECT q.next_offset = m.next_offset FROM queue.inbox q JOIN matcher.inbox m USING "
      "(partition) WHERE partition = 3",
      "t");
  EXPECT_EQ(json::parse(stack->Run("rebuild main -o json").output)["equal"], true);
  const Result running = rebuild("");
  EXPECT_EQ(running.status, 2);
  EXPECT_THAT(running.output, HasSubstr("still runs"));
  stack->StopQueue();
  EXPECT_THAT(rebuild("").output, HasSubstr("the matcher still runs (it has session "));
  stack->StopMatcher();
  const std::string before = tables();
  const std::string damage =
      "DELETE FROM queue.jobs WHERE job_id = 'waiting'; "
      "UPDATE queue.jobs SET state = 'Failed' WHERE job_id = 'gang'; "
      "UPDATE matcher.graph_nodes SET ordinal = 9 WHERE name = 'n2'; "
      "DELETE FROM queue.queues; DELETE FROM matcher.specs; DELETE FROM queue.usage; "
      "DELETE FROM matcher.allocations WHERE NOT released";
  stack->Sql(damage);
  const Result differs = stack->Run("rebuild main");
  EXPECT_EQ(differs.status, 1);
  EXPECT_THAT(differs.output, HasSubstr("--yes writes them by the log"));
  EXPECT_EQ(stack->Run("rebuild main --yes").status, 2);  // the command line's role may not
  // The archive's own; the log is of less than a day, so it has none yet.
  const std::string archive = stack->config() + ".rebuild";
  EXPECT_EQ(stack->Run("events archive " + archive).status, 0);
  std::filesystem::create_directory(archive + "/main/snapshots");
  std::filesystem::copy_file(snapshot, archive + "/main/snapshots/0-2020-01-01.gz");
  for (const std::string& from :
       {std::string(), "--from-snapshot " + snapshot, fmt::format("--file {}/main", archive)}) {
    const Result rebuilt = rebuild(from);
    EXPECT_EQ(rebuilt.status, 0) << rebuilt.output;
    EXPECT_EQ(tables(), before) << from;
    stack->Sql(damage);
  }
  // Where the services had read less.
  stack->Sql("UPDATE queue.inbox SET next_offset = 1 WHERE partition = 3");
  EXPECT_THAT(rebuild("--from-snapshot " + snapshot).output, HasSubstr("take an earlier one"));
  stack->Sql("UPDATE queue.inbox SET next_offset = 99999 WHERE partition = 3");
  EXPECT_THAT(rebuild("").output, HasSubstr("and the services have read to 99999"));
  stack->Sql(
      "UPDATE queue.inbox SET next_offset = (SELECT next_offset FROM matcher.inbox WHERE partition "
      "= 3) WHERE partition = 3");
  EXPECT_EQ(rebuild("").status, 0);
  stack->StartQueue();
  stack->StartMatcher();
  EXPECT_EQ(Broken(""), std::vector<int>{});
}

// Last: the logs cannot be mended.
TEST_F(CliTest, ZForgedRecordsAreFound) {
  Envelope forged = queue_core::ForPool();
  auto* fact = forged.mutable_job_fact();
  fact->set_job_id("waiting");
  fact->set_pool(queue_core::kPool);
  fact->set_version(77);
  forged.set_stream("forger/1");
  forged.set_sequence(1);
  stack->Produce("fluxqueue.jobs", kafka::JobPartition("waiting"), forged);
  EXPECT_EQ(Broken(""), (std::vector<int>{7, 8}));
  const Result replay = stack->Run("replay");
  EXPECT_EQ(replay.status, 1);
  EXPECT_THAT(replay.output, AllOf(HasSubstr("version: 77"), HasSubstr("asks for it")));
}

}  // namespace
}  // namespace fluxqueue
