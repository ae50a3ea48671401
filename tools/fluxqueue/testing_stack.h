// A small system for tests of the program: a real Kafka and a real Postgres that the real queue and
// matcher have filled, their handlers in the real delivery loop, over a small log. The binder's and
// admission's rows are written here, and there is no cluster.
#pragma once

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
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
#include "libs/signing/testing_keys.h"
#include "libs/testing/mini_kafka.h"
#include "libs/testing/mini_postgres.h"
#include "services/matcher/adapters/pool_handler.h"
#include "services/queue/adapters/pool_handler.h"

#include "admission_migrations.h"
#include "binder_migrations.h"
#include "matcher_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue {

using events::v1::Envelope;
using nlohmann::json;

inline constexpr int kPartition = 3;
inline constexpr std::chrono::seconds kDeadline{60};

struct NobodyLooks final : queue::JobObserver {
  void Changed(std::vector<queue::JobSeen>) override {}
  void PoolsGained(const std::set<std::string>& /*pools*/) override {}
  void PoolsLost(const std::set<std::string>& /*pools*/) override {}
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
        postgres_.dsn_of("cli"),
        kafka_.bootstrap());
    postgres_.MakeRoles();
    Prepare("admission", migrations::admission());
    Prepare("binder", migrations::binder());
    Prepare("cleanup");
    Prepare("queue", migrations::queue());
    Prepare("matcher", migrations::matcher());
    Sql("INSERT INTO admission.pools VALUES ('main', 3, '')");
    auto producer = kafka::Producer::Create(kafka_.bootstrap(), "test", [](uint64_t) {});
    CHECK(producer.ok(), "{}", Message(producer.status()));
    producer_ = *std::move(producer);
    StartQueue();
    StartMatcher();
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
    const std::string command =
        fmt::format("env -u FLUXQUEUE_CONFIG -u KUBECONFIG {} {}/bin/fluxqueue {} 2>&1",
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

  // With the account and in the schema of a service.
  void As(const std::string& service, const postgres::Work& work) {
    postgres::Connection own(Options(service).postgres);
    const absl::Status status = own.Transact(work);
    CHECK(status.ok(), "{}: {}", service, Message(status));
  }

  void StopQueue() { queue_loop_.reset(); }
  // `faults` must outlive the queue. `keys`: what it reads must be signed by one of these.
  void StartQueue(delivery::FaultInjector* faults = nullptr,
                  std::shared_ptr<const signing::Keys> keys = nullptr) {
    delivery::LoopOptions options = Options("queue");
    options.keys = std::move(keys);
    queue_loop_ = Run(queue_handler_, options, faults);
  }
  void StopMatcher() { matcher_loop_.reset(); }
  void StartMatcher() { matcher_loop_ = Run(matcher_handler_, Options("matcher")); }
  // Of a role that may write all tables.
  std::string owner_dsn() const { return postgres_.dsn(); }
  // Of all services: what they say is signed.
  signing::TestingKeys& keys() { return keys_; }

  // As a service would, but for its outbox. `key`: of the service, if it is not the first.
  void Say(const std::string& stream, Envelope message, const std::string& key = "") {
    message.set_stream(stream);
    message.set_sequence(++sequences_[stream]);
    delivery::OutboxRow row{.stream = stream,
                            .target = {"fluxqueue.pool", kPartition},
                            .last_seq = message.sequence(),
                            .records = {delivery::MakeRecord(message, kPartition)}};
    const auto signer =
        signing::Signer::Read(keys_.key_of(key.empty() ? stream.substr(0, stream.find('/')) : key));
    CHECK(signer.ok(), "{}", Message(signer.status()));
    delivery::SignRecords(*signer, &row);
    Produce(row.target.topic, kPartition, row.records[0]);
  }
  // By nobody.
  void Produce(const std::string& topic, int partition, const Envelope& message) {
    Produce(topic, partition, delivery::MakeRecord(message, partition));
  }
  void Produce(const std::string& topic, int partition, const delivery::WireRecord& record) {
    absl::Status status =
        producer_->Produce(topic, partition, record.key, record.value, record.headers, 1);
    if (status.ok()) status = producer_->Flush(Millis(10'000));
    CHECK(status.ok(), "{}", Message(status));
  }

  void Await(const std::string& sql, const std::string& wanted) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (Value(sql) != wanted) {
      CHECK(std::chrono::steady_clock::now() < deadline, "{}: {}, not {}", sql, Value(sql), wanted);
      std::this_thread::sleep_for(Millis(20));
    }
  }

 private:
  class Running {
   public:
    Running(delivery::PartitionLoop::Options options,
            delivery::PartitionHandler& handler,
            const Clock& clock,
            delivery::FaultInjector* faults)
        : loop_(std::move(options), handler, clock, faults),
          thread_([this](std::stop_token stop) { (void)loop_.Run(stop); }) {}

   private:
    delivery::PartitionLoop loop_;
    std::jthread thread_;
  };

  delivery::LoopOptions Options(const std::string& service) {
    const auto signer = signing::Signer::Read(keys_.key_of(service));
    CHECK(signer.ok(), "{}", Message(signer.status()));
    return {
        .service = service,
        .instance = service + "-test",
        .brokers = kafka_.bootstrap(),
        .topics = {},
        .postgres = {.dsn = postgres_.dsn_of(service), .application = service, .schema = service},
        .signer = std::make_shared<const signing::Signer>(*signer),
        .session_timeout = Millis{1500}};
  }
  template <typename... Sets>
  void Prepare(const std::string& service, const Sets&... sets) {
    const absl::Status status =
        delivery::Prepare(Options(service), {&sets...}, [](const absl::Status&) {}, {});
    CHECK(status.ok(), "{}", Message(status));
  }
  std::unique_ptr<Running> Run(delivery::PartitionHandler& handler,
                               const delivery::LoopOptions& options,
                               delivery::FaultInjector* faults = nullptr) {
    return std::make_unique<Running>(
        delivery::PartitionLoop::Options{options, options.topics.pool}, handler, clock_, faults);
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
  signing::TestingKeys keys_{{"admission", "binder", "cleanup", "matcher", "queue"}};
  std::string folder_;
  postgres::Connection db_;
  RealClock clock_;
  metrics::Registry registry_;
  tracing::Tracer tracer_{{}, registry_};
  NobodyLooks observer_;
  queue::QueueMetrics queue_metrics_{registry_};
  matcher::MatcherMetrics matcher_metrics_{registry_};
  queue::FactFeed feed_;
  queue::CommandDesk desk_{[] {}};
  queue::PoolHandler queue_handler_{observer_, feed_, desk_, queue_metrics_, clock_, tracer_};
  matcher::PoolHandler matcher_handler_{{}, matcher_metrics_, clock_, tracer_};
  std::unique_ptr<kafka::Producer> producer_;
  std::map<std::string, uint64_t> sequences_;
  std::unique_ptr<Running> queue_loop_;
  std::unique_ptr<Running> matcher_loop_;
};

}  // namespace fluxqueue
