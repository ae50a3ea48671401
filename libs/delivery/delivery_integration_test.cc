// The delivery loops with a real Kafka and a real Postgres: whatever happens, each message has its
// effect exactly once.
//
// The set-up of most tests: a Feeder (shard loop) says what stands in its table `todo`, in the
// order of the ids, to the partition id % 12 of the pool topic. Counters (partition loops, one or
// more replicas) number the messages of each partition, keep them in the table `seen` (a second
// handling violates its key), and say each as a version of a job. At the end the rows and the
// versions must be exactly right. Faults are in between.
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/incarnation.h"
#include "libs/delivery/ledger.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/partition_table.h"
#include "libs/delivery/prepare.h"
#include "libs/delivery/shard_loop.h"
#include "libs/delivery/stream_filter.h"
#include "libs/delivery/testing_loops.h"
#include "libs/delivery/wire.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/consumer.h"
#include "libs/kafka/envelope.h"
#include "libs/kafka/producer.h"
#include "libs/kafka/reader.h"
#include "libs/postgres/array.h"
#include "libs/postgres/migrations.h"
#include "libs/postgres/statement.h"
#include "libs/signing/testing_keys.h"

namespace fluxqueue::delivery {
namespace {

using events::v1::Envelope;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int kPartitions = kafka::kPoolPartitions;

const postgres::MigrationSet& TestMigrations() {
  static const postgres::MigrationSet kSet{
      "test",
      {{"0001_test",
        "CREATE TABLE todo (id bigint PRIMARY KEY, payload bigint NOT NULL, done boolean NOT NULL);"
        "CREATE TABLE seen (partition int, n bigint, id bigint, PRIMARY KEY (partition, n), UNIQUE "
        "(id));"}}};
  return kSet;
}

// ---- handlers

constexpr postgres::Statement kTodo = {"test_todo",
                                       "SELECT id FROM todo WHERE NOT done ORDER BY id"};
constexpr postgres::Statement kDone = {"test_done",
                                       "UPDATE todo SET done = true WHERE id = ANY($1::bigint[])"};
constexpr postgres::Statement kCount = {"test_count",
                                        "SELECT count(*) FROM seen WHERE partition = $1"};
// No ON CONFLICT: what is handled twice is a broken invariant. The id goes through text, so that
// one that is no number fails in the database.
constexpr postgres::Statement kSeen = {
    "test_seen",
    "INSERT INTO seen (partition, n, id) SELECT p, n, id::bigint "
    "FROM unnest($1::int[], $2::bigint[], $3::text[]) AS s (p, n, id)"};

class Feeder final : public ShardHandler {
 public:
  explicit Feeder(size_t at_once) : at_once_(at_once) {}

  absl::Status Load(pqxx::transaction_base& tx) override {
    todo_.clear();
    for (const pqxx::row& row : postgres::Exec(tx, kTodo)) todo_.push_back(row[0].as<int64_t>());
    return absl::OkStatus();
  }
  void Drop() override { todo_.clear(); }
  bool HasWork() const override { return !todo_.empty(); }
  bool HasRows() const override { return true; }
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override { return {}; }
  absl::Status Poll(Outbox& outbox) override {
    said_ = std::min(at_once_, todo_.size());
    for (size_t i = 0; i < said_; ++i) {
      Envelope envelope;
      envelope.set_pool("p");
      envelope.mutable_job_withdrawn()->set_job_id(fmt::format("{}", todo_[i]));
      outbox.AppendToPool(
          kShard, static_cast<int>(std::abs(todo_[i]) % kPartitions), std::move(envelope));
    }
    return absl::OkStatus();
  }
  absl::Status Write(pqxx::transaction_base& tx) override {
    postgres::BigintArray ids;
    for (size_t i = 0; i < said_; ++i) ids.Add(todo_[i]);
    postgres::Exec(tx, kDone, ids.text());
    return absl::OkStatus();
  }
  void Commit() override {
    todo_.erase(todo_.begin(), todo_.begin() + static_cast<std::ptrdiff_t>(said_));
    said_ = 0;
  }
  void Rollback() override { said_ = 0; }

 private:
  const size_t at_once_;
  std::vector<int64_t> todo_;
  size_t said_ = 0;
};

// Counts the messages with ids of 0 and more; the others are none of its business.
class Counter : public PartitionHandler {
 public:
  absl::Status Load(pqxx::transaction_base& tx, int partition) override {
    counts_[partition] = postgres::Exec(tx, kCount, partition)[0][0].as<int64_t>();
    return absl::OkStatus();
  }
  void Drop(int partition) override { counts_.erase(partition); }
  absl::Status Idle() override {
    CHECK(counts_.empty(), "it has partitions");
    ++idle_;
    return absl::OkStatus();
  }
  int idle() const { return idle_; }
  absl::Status Handle(const Record& record, Outbox& outbox) override {
    const std::string& id = record.envelope.job_withdrawn().job_id();
    if (id == "poison") return InvalidArgument("id {}: not for me", id);
    if (id == "stuck") return Unavailable("id {}: not now", id);
    if (id == "fatal") return Internal("id {}: never", id);
    if (id == "object") {
      const QuarantineRow row{.object = {.kind = "Pod", .space = "lab", .name = "a", .uid = "u"},
                              .reason = "it threw"};
      DeadLetter letter = MakeLetter(row, "counter/pods");
      letter.source = record.partition;
      outbox.AppendLetter(std::move(letter));
      return absl::OkStatus();
    }
    if (id.starts_with('-')) return absl::OkStatus();
    CHECK(counts_.contains(record.partition), "partition {} was not loaded", record.partition);
    undo_.try_emplace(record.partition, counts_[record.partition]);
    const int64_t n = ++counts_[record.partition];
    rows_.push_back({record.partition, n, id});
    Envelope envelope;
    envelope.set_pool("p");
    envelope.mutable_job_fact()->set_job_id(fmt::format("job-{}", record.partition));
    envelope.mutable_job_fact()->set_version(static_cast<uint64_t>(n));
    outbox.AppendToJobs(record.partition, std::move(envelope));
    return absl::OkStatus();
  }
  bool HasWork() const override { return false; }
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override { return {}; }
  absl::Status Poll(Outbox& /*outbox*/) override { return absl::OkStatus(); }
  bool HasRows() const override { return !rows_.empty(); }
  absl::Status Write(pqxx::transaction_base& tx) override {
    postgres::BigintArray partitions, numbers;
    postgres::TextArray ids;
    for (const Row& row : rows_) {
      partitions.Add(row.partition);
      numbers.Add(row.n);
      ids.Add(row.id);
    }
    postgres::Exec(tx, kSeen, partitions.text(), numbers.text(), ids.text());
    return absl::OkStatus();
  }
  void Commit() override {
    rows_.clear();
    undo_.clear();
  }
  void Rollback() override {
    for (const auto& [partition, count] : undo_) counts_[partition] = count;
    Commit();
  }

