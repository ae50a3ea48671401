// What a partition loop answers a group that takes and gives partitions, in an order that a real
// one brings about only now and then. The group is played; Postgres is real.
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/testing_loops.h"
#include "libs/kafka/bus.h"

namespace fluxqueue::delivery {
namespace {

using kafka::Assignment;
using ::testing::ElementsAre;

// What a poll brings.
struct Step {
  std::optional<Assignment> assignment{};
  std::vector<int> out_of_range{};
};

// A group's side, and what the loop has done.
struct Script {
  std::mutex mutex;
  std::deque<Step> steps;               // guarded by mutex
  std::vector<std::vector<int>> stops;  // guarded by mutex
  std::atomic<int> joins = 0;
  std::atomic<int> polls_after = 0;  // since the steps were over
};

class ScriptedSubscription final : public kafka::Subscription {
 public:
  explicit ScriptedSubscription(Script& script) : script_(script) {}

  absl::Status Poll(Millis timeout, size_t, std::vector<kafka::Message>*) override {
    const std::lock_guard lock(script_.mutex);
    if (script_.steps.empty()) {
      ++script_.polls_after;
      std::this_thread::sleep_for(std::min(timeout, Millis{10}));
      return absl::OkStatus();
    }
    step_ = std::move(script_.steps.front());
    script_.steps.pop_front();
    return absl::OkStatus();
  }
  void Wake() override {}
  std::optional<Assignment> TakeAssignment() override {
    return std::exchange(step_.assignment, std::nullopt);
  }
  absl::Status Start(const std::vector<kafka::Position>&) override { return absl::OkStatus(); }
  absl::Status Stop(const std::vector<int>& partitions) override {
    const std::lock_guard lock(script_.mutex);
    script_.stops.push_back(partitions);
    return absl::OkStatus();
  }
  std::vector<int> TakeOutOfRange() override { return std::exchange(step_.out_of_range, {}); }
  absl::StatusOr<std::map<int, kafka::Watermarks>> QueryWatermarks(
      const std::vector<int>& partitions, Millis) override {
    std::map<int, kafka::Watermarks> marks;
    for (const int partition : partitions) marks[partition] = {};
    return marks;
  }
  absl::StatusOr<std::map<int, int64_t>> FirstAfter(const std::map<int, Millis>&, Millis) override {
    return std::map<int, int64_t>();
  }
  int64_t CachedEnd(int) override { return 0; }

 private:
  Script& script_;
  Step step_;
};

class ScriptedBus final : public kafka::Bus {
 public:
  explicit ScriptedBus(Script& script) : script_(script) {}
  absl::StatusOr<std::unique_ptr<kafka::Subscription>> Join(
      const kafka::ConsumerOptions&) override {
    ++script_.joins;
    return std::make_unique<ScriptedSubscription>(script_);
  }
  absl::StatusOr<std::unique_ptr<kafka::Appender>> Open(const kafka::Brokers&,
                                                        std::string_view,
                                                        kafka::OnAcknowledged) override {
    return Unavailable("nothing is said here");
  }
  absl::Status MakeTopics(const kafka::Brokers&,
                          std::string_view,
                          const kafka::TopicNames&) override {
    return absl::OkStatus();
  }

 private:
  Script& script_;
};

// Is given no message.
class Idle final : public PartitionHandler {
 public:
  bool HasWork() const override { return false; }
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override { return {}; }
  absl::Status Poll(Outbox&) override { return absl::OkStatus(); }
  bool HasRows() const override { return false; }
  absl::Status Write(pqxx::transaction_base&) override { return absl::OkStatus(); }
  void Commit() override {}
  void Rollback() override {}
  absl::Status Load(pqxx::transaction_base&, int) override { return absl::OkStatus(); }
  void Drop(int) override {}
  absl::Status Handle(const Record&, Outbox&) override { return absl::OkStatus(); }
};

// Those of `steps`, until all that follows from them has been done.
void Play(const std::string& name, Script* script) {
  const testing::MiniPostgres postgres;
  LoopOptions options = MakeOptions(name, "s", "i", "none", postgres.dsn());
  options.bus = std::make_shared<ScriptedBus>(*script);
  const RealClock clock;
  Idle handler;
  PartitionLoop loop({options, options.topics.pool}, handler, clock);
  std::stop_source stop;
  std::thread thread([&] { EXPECT_TRUE(loop.Run(stop.get_token()).ok()); });
  EXPECT_TRUE(Eventually([script] { return script->polls_after >= 3; }));
  stop.request_stop();
  thread.join();
}

TEST(AssignmentTest, AnOffsetOutsideTheLogIsJudged) {
  Script script;
  script.steps = {{.assignment = Assignment{.gained = {0, 1}, .lost = {}}}, {.out_of_range = {0}}};
  Play("judged", &script);
  EXPECT_THAT(script.stops, ElementsAre(ElementsAre(0)));
  EXPECT_EQ(script.joins, 1);
}

// A fetch that was under way tells of a partition that the group has taken since. To stop it is
// refused by librdkafka, whose consumer may then never end.
TEST(AssignmentTest, AnOffsetOfAPartitionThatWasTakenIsNone) {
  Script script;
  script.steps = {{.assignment = Assignment{.gained = {0, 1}, .lost = {}}},
                  {.assignment = Assignment{.gained = {}, .lost = {0, 1}}},
                  {.out_of_range = {0}}};
  Play("taken", &script);
  EXPECT_THAT(script.stops, ElementsAre(ElementsAre(0, 1)));
  EXPECT_EQ(script.joins, 1);
}

}  // namespace
}  // namespace fluxqueue::delivery
