#include "libs/postgres/answer_watch.h"

#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fluxqueue::postgres {
namespace {

constexpr Millis kPatience{200};
constexpr Millis kDeadline{20'000};

// The client's end of a connection whose server says nothing.
class AnswerWatchTest : public ::testing::Test {
 protected:
  AnswerWatchTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    client_ = ends[0];
    server_ = ends[1];
    watch_ = std::make_unique<AnswerWatch>(kPatience);
    watch_->Guard(client_);
  }
  ~AnswerWatchTest() override {
    watch_.reset();
    ::close(client_);
    ::close(server_);
  }

  // Waits as libpq does: it has ended when there is something to read, were it the end.
  static bool Ends(int socket, Millis within) {
    pollfd ready{socket, POLLIN, 0};
    return ::poll(&ready, 1, static_cast<int>(within.count())) > 0;
  }

  int client_ = -1;
  int server_ = -1;
  std::unique_ptr<AnswerWatch> watch_;
};

TEST_F(AnswerWatchTest, EndsTheWaitForAServerThatIsSilent) {
  const AnswerWatch::Call call(*watch_);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(Ends(client_, kDeadline));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kPatience);
  EXPECT_TRUE(watch_->gave_up());
  char byte = 0;
  EXPECT_EQ(::recv(client_, &byte, 1, 0), 0) << "as if the server had closed it";
}

TEST_F(AnswerWatchTest, EachAnswerCounts) {
  const AnswerWatch::Call call(*watch_);
  const auto until = std::chrono::steady_clock::now() + 3 * kPatience;
  while (std::chrono::steady_clock::now() < until) {
    EXPECT_FALSE(Ends(client_, Millis(5)));
    watch_->Answered();
  }
  EXPECT_FALSE(watch_->gave_up());
}

TEST_F(AnswerWatchTest, ACallMayHaveMorePatienceThanTheNextOne) {
  {
    const AnswerWatch::Call call(*watch_, 100 * kPatience);
    EXPECT_FALSE(Ends(client_, 3 * kPatience));
    EXPECT_FALSE(watch_->gave_up());
  }
  const AnswerWatch::Call call(*watch_);
  EXPECT_TRUE(Ends(client_, kDeadline / 2)) << "long before the patience of the first is over";
}

TEST_F(AnswerWatchTest, BetweenCallsTheServerOwesNothing) {
  { const AnswerWatch::Call call(*watch_); }
  watch_->Answered();
  EXPECT_FALSE(Ends(client_, 3 * kPatience));
  EXPECT_FALSE(watch_->gave_up());
}

// libpq has closed its socket, and the number is another's by now.
TEST_F(AnswerWatchTest, AnothersSocketOfTheSameNumberIsLeftAlone) {
  std::array<int, 2> others{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, others.data()), 0);
  ASSERT_EQ(::dup2(others[0], client_), client_);
  const AnswerWatch::Call call(*watch_);
  EXPECT_FALSE(Ends(client_, 3 * kPatience));
  EXPECT_TRUE(watch_->gave_up());
  for (const int end : others) ::close(end);
}

TEST_F(AnswerWatchTest, IsGoneAtOnce) {
  const auto begun = std::chrono::steady_clock::now();
  auto patient = std::make_unique<AnswerWatch>(std::chrono::hours(1));
  patient->Guard(client_);
  patient.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kDeadline);
}

}  // namespace
}  // namespace fluxqueue::postgres