 private:
  struct Row {
    int partition;
    int64_t n;
    std::string id;
  };
  std::atomic<int> idle_ = 0;
  std::map<int, int64_t> counts_;
  std::map<int, int64_t> undo_;
  std::vector<Row> rows_;
};

// Reads the first partition for so long, and then thinks about it for so long; so many times.
class SlowCounter final : public Counter {
 public:
  explicit SlowCounter(Millis time, int times = 1) : time_(time), times_(times) {}
  absl::Status Load(pqxx::transaction_base& tx, int partition) override {
    for (int i = 0; partition == 0 && i < times_; ++i) {
      tx.exec(fmt::format("SELECT pg_sleep({})", static_cast<double>(time_.count()) / 1000));
      std::this_thread::sleep_for(time_);
    }
    return Counter::Load(tx, partition);
  }

 private:
  const Millis time_;
  const int times_;
};

// ---- faults

// Every `period`-th commit fails, before and after in turn.
class EveryNth final : public FaultInjector {
 public:
  explicit EveryNth(int period) : period_(period) {}
  CommitFault NextCommit() override {
    if (++commits_ % period_ != 0) return CommitFault::kNone;
    return (commits_ / period_) % 2 == 0 ? CommitFault::kBefore : CommitFault::kAfter;
  }

 private:
  const int period_;
  int commits_ = 0;
};

// ---- fixture

// A loop in a thread of its own. Its status is checked when it goes.
template <typename Loop, typename Handler>
class Running {
 public:
  Running(typename Loop::Options options,
          std::unique_ptr<Handler> handler,
          std::unique_ptr<FaultInjector> faults)
      : handler_(std::move(handler)),
        faults_(std::move(faults)),
        loop_(std::move(options), *handler_, clock_, faults_.get()),
        thread_([this](std::stop_token stop) { status_ = loop_.Run(stop); }) {}
  ~Running() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    EXPECT_TRUE(status_.ok()) << status_;
  }
  // Waits until the loop has ended by itself.
  absl::Status End() {
    thread_.join();
    return std::exchange(status_, absl::OkStatus());
  }
  Loop& loop() { return loop_; }
  const Handler& handler() const { return *handler_; }
  const Stats& stats() { return loop_.stats(); }

 private:
  RealClock clock_;
  std::unique_ptr<Handler> handler_;
  std::unique_ptr<FaultInjector> faults_;
  Loop loop_;
  absl::Status status_;
  std::jthread thread_;
};
using RunningCounter = Running<PartitionLoop, Counter>;
using RunningFeeder = Running<ShardLoop, Feeder>;

class DeliveryTest : public LoopTest {
 protected:
  DeliveryTest() : LoopTest("counter") {
    for (const char* service : {"feeder", "counter"}) {
      const absl::Status status =
          Prepare(Options(service, "prepare"), {&TestMigrations()}, [](const absl::Status&) {}, {});
      CHECK(status.ok(), "{}", Message(status));
    }
  }

  std::unique_ptr<RunningCounter> StartCounter(const std::string& instance,
                                               std::unique_ptr<FaultInjector> faults = nullptr) {
    LoopOptions options = Options("counter", instance);
    return std::make_unique<RunningCounter>(PartitionLoop::Options{options, options.topics.pool},
                                            std::make_unique<Counter>(),
                                            std::move(faults));
  }
  std::unique_ptr<RunningFeeder> StartFeeder(const std::string& instance,
                                             size_t at_once,
                                             std::unique_ptr<FaultInjector> faults = nullptr) {
    return std::make_unique<RunningFeeder>(ShardLoop::Options{Options("feeder", instance), "watch"},
                                           std::make_unique<Feeder>(at_once),
                                           std::move(faults));
  }

  // REQUIRES: the feeder is not running.
  void Todo(int from, int to) {
    Sql(fmt::format("INSERT INTO {}.todo SELECT i, 0, false FROM generate_series({}, {}) AS i",
                    Schema("feeder"),
                    from,
                    to - 1));
  }
  bool SeenReaches(int count) {
    return Eventually(
        [&] { return Value("SELECT count(*) FROM seen") == fmt::format("{}", count); });
  }

  void MakePoolTopicAnew() {
    const auto admin = kafka::Admin::Create(mini_kafka->bootstrap());
    ASSERT_TRUE(admin.ok());
    const std::string topic = name_ + ".pool";
    ASSERT_TRUE((*admin)->DeleteTopic(topic).ok());
    ASSERT_TRUE(Eventually([&] { return (*admin)->PartitionCount(topic).value_or(1) == 0; }));
    ASSERT_TRUE((*admin)->EnsureTopics(kafka::TopicSpecs({topic, topic + "x", topic + "y"})).ok());
  }

  // Ids 0 … count-1 are seen once each, numbered in their order.
  void ExpectSeenExactly(int count) {
    EXPECT_TRUE(SeenReaches(count)) << "seen: " << Value("SELECT count(*) FROM seen");
    const std::string wrong = Value(
        "SELECT count(*) FROM (SELECT n, row_number() OVER (PARTITION BY partition ORDER BY id) AS "
        "r, "
        "id, partition FROM seen) s "
        "WHERE n <> r OR partition <> id % 12 OR id <> (n - 1) * 12 + partition");
    EXPECT_EQ(wrong, "0");
  }

