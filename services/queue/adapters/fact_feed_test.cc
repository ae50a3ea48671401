#include "services/queue/adapters/fact_feed.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::queue {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

JobSeen Seen(const std::string& id, uint64_t version, const std::string& pool = "main") {
  JobSeen seen;
  seen.fact.set_job_id(id);
  seen.fact.set_version(version);
  seen.fact.set_pool(pool);
  return seen;
}

class FakeWatcher final : public FactWatcher {
 public:
  void Changed(const events::v1::JobFact& fact) override { seen.push_back(fact.job_id()); }
  void End(const absl::Status& why) override { ended = why; }

  std::vector<std::string> seen;
  absl::Status ended;
};

class FactFeedTest : public testing::Test {
 protected:
  static FactFeed::TimePoint In(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
  }
  // What the waiter is told, as text.
  uint64_t Await(const std::string& id, uint64_t version, FactFeed::TimePoint deadline) {
    return feed_.Await(
        id,
        deadline,
        [version](const events::v1::JobFact& fact) { return fact.version() >= version; },
        [this](std::optional<events::v1::JobFact> fact) {
          told_.set_value(fact.has_value() ? fact->job_id() : "nothing");
        });
  }

  FactFeed feed_;
  std::promise<std::string> told_;
};

TEST_F(FactFeedTest, WatchersSeeTheFactsOfTheirPool) {
  const auto watcher = std::make_shared<FakeWatcher>();
  EXPECT_EQ(feed_.Watch("main", "", watcher).code(), absl::StatusCode::kUnavailable);
  feed_.Gained("main");
  EXPECT_TRUE(feed_.Holds("main"));
  ASSERT_TRUE(feed_.Watch("main", "", watcher).ok());
  feed_.Changed({Seen("a", 1), Seen("b", 1, "other"), Seen("c", 1)});
  EXPECT_THAT(watcher->seen, ElementsAre("a", "c"));
  feed_.Lost("main");
  EXPECT_EQ(watcher->ended.code(), absl::StatusCode::kUnavailable);
  feed_.Changed({Seen("d", 1)});
  EXPECT_THAT(watcher->seen, ElementsAre("a", "c"));
  EXPECT_FALSE(feed_.Holds("main"));
}

TEST_F(FactFeedTest, AnUnwatchedWatcherIsLeftAlone) {
  feed_.Gained("main");
  const auto watcher = std::make_shared<FakeWatcher>();
  ASSERT_TRUE(feed_.Watch("main", "", watcher).ok());
  feed_.Unwatch(watcher);
  feed_.Changed({Seen("a", 1)});
  feed_.Close();
  EXPECT_THAT(watcher->seen, IsEmpty());
  EXPECT_TRUE(watcher->ended.ok());
}

TEST_F(FactFeedTest, OnlySoManyMayWatch) {
  feed_.Gained("main");
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    status = feed_.Watch("main", "", std::make_shared<FakeWatcher>());
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FactFeedTest, OneTenantLeavesRoomForOthers) {
  feed_.Gained("main");
  absl::Status status;
  const auto first = std::make_shared<FakeWatcher>();
  ASSERT_TRUE(feed_.Watch("main", "eve", first).ok());
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    status = feed_.Watch("main", "eve", std::make_shared<FakeWatcher>());
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(feed_.Watch("main", "ann", std::make_shared<FakeWatcher>()).ok());
  feed_.Unwatch(first);
  EXPECT_TRUE(feed_.Watch("main", "eve", std::make_shared<FakeWatcher>()).ok());
}

TEST_F(FactFeedTest, AWaiterIsToldOnceOfTheFirstFactThatItWants) {
  Await("a", 2, In(1h));
  feed_.Changed({Seen("a", 1), Seen("b", 9)});
  auto told = told_.get_future();
  EXPECT_EQ(told.wait_for(0s), std::future_status::timeout);
  feed_.Changed({Seen("a", 2)});
  EXPECT_EQ(told.get(), "a");
  feed_.Changed({Seen("a", 3)});  // would throw, were it told again
}

TEST_F(FactFeedTest, AWaitersTimeIsOver) {
  const uint64_t later = Await("a", 1, In(1h));
  Await("a", 1, In(10ms));
  EXPECT_EQ(told_.get_future().get(), "nothing");
  EXPECT_TRUE(feed_.Forget(later));
}

TEST_F(FactFeedTest, AForgottenWaiterIsNotTold) {
  const uint64_t waiter = Await("a", 1, In(20ms));
  EXPECT_TRUE(feed_.Forget(waiter));
  EXPECT_FALSE(feed_.Forget(waiter));
  feed_.Changed({Seen("a", 1)});
  EXPECT_EQ(told_.get_future().wait_for(50ms), std::future_status::timeout);
}

TEST_F(FactFeedTest, TheEndIsToldToAll) {
  feed_.Gained("main");
  const auto watcher = std::make_shared<FakeWatcher>();
  ASSERT_TRUE(feed_.Watch("main", "", watcher).ok());
  Await("a", 1, In(1h));
  feed_.Close();
  EXPECT_EQ(told_.get_future().get(), "nothing");
  EXPECT_EQ(watcher->ended.code(), absl::StatusCode::kUnavailable);
  // And to who comes later.
  told_ = {};
  Await("a", 1, In(1h));
  EXPECT_EQ(told_.get_future().get(), "nothing");
  EXPECT_FALSE(feed_.Watch("main", "", watcher).ok());
}

}  // namespace
}  // namespace fluxqueue::queue
