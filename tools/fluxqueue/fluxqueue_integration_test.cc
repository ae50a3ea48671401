// The program against a real Kafka and a real Postgres that the real queue and matcher have filled:
// their handlers in the real delivery loop, over a small log. The binder's and admission's rows are
// written here, and there is no cluster. Each tampering must be named.
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>
#include <sys/wait.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/prepare.h"
#include "libs/delivery/wire.h"
#include "libs/kafka/producer.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/metrics/metrics.h"
#include "libs/postgres/migrations.h"
#include "libs/queue_core/testing_story.h"
#include "libs/testing/mini_kafka.h"
#include "libs/testing/mini_postgres.h"
#include "services/matcher/adapters/pool_handler.h"
#include "services/queue/adapters/pool_handler.h"

#include "admission_migrations.h"
#include "binder_migrations.h"
#include "matcher_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue {
namespace {

using events::v1::Envelope;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kPartition = 3;
constexpr std::chrono::seconds kDeadline{60};

struct NobodyLooks final : queue::JobObserver {
  void Changed(std::vector<queue::JobSeen>) override {}
  void PoolsGained() override {}
  std::vector<std::string> Waiting() override { return {}; }
  void Moved(const std::vector<std::pair<std::string, int64_t>>&) override {}
};

struct Result {
  int status = -1;
  std::string output;  // both streams
};

class Stack {
 public:
  Stack() : db_({.dsn = postgres_.dsn(), .application = "test", .schema = "public"}) {
    std::string folder = (std::filesystem::temp_directory_path() / "fluxqueue-cli-XXXXXX").string();
    CHECK(mkdtemp(folder.data()) != nullptr, "{}", folder);
    folder_ = folder;
    std::ofstream(config()) << fmt::format(
        "postgres: {{dsn: \"{}\"}}\nkafka: {{bootstrap: \"{}\"}}\n",
        postgres_.dsn(),
        kafka_.bootstrap());
    Migrate("admission", migrations::admission());
    Migrate("binder", migrations::binder());
    Prepare("queue", migrations::queue());
    Prepare("matcher", migrations::matcher());
    Sql("INSERT INTO admission.pools VALUES ('main', 3, '')");
    auto producer = kafka::Producer::Create(kafka_.bootstrap(), "test", [](uint64_t) {});
    CHECK(producer.ok(), "{}", Message(producer.status()));
    producer_ = *std::move(producer);
    queue_loop_ = Run(queue_handler_, "queue");
    matcher_loop_ = Run(matcher_handler_, "matcher");
    Fill();
  }
  ~Stack() {
    queue_loop_.reset();
    matcher_loop_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string config() const { return folder_ + "/fluxqueue.yaml"; }

  Result Call(const std::string& arguments, const std::string& environment = "") {
    const std::string command = fmt::format("env -u FLUXQUEUE_CONFIG {} {}/bin/fluxqueue {} 2>&1",
                                            environment,
                                            FLUXQUEUE_BINARY_DIR,
                                            arguments);
    FILE* pipe = popen(command.c_str(), "r");
    CHECK(pipe != nullptr, "{}", command);
    Result result;
    std::array<char, 4096> buffer{};
    for (size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      result.output.append(buffer.data(), n);
    result.status = WEXITSTATUS(pclose(pipe));
    return result;
  }
  Result Run(const std::string& arguments) {
    return Call(fmt::format("{} --config {}", arguments, config()));
  }

  // Where a slot is, by the program's word.
  std::string NodeOf(const std::string& job, int slot) {
    const json found = json::parse(Run("job -o json " + job).output);
    return found["placement"][slot]["node"];
  }

  void Sql(const std::string& sql) {
    const absl::Status status = db_.Transact([&](pqxx::transaction_base& tx) {
      tx.exec(sql);
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}: {}", sql, Message(status));
  }
  std::string Value(const std::string& sql) {
    std::string value;
    const absl::Status status = db_.Query([&](pqxx::transaction_base& tx) {
      const pqxx::result rows = tx.exec(sql);
      if (!rows.empty()) value = rows[0][0].c_str();
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}: {}", sql, Message(status));
    return value;
  }

  // As a service would, but for its outbox.
  void Say(const std::string& stream, Envelope message) {
    message.set_stream(stream);
    message.set_sequence(++sequences_[stream]);
    Produce("fluxqueue.pool", kPartition, message);
  }
  void Produce(const std::string& topic, int partition, const Envelope& message) {
    const delivery::WireRecord record = delivery::MakeRecord(message, partition);
    absl::Status status =
        producer_->Produce(topic, partition, record.key, record.value, record.headers, 1);
    if (status.ok()) status = producer_->Flush(Millis(10'000));
    CHECK(status.ok(), "{}", Message(status));
  }

 private:
  class Running {
   public:
    Running(delivery::PartitionLoop::Options options,
            delivery::PartitionHandler& handler,
            const Clock& clock)
        : loop_(std::move(options), handler, clock),
          thread_([this](std::stop_token stop) { (void)loop_.Run(stop); }) {}

   private:
    delivery::PartitionLoop loop_;
    std::jthread thread_;
  };

  delivery::LoopOptions Options(const std::string& service) {
    return {.service = service,
            .instance = service + "-test",
            .brokers = kafka_.bootstrap(),
            .topics = {},
            .postgres = {.dsn = postgres_.dsn(), .application = service, .schema = service},
            .session_timeout = Millis{1500}};
  }
  void Migrate(const std::string& schema, const postgres::MigrationSet& set) {
    const absl::Status status = postgres::Migrate(db_, schema, {&set});
    CHECK(status.ok(), "{}", Message(status));
  }
  void Prepare(const std::string& service, const postgres::MigrationSet& set) {
    const absl::Status status =
        delivery::Prepare(Options(service), {&set}, [](const absl::Status&) {}, {});
    CHECK(status.ok(), "{}", Message(status));
  }
  std::unique_ptr<Running> Run(delivery::PartitionHandler& handler, const std::string& service) {
    const delivery::LoopOptions options = Options(service);
    return std::make_unique<Running>(
        delivery::PartitionLoop::Options{options, options.topics.pool}, handler, clock_);
  }

  void Submit(const std::string& id, uint32_t slots, int64_t cpu) {
    Envelope message = queue_core::Submitted(id, {.slots = slots, .completions = slots});
    message.mutable_job_submitted()->mutable_spec()->set_jobspec(
        matcher_core::JobspecText(slots, cpu));
    Say("admission/watch", message);
    Sql(fmt::format(
        "INSERT INTO admission.workloads VALUES ('{0}', '{0}', 'main', 'default', 'Job', 'team', "
        "'name-of-{0}', '1', 1, {1}, 0, false, false, null, '{{}}', 0)",
        id,
        slots));
  }
  void Await(const std::string& sql, const std::string& wanted) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (Value(sql) != wanted) {
      CHECK(std::chrono::steady_clock::now() < deadline, "{}: {}, not {}", sql, Value(sql), wanted);
      std::this_thread::sleep_for(Millis(20));
    }
  }
  void AwaitState(const std::string& id, const std::string& state) {
    Await("SELECT state FROM queue.jobs WHERE job_id = '" + id + "'", state);
  }
  Envelope ForPool(Envelope message) {
    message.set_pool(queue_core::kPool);
    return message;
  }

  // "done" has ended, "gang" runs on both nodes, "waiting" waits.
  void Fill() {
    Envelope pool = queue_core::PoolConfig(5);
    pool.mutable_pool_configured()->set_answer_deadline_ms(60'000);
    Say("admission/watch", pool);
    Say("admission/watch", queue_core::QueueMade("default"));
    for (const char* node : {"n1", "n2"}) {
      Say("cleanup/watch", ForPool(matcher_core::Upserted(matcher_core::MakeNode(node, 4000))));
    }
    Say("cleanup/watch", ForPool(matcher_core::Synced()));
    Submit("done", 1, 4000);
    AwaitState("done", "Allocated");
    Say("binder/0", queue_core::Bound("done", 1));
    Say("cleanup/watch", queue_core::Started("done", 1));
    Say("cleanup/watch", queue_core::Ended("done"));
    AwaitState("done", "Succeeded");
    Sql("DELETE FROM admission.workloads WHERE uid = 'done'");
    Submit("gang", 2, 3000);
    AwaitState("gang", "Allocated");
    for (int slot = 0; slot < 2; ++slot) {
      Sql(fmt::format(
          "INSERT INTO binder.slots VALUES ('gang', 1, 0, {0}, '{1}', 'u{0}', 'gang-{0}', "
          "'team', 'bound', true, false)",
          slot,
          NodeOf("gang", slot)));
    }
    Say("binder/0", queue_core::Bound("gang", 1));
    AwaitState("gang", "Bound");
    Submit("waiting", 1, 2000);
    AwaitState("waiting", "Pending");
    Await("SELECT reason FROM queue.jobs WHERE job_id = 'waiting'", "Busy");
    Await("SELECT count(*) FROM matcher.allocations WHERE NOT released", "1");
    Await("SELECT (SELECT count(*) FROM queue.outbox) + (SELECT count(*) FROM matcher.outbox)",
          "0");
  }

  testing::MiniKafka kafka_;
  testing::MiniPostgres postgres_;
  std::string folder_;
  postgres::Connection db_;
  RealClock clock_;
  metrics::Registry registry_;
  NobodyLooks observer_;
  queue::QueueMetrics queue_metrics_{registry_};
  matcher::MatcherMetrics matcher_metrics_{registry_};
  queue::FactFeed feed_;
  queue::CommandDesk desk_{[] {}};
  queue::PoolHandler queue_handler_{
      observer_, feed_, desk_, queue_metrics_, clock_, std::chrono::hours(1)};
  matcher::PoolDesk matcher_desk_{[] {}};
  matcher::PoolHandler matcher_handler_{{}, matcher_desk_, matcher_metrics_, clock_};
  std::unique_ptr<kafka::Producer> producer_;
  std::map<std::string, uint64_t> sequences_;
  std::unique_ptr<Running> queue_loop_;
  std::unique_ptr<Running> matcher_loop_;
};

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
  EXPECT_THAT(stack->Run("nodes").output, HasSubstr("3/4"));
}

TEST_F(CliTest, SaysWhatToDoWithoutAConfiguration) {
  const Result result = stack->Call("jobs", "FLUXQUEUE_STATE=/nowhere");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(
      result.output,
      AllOf(HasSubstr("/nowhere/fluxqueue.yaml"), HasSubstr("tools/up"), HasSubstr("--config")));
  EXPECT_EQ(stack->Call("queues", "FLUXQUEUE_CONFIG=" + stack->config()).status, 0);
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
  const std::string dump = stack->config() + ".jsonl";
  EXPECT_EQ(stack->Run(fmt::format("replay --pool main --dump {}", dump)).status, 0);
  const Result kept = stack->Run(fmt::format("simulate --format events --jobs {} -o json", dump));
  EXPECT_EQ(kept.status, 0) << kept.output;
  EXPECT_EQ(json::parse(kept.output)["replay"]["identical"], counts["identical"]);
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