  // What a consumer of the jobs topic sees once it has dropped duplicates: each job's versions are
  // 1, 2, 3 …
  void ExpectVersionsExactly(int count) {
    std::map<std::string, uint64_t> versions;
    int total = 0;
    for (int partition = 0; partition < kPartitions; ++partition) {
      StreamFilter filter({}, false);
      const auto read = kafka::ReadPartition(
          mini_kafka->bootstrap(), name_ + ".jobs", partition, 0, [&](const kafka::Message& m) {
            Envelope envelope;
            EXPECT_TRUE(envelope.ParseFromString(m.value));
            const auto verdict = filter.Judge(envelope.stream(), envelope.sequence());
            EXPECT_NE(verdict, StreamFilter::Verdict::kTakeBehindGap);
            if (verdict != StreamFilter::Verdict::kTake) return absl::OkStatus();
            ++total;
            EXPECT_EQ(envelope.job_fact().version(), ++versions[envelope.job_fact().job_id()])
                << envelope.job_fact().job_id();
            return absl::OkStatus();
          });
      EXPECT_TRUE(read.ok()) << read.status();
    }
    EXPECT_EQ(total, count);
  }
  void ExpectOutboxesEmpty() {
    for (const char* service : {"feeder", "counter"}) {
      const std::string sql = "SELECT count(*) FROM " + Schema(service) + ".outbox";
      EXPECT_TRUE(Eventually([&] { return Value(sql) == "0"; })) << service << ": " << Value(sql);
    }
  }
};

// ---- tests

TEST_F(DeliveryTest, CommitsThatFailBeforeAndAfter) {
  Todo(0, 3000);
  auto feeder = StartFeeder("f", 100, std::make_unique<EveryNth>(3));
  auto counter = StartCounter("c", std::make_unique<EveryNth>(2));
  ExpectSeenExactly(3000);
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(3000);
  EXPECT_GT(counter->stats().doubts, 0);
  EXPECT_GT(feeder->stats().doubts, 0);
  EXPECT_GT(counter->stats().rollbacks, 0);
  EXPECT_EQ(counter->stats().received, 3000);
  EXPECT_EQ(counter->stats().held, kPartitions);
  // The last commit may have been one that failed: it is repeated.
  EXPECT_TRUE(Eventually([&] { return counter->loop().Ready().ok(); })) << counter->loop().Ready();
}

// Batches that change nothing have no transaction; the offset follows within half a second, and a
// successor that finds it behind handles them again to no effect.
TEST_F(DeliveryTest, BatchesWithoutRows) {
  Todo(-1200, 0);
  Todo(0, 240);
  auto feeder = StartFeeder("f", 10);
  auto counter = StartCounter("c");
  EXPECT_TRUE(Eventually([&] { return counter->stats().received >= 600; }));
  counter = StartCounter("c2");
  ExpectSeenExactly(240);
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(240);
  const std::string handled = "SELECT sum(next_offset) FROM inbox";
  EXPECT_TRUE(Eventually([&] { return Value(handled) == "1440"; })) << Value(handled);
  counter = StartCounter("c3", std::make_unique<EveryNth>(2));
  Todo(-2400, -1200);
  feeder = StartFeeder("f", 10);
  EXPECT_TRUE(Eventually([&] { return Value(handled) == "2640"; })) << Value(handled);
  ExpectSeenExactly(240);
  EXPECT_EQ(counter->stats().received, 1200);
  // 120 batches were said at least; half a second passes between two commits.
  EXPECT_LT(counter->stats().commits, 60);
}

TEST_F(DeliveryTest, ASecondReplicaSharesAndTakesOver) {
  Todo(0, 2400);
  auto first = StartCounter("c1");
  auto feeder = StartFeeder("f", 20);
  EXPECT_TRUE(Eventually([&] { return first->stats().received > 100; }));
  auto second = StartCounter("c2");
  EXPECT_TRUE(Eventually([&] { return second->stats().held == 6 && first->stats().held == 6; }))
      << first->stats().held << " and " << second->stats().held;
  first.reset();
  EXPECT_TRUE(Eventually([&] { return second->stats().held == 12; })) << second->stats().held;
  ExpectSeenExactly(2400);
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(2400);
}

// Members come and go at any moment of the others' coming and going, each with whatever change of
// its assignment is under way: none waits for ever in its destructor.
TEST_F(DeliveryTest, ConsumersGoInTheMidstOfChanges) {
  constexpr int kMembers = 6;
  constexpr Millis kChurn{10000};
  constexpr Millis kGone{20000};
  const auto end = std::chrono::steady_clock::now() + kChurn;
  std::vector<std::future<int>> changes;
  for (int member = 0; member < kMembers; ++member) {
    changes.push_back(std::async(std::launch::async, [this, member, end] {
      std::minstd_rand random(static_cast<unsigned>(member) + 1);
      int seen = 0;
      while (std::chrono::steady_clock::now() < end) {
        auto consumer = kafka::Consumer::Create({.brokers = mini_kafka->bootstrap(),
                                                 .topic = name_ + ".pool",
                                                 .group = name_,
                                                 .instance = fmt::format("m{}", member),
                                                 .session_timeout = Millis{1500}});
        CHECK(consumer.ok(), "{}", Message(consumer.status()));
        const auto leave = std::chrono::steady_clock::now() + Millis{random() % 1000};
        const bool answers = random() % 4 != 0;
        while (std::chrono::steady_clock::now() < leave) {
          std::vector<kafka::Message> messages;
          (void)(*consumer)->Poll(Millis{10}, 100, &messages);
          const auto change = (*consumer)->TakeAssignment();
          if (!change.has_value()) continue;
          ++seen;
          if (!answers) break;
          (void)(change->lost.empty() ? (*consumer)->Start({}) : (*consumer)->Stop(change->lost));
        }
      }
      return seen;
    }));
  }
  int seen = 0;
  for (std::future<int>& member : changes) {
    CHECK(member.wait_until(end + kGone) == std::future_status::ready, "a consumer does not end");
    seen += member.get();
  }
  EXPECT_GT(seen, kMembers);
}

// Ends the process when such a message is read, as a parser would.
class Crasher final : public FaultInjector {
 public:
  CommitFault NextCommit() override { return CommitFault::kNone; }
  void Reading(const kafka::Message& message) override {
    if (message.value.find("crash") != std::string::npos) std::abort();
  }
};

// The counter as a process of its own, so that it can be killed, or crash: test, instance, and the
// folder of the keys, if it checks who has signed.
int CounterMain(char** args) {
  LoopOptions options = MakeOptions(args[2], "counter", args[3], args[0], args[1]);
  if (args[4] != nullptr) {
    options.keys = std::make_shared<const signing::Keys>(*signing::Keys::Read(args[4]));
  }
  RealClock clock;
  Counter counter;
  Crasher crasher;
  PartitionLoop loop({options, options.topics.pool}, counter, clock, &crasher);
  return loop.Run({}).ok() ? 0 : 1;
}

TEST_F(DeliveryTest, KilledReplicas) {
  Todo(0, 4000);
  const pid_t victim = Spawn({name_, "c1"});
  auto feeder = StartFeeder("f", 20);
  const auto seen = [&] { return std::stoi(Value("SELECT count(*) FROM seen")); };
  EXPECT_TRUE(Eventually([&] { return seen() > 300; }));
  auto survivor = StartCounter("c2", std::make_unique<EveryNth>(5));
  EXPECT_TRUE(Eventually([&] { return survivor->stats().held == 6; }));
  kill(victim, SIGKILL);
  waitpid(victim, nullptr, 0);
  EXPECT_TRUE(Eventually([&] { return survivor->stats().held == 12; })) << survivor->stats().held;
  ExpectSeenExactly(4000);
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(4000);
}

TEST_F(DeliveryTest, AnEpochTakenByAnother) {
  Todo(0, 1200);
  auto counter = StartCounter("c");
  EXPECT_TRUE(Eventually([&] { return counter->stats().held == 12; }));
  Sql("UPDATE inbox SET epoch = epoch + 1, holder = 'thief' WHERE partition IN (2, 7)");
  auto feeder = StartFeeder("f", 100);
  ExpectSeenExactly(1200);
  EXPECT_EQ(counter->stats().lost, 2);
  EXPECT_EQ(Value("SELECT count(*) FROM inbox WHERE holder = 'c'"), "12");
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(1200);
}

// What lives in a large pool takes its time: the limits of a batch are not those of a claim.
TEST_F(DeliveryTest, AClaimMayTakeLongerThanABatch) {
  LoopOptions options = Options("counter", "c");
  options.postgres.statement_timeout = Millis{500};
  options.postgres.idle_in_transaction_timeout = Millis{500};
  RunningCounter counter(PartitionLoop::Options{options, options.topics.pool},
                         std::make_unique<SlowCounter>(Millis{1000}),
                         nullptr);
  EXPECT_TRUE(Eventually([&] {
    return Message(counter.loop().Ready()).find("take partitions") != std::string::npos;
  })) << "it says what it waits for";
  EXPECT_TRUE(Eventually([&] { return counter.loop().Ready().ok(); })) << counter.loop().Ready();
  EXPECT_EQ(counter.stats().gained, 12) << "at the first try";
  EXPECT_EQ(Value("SELECT max(epoch) FROM inbox"), "1");
}

// What other threads hand over does not wait until it has a partition.
TEST_F(DeliveryTest, WithoutPartitionsTheHandlerIsIdle) {
  auto counter = StartCounter("c");
  EXPECT_TRUE(Eventually([&] { return counter->stats().held == 12; }));
  const int before = counter->handler().idle();
  EXPECT_GT(before, 0) << "before it had any";
  Sql("UPDATE inbox SET epoch = epoch + 1, holder = 'thief'");
  Todo(0, 1200);
  auto feeder = StartFeeder("f", 100);
  EXPECT_TRUE(Eventually([&] { return counter->handler().idle() > before; }));
  ExpectSeenExactly(1200);
}

// A loop that hangs says nothing itself: not alive is what is left to see of it.
TEST_F(DeliveryTest, WhoHangsIsNotAlive) {
  Todo(0, 100);
  LoopOptions options = Options("counter", "c");
  options.step_limit = Millis{5000};
  auto owned = std::make_unique<Freezer>(1);
  Freezer& freezer = *owned;
  RunningCounter counter(PartitionLoop::Options{options, options.topics.pool},
                         std::make_unique<Counter>(),
                         std::move(owned));
  LoopOptions lease = Options("feeder", "f");
  lease.step_limit = options.step_limit;
  auto second = std::make_unique<Freezer>(4);
  Freezer& frozen_feeder = *second;
  RunningFeeder feeder(
      ShardLoop::Options{lease, "watch"}, std::make_unique<Feeder>(10), std::move(second));
  EXPECT_TRUE(frozen_feeder.WaitFrozen());
  EXPECT_TRUE(freezer.WaitFrozen());
  EXPECT_TRUE(Eventually([&] { return !counter.loop().Alive().ok(); }));
  EXPECT_TRUE(Eventually([&] { return !feeder.loop().Alive().ok(); }));
  EXPECT_THAT(Message(counter.loop().Alive()), HasSubstr("it hangs"));
  freezer.Release();
  frozen_feeder.Release();
  EXPECT_TRUE(Eventually([&] { return counter.loop().Alive().ok(); }));
  EXPECT_TRUE(Eventually([&] { return feeder.loop().Alive().ok(); }));
  ExpectSeenExactly(100);
}

// A database that is away is waited for, for as long as it takes.
TEST_F(DeliveryTest, WhoWaitsIsAlive) {
  Todo(0, 100);
  LoopOptions options = Options("counter", "c");
  options.step_limit = Millis{5000};
  RunningCounter counter(
      PartitionLoop::Options{options, options.topics.pool}, std::make_unique<Counter>(), nullptr);
  EXPECT_TRUE(Eventually([&] { return counter.stats().held == 12; }));
  mini_postgres->Stop();
  const auto until = std::chrono::steady_clock::now() + 2 * options.step_limit;
  while (std::chrono::steady_clock::now() < until) {
    EXPECT_TRUE(counter.loop().Alive().ok()) << counter.loop().Alive();
    std::this_thread::sleep_for(Millis{100});
  }
  mini_postgres->Start();
  auto feeder = StartFeeder("f", 10);
  ExpectSeenExactly(100);
}

// So it is with who has much to read: each answer is a step, the whole may take longer.
TEST_F(DeliveryTest, WhoTakesALargePartitionIsAlive) {
  LoopOptions options = Options("counter", "c");
  options.step_limit = Millis{4000};
  RunningCounter counter(PartitionLoop::Options{options, options.topics.pool},
                         std::make_unique<SlowCounter>(Millis{1000}, /*times=*/5),
                         nullptr);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(counter.loop().Alive().ok()) << counter.loop().Alive();
    return counter.loop().Ready().ok();
  })) << counter.loop().Ready();
  EXPECT_GT(std::chrono::steady_clock::now() - begun, 2 * options.step_limit);
}

