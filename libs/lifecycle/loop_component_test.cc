#include "libs/lifecycle/loop_component.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::lifecycle {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class FakeFailureSink final : public FailureSink {
 public:
  void Fail(const std::string& component, const absl::Status& status) override {
    failed_.set_value(Annotate(status, component));
  }
  // The failure, once there is one.
  absl::Status Wait() {
    std::future<absl::Status> future = failed_.get_future();
    if (future.wait_for(10s) != std::future_status::ready) return absl::OkStatus();
    return future.get();
  }

 private:
  std::promise<absl::Status> failed_;
};

void WaitUntilStopped(LoopContext& context) {
  while (context.SleepFor(Millis(1h))) {
  }
}

// Waits with a deadline; false when it passes.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(LoopComponentTest, RunsUntilItIsStopped) {
  FakeFailureSink failures;
  std::atomic<bool> running = false;
  LoopComponent loop(
      "loop",
      [&](LoopContext& context) {
        running = true;
        WaitUntilStopped(context);
        running = false;
        return absl::OkStatus();
      },
      nullptr,
      failures);
  EXPECT_FALSE(loop.Ready().ok());
  ASSERT_TRUE(loop.Start().ok());
  EXPECT_TRUE(Eventually([&] { return running.load(); }));
  EXPECT_TRUE(loop.Ready().ok());
  loop.Stop();
  EXPECT_FALSE(running);
  EXPECT_EQ(Message(loop.Ready()), "stopped");
  loop.Stop();
}

TEST(LoopComponentTest, AsksTheReadyFunction) {
  FakeFailureSink failures;
  std::atomic<bool> synced = false;
  LoopComponent loop(
      "loop",
      [](LoopContext& context) {
        WaitUntilStopped(context);
        return absl::OkStatus();
      },
      [&] { return synced ? absl::OkStatus() : Unavailable("the watch is not synced"); },
      failures);
  ASSERT_TRUE(loop.Start().ok());
  EXPECT_TRUE(Eventually([&] { return Message(loop.Ready()) == "the watch is not synced"; }));
  synced = true;
  EXPECT_TRUE(loop.Ready().ok());
}

TEST(LoopComponentTest, RetryWaitsWhileTheWorldIsAway) {
  FakeFailureSink failures;
  std::atomic<bool> away = true;
  std::atomic<bool> connected = false;
  LoopComponent loop(
      "loop",
      [&](LoopContext& context) -> absl::Status {
        RETURN_IF_ERROR(context.Retry(
            "connect", [&] { return away ? Unavailable("db: refused") : absl::OkStatus(); }));
        connected = true;
        WaitUntilStopped(context);
        return absl::OkStatus();
      },
      nullptr,
      failures);
  ASSERT_TRUE(loop.Start().ok());
  EXPECT_TRUE(Eventually([&] { return Message(loop.Ready()) == "connect: db: refused"; }));
  EXPECT_FALSE(connected);
  away = false;
  EXPECT_TRUE(Eventually([&] { return connected.load(); }));
  EXPECT_TRUE(loop.Ready().ok());
}

TEST(LoopComponentTest, IsNotReadyDuringTheFirstTry) {
  FakeFailureSink failures;
  std::promise<void> entered;
  std::promise<void> go_on;
  LoopComponent loop(
      "loop",
      [&](LoopContext& context) -> absl::Status {
        RETURN_IF_ERROR(context.Retry("connect", [&] {
          entered.set_value();
          go_on.get_future().wait();
          return absl::OkStatus();
        }));
        WaitUntilStopped(context);
        return absl::OkStatus();
      },
      nullptr,
      failures);
  ASSERT_TRUE(loop.Start().ok());
  EXPECT_EQ(entered.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_EQ(Message(loop.Ready()), "connect: under way");
  go_on.set_value();
  EXPECT_TRUE(Eventually([&] { return loop.Ready().ok(); }));
}

TEST(LoopComponentTest, StopEndsARetry) {
  FakeFailureSink failures;
  absl::Status result;
  LoopComponent loop(
      "loop",
      [&](LoopContext& context) {
        return result = context.Retry("connect", [] { return Unavailable("db: refused"); });
      },
      nullptr,
      failures);
  ASSERT_TRUE(loop.Start().ok());
  EXPECT_TRUE(Eventually([&] { return Message(loop.Ready()) == "connect: db: refused"; }));
  loop.Stop();
  EXPECT_TRUE(absl::IsCancelled(result)) << result;
}

TEST(LoopComponentTest, RetryReturnsWhatCannotBeMended) {
  FakeFailureSink failures;
  LoopComponent loop(
      "loop",
      [&](LoopContext& context) {
        return context.Retry("migrate", [] { return InvalidArgument("bad SQL"); });
      },
      nullptr,
      failures);
  ASSERT_TRUE(loop.Start().ok());
  EXPECT_EQ(Message(failures.Wait()), "loop: migrate: bad SQL");
  EXPECT_FALSE(loop.Ready().ok());
}

TEST(LoopComponentTest, EndingUnaskedIsAFailure) {
  FakeFailureSink failures;
  LoopComponent loop(
      "loop", [](LoopContext&) { return absl::OkStatus(); }, nullptr, failures);
  ASSERT_TRUE(loop.Start().ok());
  const absl::Status status = failures.Wait();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_EQ(Message(status), "loop: ended without being asked to");
}

TEST(LoopComponentTest, AnExceptionIsAFailureWithItsText) {
  FakeFailureSink failures;
  LoopComponent loop(
      "loop",
      [](LoopContext&) -> absl::Status { throw std::runtime_error("lost the thread"); },
      nullptr,
      failures);
  ASSERT_TRUE(loop.Start().ok());
  EXPECT_THAT(Message(failures.Wait()), HasSubstr("exception: lost the thread"));
}

TEST(LoopComponentTest, BrokenInvariantsCountEvenWhileStopping) {
  FakeFailureSink failures;
  LoopComponent loop(
      "loop",
      [](LoopContext& context) {
        WaitUntilStopped(context);
        return Internal("row 7 is gone");
      },
      nullptr,
      failures);
  ASSERT_TRUE(loop.Start().ok());
  loop.Stop();
  EXPECT_EQ(Message(failures.Wait()), "loop: row 7 is gone");
}

}  // namespace
}  // namespace fluxqueue::lifecycle