// A frozen replica loses its lease; what it wakes up with is not committed.
TEST_F(DeliveryTest, ALeaseTakenOver) {
  Todo(0, 1000);
  auto counter = StartCounter("c");
  auto owned = std::make_unique<Freezer>(4);
  Freezer& freezer = *owned;
  auto first = StartFeeder("f1", 100, std::move(owned));
  EXPECT_TRUE(freezer.WaitFrozen());
  EXPECT_TRUE(first->loop().Held());
  auto second = StartFeeder("f2", 100);
  EXPECT_TRUE(Eventually([&] { return second->loop().Held(); }));
  freezer.Release();
  EXPECT_TRUE(Eventually([&] { return !first->loop().Held(); }));
  EXPECT_TRUE(first->loop().Ready().ok()) << "waiting for a lease is no fault";
  ExpectSeenExactly(1000);
  ExpectOutboxesEmpty();
  // A replica that stops gives the lease back: nobody waits for it to run out.
  const auto begun = std::chrono::steady_clock::now();
  second.reset();
  EXPECT_TRUE(Eventually([&] { return first->loop().Held(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, Millis{1400});
}

TEST_F(DeliveryTest, KafkaAwayForAWhile) {
  Todo(0, 3000);
  auto counter = StartCounter("c");
  auto feeder = StartFeeder("f", 10);
  EXPECT_TRUE(Eventually([&] { return counter->stats().received > 200; }));
  mini_kafka->Stop();
  EXPECT_TRUE(Eventually([&] { return !counter->loop().Ready().ok(); }));
  mini_kafka->Start();
  ExpectSeenExactly(3000);
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(3000);
  EXPECT_TRUE(Eventually([&] { return counter->loop().Ready().ok(); })) << counter->loop().Ready();
}

TEST_F(DeliveryTest, PostgresAwayForAWhile) {
  Todo(0, 3000);
  auto counter = StartCounter("c");
  auto feeder = StartFeeder("f", 10);
  EXPECT_TRUE(Eventually([&] { return counter->stats().received > 200; }));
  mini_postgres->Stop();
  EXPECT_TRUE(Eventually([&] { return !counter->loop().Ready().ok(); }));
  EXPECT_TRUE(Eventually([&] { return !feeder->loop().Ready().ok(); }));
  EXPECT_THAT(Message(feeder->loop().Ready()), HasSubstr("Postgres"));
  mini_postgres->Start();
  ExpectSeenExactly(3000);
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(3000);
}

TEST_F(DeliveryTest, ATopicMadeAnew) {
  Todo(0, 600);
  auto counter = StartCounter("c");
  auto feeder = StartFeeder("f", 100);
  ExpectSeenExactly(600);
  ExpectOutboxesEmpty();
  feeder.reset();
  // What an operator wanted left out was a message of the log that has gone.
  Value("INSERT INTO skips VALUES (0, 1000, 'ann', 'of the old log') RETURNING ''");
  MakePoolTopicAnew();
  Todo(600, 720);
  feeder = StartFeeder("f", 100);
  ExpectSeenExactly(720);
  EXPECT_EQ(counter->stats().resets, 12);
  EXPECT_EQ(Value("SELECT count(*) FROM skips"), "0");
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(720);
}

// Kafka came back without its topics: who goes on running makes them.
TEST_F(DeliveryTest, TopicsThatAreGoneAreMade) {
  Todo(0, 600);
  auto counter = StartCounter("c");
  auto feeder = StartFeeder("f", 100);
  ExpectSeenExactly(600);
  ExpectOutboxesEmpty();
  feeder.reset();
  const auto admin = kafka::Admin::Create(mini_kafka->bootstrap());
  ASSERT_TRUE(admin.ok());
  for (const char* topic : {".pool", ".jobs", ".dead"}) {
    ASSERT_TRUE((*admin)->DeleteTopic(name_ + topic).ok());
  }
  // The feeder would make them when it starts: that they are there again is the counter's doing.
  EXPECT_TRUE(Eventually([&] { return counter->stats().resets == 12; }));
  Todo(600, 720);
  feeder = StartFeeder("f", 100);
  ExpectSeenExactly(720);
  EXPECT_EQ(counter->stats().resets, 12);
  ExpectOutboxesEmpty();
}

// Who was away meanwhile finds a log that is longer than what it has handled.
TEST_F(DeliveryTest, ATopicMadeAnewAndFilled) {
  Todo(0, 600);
  auto counter = StartCounter("c");
  auto feeder = StartFeeder("f", 100);
  ExpectSeenExactly(600);
  ExpectOutboxesEmpty();
  feeder.reset();
  counter.reset();
  MakePoolTopicAnew();
  Todo(600, 2400);
  feeder = StartFeeder("f", 100);
  ExpectOutboxesEmpty();
  counter = StartCounter("c");
  ExpectSeenExactly(2400);
  EXPECT_EQ(counter->stats().resets, 12);
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(2400);
}

// A standby that took over had not got the last commits yet. Nobody is told; loops go on running.
TEST_F(DeliveryTest, ADatabaseThatWentBack) {
  Todo(0, 600);
  auto counter = StartCounter("c");
  auto feeder = StartFeeder("f", 100);
  ExpectSeenExactly(600);
  ExpectOutboxesEmpty();
  const std::vector<std::string> tables = {Schema("counter") + ".inbox",
                                           Schema("counter") + ".inbox_streams",
                                           Schema("counter") + ".seen",
                                           Schema("feeder") + ".leases"};
  for (const std::string& table : tables) {
    Sql(fmt::format("CREATE TABLE {0}_then AS SELECT * FROM {0}", table));
  }
  feeder.reset();
  Todo(600, 1200);
  feeder = StartFeeder("f", 100);
  ExpectSeenExactly(1200);
  ExpectOutboxesEmpty();
  std::string back;
  for (const std::string& table : tables) {
    back += fmt::format("DELETE FROM {0}; INSERT INTO {0} SELECT * FROM {0}_then;", table);
  }
  Sql(back);
  EXPECT_TRUE(Eventually([&] { return feeder->stats().lost == 1; }));
  feeder.reset();
  Todo(1200, 1800);
  feeder = StartFeeder("f", 100);
  ExpectSeenExactly(1800);
  ExpectOutboxesEmpty();
  EXPECT_EQ(counter->stats().gaps, 0);
}

// Whose outcome is not known, as the connection died: the row tells, but for one of another time.
TEST_F(DeliveryTest, ACommitIsSettledByItsOwnMark) {
  using Outcome = BatchGuard::Outcome;
  postgres::Connection connection(Options("counter", "c").postgres);
  const auto run = [&](const std::function<void(pqxx::transaction_base&)>& work) {
    const absl::Status status = connection.Transact([&](pqxx::transaction_base& tx) {
      work(tx);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  };
  PartitionTable table(name_ + ".pool");
  run([&](auto& tx) { table.Add(ClaimPartition(tx, 3, "c", ""), {}); });
  table.Rows({});
  const auto settle = [&](const std::string& row) {
    Sql("UPDATE inbox SET " + row);
    std::optional<Outcome> outcome;
    run([&](auto& tx) { outcome = table.Settle(tx); });
    return outcome;
  };
  EXPECT_EQ(settle("commits = 0"), Outcome::kNotCommitted);
  EXPECT_EQ(settle("commits = 1"), Outcome::kCommitted);
  EXPECT_EQ(settle("commits = 2"), Outcome::kTaken);
  EXPECT_EQ(settle("commits = -1"), Outcome::kTaken) << "the database went back";
  EXPECT_EQ(settle("commits = 1, incarnation = incarnation - 1"), Outcome::kTaken)
      << "epochs were handed out twice";
}

// Writes by hand what no publisher of ours would.
class RawTopic {
 public:
  explicit RawTopic(std::string topic) : topic_(std::move(topic)) {
    auto producer = kafka::Producer::Create(
        mini_kafka->bootstrap(), "raw", [this](uint64_t) { ++acknowledged_; });
    CHECK(producer.ok());
    producer_ = std::move(producer).value();
  }
  void Put(const std::string& value, const kafka::Headers& headers = {}) {
    CHECK(producer_->Produce(topic_, 0, "p", value, headers, ++sent_).ok());
    CHECK(producer_->Flush(kDeadline).ok());
  }
  void Put(uint64_t sequence, const std::string& id, const std::string& stream = "raw/0") {
    Envelope envelope;
    envelope.set_stream(stream);
    envelope.set_sequence(sequence);
    envelope.set_pool("p");
    envelope.mutable_job_withdrawn()->set_job_id(id);
    Put(envelope.SerializeAsString(), kafka::EnvelopeHeaders(envelope, 0));
  }

 private:
  std::string topic_;
  std::unique_ptr<kafka::Producer> producer_;
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
};

TEST_F(DeliveryTest, DuplicatesAndGaps) {
  RawTopic raw(name_ + ".pool");
  raw.Put(1, "0");
  raw.Put(1, "0");
  raw.Put(2, "12");
  raw.Put(4, "36");  // 3 is missing: of a stream without an incarnation it is waited for
  raw.Put(3, "24");
  raw.Put(4, "36");
  raw.Put(2, "12");
  auto counter = StartCounter("c");
  EXPECT_TRUE(Eventually([&] { return counter->stats().duplicates == 2; }));
  EXPECT_EQ(counter->stats().gaps, 1);
  EXPECT_EQ(counter->stats().received, 4);
  EXPECT_EQ(Value("SELECT string_agg(id::text, ' ' ORDER BY n) FROM seen"), "0 12 24 36");
  // A new replica knows where the streams stand.
  counter.reset();
  raw.Put(4, "36");
  raw.Put(5, "48");
  counter = StartCounter("c");
  EXPECT_TRUE(SeenReaches(5));
  EXPECT_TRUE(Eventually([&] { return counter->stats().duplicates == 1; }));
}

// A broker's disk had not got what the broker had acknowledged.
TEST_F(DeliveryTest, ATailThatIsLost) {
  const std::string topic = name_ + ".pool";
  const std::string stream = WithIncarnation("raw/0", 1);
  const auto say = [&](uint64_t from, uint64_t to) {
    RawTopic raw(topic);
    for (uint64_t i = from; i <= to; ++i) raw.Put(i, fmt::format("{}", 12 * i), stream);
  };
  const auto seen = [&] { return Value("SELECT string_agg(id::text, ' ' ORDER BY n) FROM seen"); };
  const auto lose_tails = [&] {
    mini_kafka->Stop();
    mini_kafka->LoseTails(topic);
    mini_kafka->Start();
  };
  say(1, 3);
  auto counter = StartCounter("c");
  EXPECT_TRUE(SeenReaches(3));
  // Handled, and lost then: what follows stands where it was.
  lose_tails();
  say(4, 4);
  EXPECT_TRUE(SeenReaches(4)) << seen();
  EXPECT_EQ(counter->stats().resets, 1);
  EXPECT_EQ(counter->stats().gaps, 0);
  // Lost before it was handled.
  counter.reset();
  say(5, 6);
  lose_tails();
  say(7, 7);
  counter = StartCounter("c");
  EXPECT_TRUE(SeenReaches(6)) << seen();
  EXPECT_EQ(seen(), "12 24 36 48 60 84");
  EXPECT_EQ(counter->stats().gaps, 1);
  EXPECT_EQ(counter->stats().duplicates, 0);
}

TEST_F(DeliveryTest, WhatCanNeverBeHandledGoesToTheDeadLetters) {
  RawTopic raw(name_ + ".pool");
  raw.Put(1, "0");
  raw.Put(2, "poison");
  raw.Put("\xff\xff no envelope", {{"by", "hand"}});
  raw.Put(3, "12");
  raw.Put(4, "twenty-four");  // Handle takes it, the database does not
  raw.Put("\xff\xff unreadable", {{"ce_id", "raw/0/0/5"}});
  raw.Put(6, "24");  // stands behind no gap
  auto counter = StartCounter("c");
  EXPECT_TRUE(SeenReaches(3)) << Value("SELECT count(*) FROM seen");
  EXPECT_EQ(Value("SELECT string_agg(id::text, ' ' ORDER BY n) FROM seen"), "0 12 24");
  EXPECT_EQ(counter->stats().dead_letters, 4);
  ExpectOutboxesEmpty();
  ExpectVersionsExactly(3);

  std::map<std::string, std::map<std::string, std::string>> letters;  // by original offset
  for (const auto& letter : Letters()) letters[letter.at("fluxqueue_offset")] = letter;
  ASSERT_EQ(letters.size(), 4);
  EXPECT_THAT(letters["1"],
              AllOf(Contains(Pair("ce_id", "raw/0/0/2")),
                    Contains(Pair("fluxqueue_reason", "id poison: not for me")),
                    Contains(Pair("fluxqueue_topic", name_ + ".pool"))));
  EXPECT_THAT(letters["2"],
              AllOf(Contains(Pair("by", "hand")),
                    Contains(Pair("fluxqueue_reason", "it does not decode as an Envelope"))));
  EXPECT_THAT(letters["4"]["fluxqueue_reason"], HasSubstr("twenty-four"));
}

TEST_F(DeliveryTest, AHandlerWritesALetterOfAnObject) {
  RawTopic raw(name_ + ".pool");
  raw.Put(1, "object");
  auto counter = StartCounter("c");
  EXPECT_TRUE(Eventually([&] { return Letters().size() == 1; }));
  EXPECT_THAT(Letters()[0],
              AllOf(Contains(Pair("key", "Pod lab/a")),
                    Contains(Pair("fluxqueue_reason", "it threw")),
                    Contains(Pair("fluxqueue_object_uid", "u"))));
  EXPECT_EQ(counter->stats().dead_letters, 1);
  ExpectOutboxesEmpty();
}

// Who may write into the topic may not say anything in another's name.
TEST_F(DeliveryTest, OnlyWhatIsSignedIsHandled) {
  const signing::TestingKeys files({"admission", "queue"});
  RawTopic raw(name_ + ".pool");
  raw.Put(1, "0");  // by no name that is known
  const auto say = [&](const std::string& stream, const std::string& by) {
    Envelope envelope;
    envelope.set_pool("p");
    envelope.set_stream(stream);
    envelope.set_sequence(1);
    envelope.mutable_job_withdrawn()->set_job_id("120");
    OutboxRow row{stream, {name_ + ".pool", 0}, 1, {MakeRecord(envelope, 0)}};
    if (!by.empty()) SignRecords(*signing::Signer::Read(files.key_of(by)), &row);
    raw.Put(row.records[0].value, row.records[0].headers);
  };
  say("admission/watch", "");       // 1: by nobody
  say("admission/watch", "queue");  // 2: by another
  say("queue/3", "queue");          // 3: who may not say such
  say("admission/watch", "admission");
  LoopOptions options = Options("counter", "c");
  options.keys = std::make_shared<const signing::Keys>(*signing::Keys::Read(files.keys()));
  auto counter = std::make_unique<RunningCounter>(
      PartitionLoop::Options{options, options.topics.pool}, std::make_unique<Counter>(), nullptr);
  EXPECT_TRUE(SeenReaches(1));
  EXPECT_EQ(Value("SELECT id FROM seen"), "120");
  EXPECT_EQ(counter->stats().received, 1);
  ExpectOutboxesEmpty();
  EXPECT_THAT(Letters(), ::testing::Each(Contains(Pair("fluxqueue_unproven", "true"))));
  EXPECT_THAT(Reasons(),
              ::testing::ElementsAre("nobody is known by the name 'raw' that its stream has",
                                     "it is not signed by admission",
                                     "its signature is not of admission",
                                     "queue says what admission alone may say"));
}

// Batches of any size, also published again after a restart.
TEST_F(DeliveryTest, WhatTheLoopsSaySignedIsHandled) {
  const signing::TestingKeys files({"admission", "counter"});
  LoopOptions feeder = Options("feeder", "f");
  feeder.service = "admission";
  feeder.postgres.schema = Schema("feeder");
  feeder.signer =
      std::make_shared<const signing::Signer>(*signing::Signer::Read(files.key_of("admission")));
  LoopOptions counter = Options("counter", "c");
  counter.keys = std::make_shared<const signing::Keys>(*signing::Keys::Read(files.keys()));
  Todo(0, 500);
  RunningFeeder feeding(ShardLoop::Options{feeder, "watch"},
                        std::make_unique<Feeder>(37),
                        std::make_unique<EveryNth>(5));
  RunningCounter counting(PartitionLoop::Options{counter, counter.topics.pool},
                          std::make_unique<Counter>(),
                          std::make_unique<EveryNth>(7));
  ExpectSeenExactly(500);
  EXPECT_EQ(counting.stats().dead_letters, 0);
}

TEST_F(DeliveryTest, AnOperatorHasAMessageLeftOut) {
  RawTopic raw(name_ + ".pool");
  raw.Put(1, "0");
  raw.Put(2, "stuck");
  raw.Put(3, "12");
  raw.Put(4, "fatal");
  raw.Put(5, "24");
  auto counter = StartCounter("c");
  EXPECT_TRUE(Eventually(
      [&] { return Message(counter->loop().Ready()).find("not now") != std::string::npos; }));
  EXPECT_EQ(Value("SELECT count(*) FROM seen"), "0");
  const auto skip = [&](int64_t offset) {
    Value(fmt::format("INSERT INTO skips VALUES (0, {}, 'ann', 'it is of no use') RETURNING ''",
                      offset));
  };
  // It tries again and again, and so hears of it.
  skip(1);
  // The other ends it, so the next start hears of it.
  EXPECT_THAT(Message(counter->End()), HasSubstr("id fatal: never"));
  skip(3);
  counter = StartCounter("c");
  EXPECT_TRUE(SeenReaches(3)) << Value("SELECT count(*) FROM seen");
  EXPECT_EQ(Value("SELECT string_agg(id::text, ' ' ORDER BY n) FROM seen"), "0 12 24");
  ExpectOutboxesEmpty();
  EXPECT_EQ(Reasons(), std::vector<std::string>(2, "left out by ann: it is of no use"));
  // What was handled is forgotten with the next claim.
  counter.reset();
  counter = StartCounter("c");
  EXPECT_TRUE(Eventually([&] { return Value("SELECT count(*) FROM skips") == "0"; }));
}

// Neither what it says nor who has signed it can be asked.
TEST_F(DeliveryTest, AMessageThatCannotEvenBeReadIsLeftOut) {
  const signing::TestingKeys files({"admission"});
  RawTopic raw(name_ + ".pool");
  uint64_t sequence = 0;
  for (const char* id : {"0", "crash", "12"}) {
    Envelope envelope;
    envelope.set_pool("p");
    envelope.set_stream("admission/watch");
    envelope.set_sequence(++sequence);
    envelope.mutable_job_withdrawn()->set_job_id(id);
    OutboxRow row{envelope.stream(), {name_ + ".pool", 0}, sequence, {MakeRecord(envelope, 0)}};
    SignRecords(*signing::Signer::Read(files.key_of("admission")), &row);
    raw.Put(row.records[0].value, row.records[0].headers);
  }
  const std::vector<std::string> counter = {name_, "c", files.keys()};
  int ended = 0;
  ASSERT_GT(waitpid(Spawn(counter), &ended, 0), 0);
  EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT) << ended;
  EXPECT_EQ(Value("SELECT count(*) FROM seen WHERE id <> 0"), "0");
  Value("INSERT INTO skips VALUES (0, 1, 'ann', 'it ends the service') RETURNING ''");
  const pid_t again = Spawn(counter);
  // What follows it stands behind no gap.
  EXPECT_TRUE(SeenReaches(2)) << Value("SELECT count(*) FROM seen");
  ExpectOutboxesEmpty();
  kill(again, SIGKILL);
  waitpid(again, nullptr, 0);
  EXPECT_EQ(Value("SELECT string_agg(id::text, ' ' ORDER BY n) FROM seen"), "0 12");
  EXPECT_EQ(Reasons(), std::vector<std::string>{"left out by ann: it ends the service"});
}

// Who comes too late with it changes nothing: the message is handled, and no letter says otherwise.
TEST_F(DeliveryTest, AMessageThatIsBeingHandledIsLeftOutNoMore) {
  RawTopic raw(name_ + ".pool");
  raw.Put(1, "0");
  auto owned = std::make_unique<Freezer>(1);
  Freezer& freezer = *owned;
  auto counter = StartCounter("c", std::move(owned));
  ASSERT_TRUE(freezer.WaitFrozen());
  EXPECT_EQ(Value("SELECT next_offset FROM inbox WHERE partition = 0"), "0");
  Value("INSERT INTO skips VALUES (0, 0, 'ann', 'too late') RETURNING ''");
  freezer.Release();
  EXPECT_TRUE(SeenReaches(1));
  // Nor does the row say anything to who takes the partition next.
  counter.reset();
  raw.Put(2, "12");
  counter = StartCounter("c");
  EXPECT_TRUE(SeenReaches(2));
  EXPECT_EQ(Value("SELECT count(*) FROM skips"), "0");
  EXPECT_EQ(Reasons(), std::vector<std::string>{});
}

TEST_F(DeliveryTest, MigrationsAreAppliedOnceAndNeverChange) {
  postgres::Connection connection(Options("counter", "x").postgres);
  const postgres::MigrationSet changed{"test", {{"0001_test", "CREATE TABLE other (i int)"}}};
  absl::Status status = postgres::Migrate(connection, Schema("counter"), {&changed});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("test/0001_test"));
  const postgres::MigrationSet wrong{"test", {{"0002_wrong", "CREATE TABEL t (i int)"}}};
  status = postgres::Migrate(connection, Schema("counter"), {&wrong});
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("0002_wrong"));
  EXPECT_TRUE(postgres::Migrate(connection, Schema("counter"), {&TestMigrations()}).ok());
}

TEST_F(DeliveryTest, ReplicasThatMigrateTogether) {
  const postgres::MigrationSet set{"test", {{"0001_test", "CREATE TABLE once (i int)"}}};
  const auto migrate = [&](const std::string& schema) {
    std::vector<absl::Status> results(8);
    std::vector<std::jthread> replicas;
    for (absl::Status& result : results) {
      replicas.emplace_back([&] {
        postgres::Connection connection(Options("counter", "x").postgres);
        result = postgres::Migrate(connection, schema, {&Migrations(), &set});
      });
    }
    replicas.clear();
    for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
    EXPECT_EQ(Value(fmt::format("SELECT count(*) FROM {}.migrations WHERE name = 'test/0001_test'",
                                schema)),
              "1");
  };
  migrate(Schema("together"));
  // Where the schema was made for them.
  Value(fmt::format("CREATE SCHEMA {}", Schema("made")));
  migrate(Schema("made"));
}

TEST_F(DeliveryTest, ArraysArriveAsTheyWere) {
  postgres::TextArray texts;
  postgres::ByteaArray bytes;
  const std::vector<std::string> given = {"", "NULL", "a\"b\\c", "{x,y}", "ü\n"};
  for (const std::string& text : given) {
    texts.Add(text);
    bytes.Add(text + std::string("\0\xfe", 2));
  }
  std::vector<std::string> got;
  const absl::Status status = db_.Query([&](pqxx::transaction_base& tx) {
    static constexpr postgres::Statement kEcho = {
        "test_echo", "SELECT t, b FROM unnest($1::text[], $2::bytea[]) AS u (t, b)"};
    for (const pqxx::row& row : postgres::Exec(tx, kEcho, texts.text(), bytes.text())) {
      got.push_back(row[0].as<std::string>());
      EXPECT_EQ(pqxx::binarystring(row[1]).str(), got.back() + std::string("\0\xfe", 2));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(got, given);
}

TEST_F(DeliveryTest, TextsThatPostgresRefusesDoNotEndAStatement) {
  postgres::TextArray texts;
  texts.Add(std::string_view("a\0b", 3));
  texts.Add("\xff");
  std::vector<std::string> got;
  const absl::Status status = db_.Query([&](pqxx::transaction_base& tx) {
    static constexpr postgres::Statement kEcho = {"test_echo_texts",
                                                  "SELECT t FROM unnest($1::text[]) AS u (t)"};
    for (const pqxx::row& row : postgres::Exec(tx, kEcho, texts.text())) {
      got.push_back(row[0].as<std::string>());
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(got, ::testing::ElementsAre("a\uFFFDb", "\uFFFD"));
}

TEST_F(DeliveryTest, ErrorsNameTheThing) {
  postgres::Connection wrong(
      {.dsn = mini_postgres->dsn() + "x", .application = "t", .schema = "s"});
  absl::Status status = wrong.Query([](pqxx::transaction_base&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("database \"fluxqueuex\" does not exist"));
  status = db_.Query([](pqxx::transaction_base& tx) {
    tx.exec("SELECT * FROM matcher.allocations");
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("matcher.allocations"));
  status = db_.Transact([](pqxx::transaction_base& tx) {
    tx.exec("INSERT INTO seen VALUES (0, 1, 0), (0, 1, 12)");
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
}

}  // namespace
}  // namespace fluxqueue::delivery

int main(int argc, char** argv) {
  return fluxqueue::delivery::RunTests(argc, argv, fluxqueue::delivery::CounterMain);
}
